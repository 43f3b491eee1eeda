// A toy model's memory with a store beside it, and a second memory to load into: what is restored
// is compared with what its tokens alone would show.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/disk_store.h"
#include "tests/memory/archive_bench.h"
#include "tests/scratch_folder.h"

namespace cairn::store::toy {

using memory::Sequence;
using memory::toy::ToyBench;
using memory::toy::ToyModel;

inline constexpr memory::Variant kVariant = memory::Variant(5);
inline const Sha256Digest kFingerprint = Sha256().add("a model").finish();

// Full, window, chunked and recurrent layers in one.
inline ToyModel mixed_model() {
  return ToyModel(
      {{ToyModel::window(7), ToyModel::recurrent()}, {ToyModel::full()}, {ToyModel::chunked(40)}});
}

inline ToyModel full_model() {
  return ToyModel({{ToyModel::full()}, {ToyModel::full()}});
}

inline std::vector<ToyModel> store_models() {
  std::vector<ToyModel> models = {mixed_model(), full_model()};
  for (const int32_t window : {5, 32, 33}) {
    models.emplace_back(ToyModel::Layers{{ToyModel::window(window)}});
    models.emplace_back(ToyModel::Layers{{ToyModel::chunked(window)}});
  }
  models.emplace_back(ToyModel::Layers{{ToyModel::recurrent()}});
  models.emplace_back(ToyModel::Layers{{ToyModel::recurrent()}, {ToyModel::full()}});
  models.emplace_back(ToyModel::Layers{{ToyModel::window(33)}, {ToyModel::full()}});
  return models;
}

// A sequence of `count` tokens that no other number begins, with an anchor before its end.
inline Sequence read_text(ToyBench& bench, int32_t count, int32_t number) {
  Sequence sequence = bench.memory->new_sequence(kVariant);
  std::vector<Token> text = memory::toy::tokens(count, 1);
  text[0] = Token(1000 + number);
  EXPECT_TRUE(bool(bench.read(sequence, text, {count - 3})));
  return sequence;
}

// In memory where the system has a place for that: thousands of files are made.
inline std::filesystem::path fast_place() {
  const std::filesystem::path memory = "/dev/shm";
  return std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
}

struct StoreBench {
  explicit StoreBench(ToyModel toy, StoreOptions with = {})
      : here(toy, {.log_step = 16}), there(std::move(toy), {.log_step = 16}), options(with) {
    options.path = folder.file("store");
    if (!options.free_bytes_min) options.free_bytes_min = 0;
    reopen();
  }
  void reopen() {
    store.reset();
    Result<std::unique_ptr<DiskStore>> opened = DiskStore::open(options);
    ASSERT_TRUE(bool(opened)) << opened.error().message;
    store = std::move(opened).value();
  }
  std::unique_ptr<Snapshot> snapshot_of(const Sequence& sequence) {
    return std::make_unique<Snapshot>(*here.memory, sequence, kFingerprint, "toy");
  }
  Result<Sha256Digest> write(const Sequence& sequence, Durability durability = Durability::cache) {
    return store->write(*snapshot_of(sequence), durability);
  }
  // How far the store brings a prompt; what it brings is exact, and goes on.
  int32_t restored(std::span<const Token> prompt, bool wants_logits = false) {
    const memory::Layout& layout = there.memory->layout();
    const auto match = store->find(kFingerprint, layout, prompt, wants_logits, 0);
    if (!match) return 0;
    Result<Sequence> loaded = store->load(*there.memory, kVariant, kFingerprint, *match, 0);
    if (!loaded) return 0;
    Sequence sequence = std::move(loaded).value();
    EXPECT_LE(sequence.length(), match->resume);
    EXPECT_TRUE(std::ranges::equal(sequence.tokens(), prompt.first(size_t(sequence.length()))));
    there.expect_exact(sequence);
    const int32_t length = sequence.length();
    EXPECT_TRUE(bool(there.read(sequence, memory::toy::tokens(3, 20))));
    there.expect_exact(sequence);
    return length;
  }
  // All files of the store's parts.
  std::vector<std::string> files(const std::string& part) const {
    std::vector<std::string> paths;
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(options.path + "/" + part)) {
      if (!file.is_directory()) paths.push_back(file.path().string());
    }
    std::ranges::sort(paths);
    return paths;
  }

  ToyBench here, there;
  test::ScratchFolder folder{fast_place()};
  StoreOptions options;
  std::unique_ptr<DiskStore> store;
};

inline std::vector<Token> tokens_of(const Sequence& sequence) {
  return {sequence.tokens().begin(), sequence.tokens().end()};
}

}  // namespace cairn::store::toy
