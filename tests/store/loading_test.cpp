// Loading step by step: what is damaged is lost, what is left is loaded, and what is given up gives
// all of its blocks back.
#include "store/loading.h"

#include "tests/store/store_bench.h"

namespace cairn::store::loading_test {
namespace {

using toy::kFingerprint;
using toy::kVariant;
using toy::StoreBench;
using toy::tokens_of;

TEST(Loading, ADamagedRecordCostsWhatWasInIt) {
  for (const memory::toy::ToyModel& toy : toy::store_models()) {
    StoreBench bench(toy);
    const memory::Sequence original = toy::read_text(bench.here, 200, 1);
    ASSERT_TRUE(bool(bench.write(original)));
    const memory::Layout& layout = bench.there.memory->layout();
    const std::vector<Token> tokens = tokens_of(original);
    for (const std::string& path : bench.files("objects")) {
      bench.reopen();
      const std::string bytes = test::contents_of(path);
      std::string damaged = bytes;
      damaged[damaged.size() - 1] = char(damaged[damaged.size() - 1] ^ 1);
      std::filesystem::remove(path);
      test::write_to(path, damaged);
      auto match = bench.store->find(kFingerprint, layout, tokens, false, 0);
      ASSERT_TRUE(match.has_value());
      const int32_t promised = match->resume;
      Loading loading(kFingerprint, std::move(*match), 0);
      bool was_bad = false;
      for (;;) {
        const size_t needed = loading.needed_bytes(layout);
        const Status begun = loading.begin(*bench.there.memory, kVariant);
        if (!begun) {
          EXPECT_EQ(begun.error().code, ErrorCode::not_found);
          break;
        }
        EXPECT_EQ(bench.there.memory->usage().used_bytes(), needed);
        while (loading.read_next()) {
        }
        Result<memory::Sequence> loaded = loading.finish();
        if (loaded) {
          EXPECT_LE((*loaded).length(), promised);
          bench.there.expect_exact(*loaded);
          break;
        }
        EXPECT_EQ(loaded.error().code, ErrorCode::invalid_data);
        EXPECT_EQ(bench.there.memory->usage().used_bytes(), 0u);
        was_bad = true;
      }
      EXPECT_EQ(bench.store->stats().damaged, was_bad ? 1u : 0u);
      std::filesystem::remove(path);
      test::write_to(path, bytes);
    }
  }
}

TEST(Loading, WhatIsGivenUpGivesItsBlocksBack) {
  StoreBench bench(toy::mixed_model());
  const memory::Sequence original = toy::read_text(bench.here, 200, 1);
  ASSERT_TRUE(bool(bench.write(original)));
  const memory::Layout& layout = bench.there.memory->layout();
  auto match = bench.store->find(kFingerprint, layout, tokens_of(original), false, 0);
  ASSERT_TRUE(match.has_value());
  for (int reads = 0; reads < 3; ++reads) {
    Loading loading(kFingerprint, *match, 0);
    ASSERT_TRUE(bool(loading.begin(*bench.there.memory, kVariant)));
    EXPECT_GT(bench.there.memory->usage().used_bytes(), 0u);
    for (int read = 0; read < reads; ++read) EXPECT_TRUE(loading.read_next());
  }
  EXPECT_EQ(bench.there.memory->usage().used_bytes(), 0u);
}

}  // namespace
}  // namespace cairn::store::loading_test
