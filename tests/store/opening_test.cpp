// A store of many sequences is read by several threads, and one that is read aside serves names
// meanwhile; whoever needs more waits, and what cannot be counted takes nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <thread>

#include "tests/store/store_bench.h"

namespace cairn::store::opening_test {
namespace {

using memory::Sequence;
using toy::kFingerprint;
using toy::read_text;
using toy::StoreBench;

// Lists nothing for others than who made it until it is told to, or never.
class HeldCalls : public FileCalls {
 public:
  int list(int folder, std::vector<std::string>& names) override {
    if (std::this_thread::get_id() != maker_) {
      is_asked = true;
      while (is_held) std::this_thread::yield();
      if (fails) {
        errno = EIO;
        return -1;
      }
    }
    return FileCalls::list(folder, names);
  }

  std::atomic<bool> is_held{true}, is_asked{false}, fails{false};

 private:
  const std::thread::id maker_ = std::this_thread::get_id();
};

// A store that is opened again, and read aside through these calls.
void reopen_aside(StoreBench& bench, HeldCalls& calls) {
  bench.options.calls = &calls;
  bench.options.is_read_aside = true;
  bench.reopen();
}

TEST(Opening, ManySequencesAreAllThereAndDamageIsPutAway) {
  constexpr int32_t kCount = 600;
  StoreBench bench(toy::full_model(), {.budget_bytes = uint64_t(1) << 30});
  std::vector<std::vector<Token>> texts;
  std::vector<Sha256Digest> names;
  for (int32_t number = 0; number < kCount; ++number) {
    const Sequence sequence = read_text(bench.here, 40, number);
    texts.push_back(toy::tokens_of(sequence));
    names.push_back(bench.write(sequence).value());
  }
  const StoreStats before = bench.store->stats();
  bench.reopen();
  EXPECT_EQ(bench.store->stats().entries, size_t(kCount));
  EXPECT_EQ(bench.store->stats().bytes, before.bytes);
  for (int32_t number = 0; number < kCount; number += 50) {
    EXPECT_EQ(bench.restored(texts[size_t(number)]), 40) << number;
  }
  // The newest is looked at first, whoever has read it.
  const std::vector<IndexEntry> entries = bench.store->entries();
  EXPECT_TRUE(std::ranges::is_sorted(entries, {}, &IndexEntry::used_ns));
  for (size_t number = 0; number < 20; ++number) {
    const std::string hex = hex_of(names[number]);
    const std::string path = bench.options.path + "/manifests/" + hex.substr(0, 2) + "/" + hex;
    std::string bytes = test::contents_of(path);
    bytes.back() = char(bytes.back() ^ 1);
    std::filesystem::remove(path);
    test::write_to(path, bytes);
  }
  bench.reopen();
  EXPECT_EQ(bench.store->stats().entries, size_t(kCount - 20));
  EXPECT_EQ(bench.store->stats().damaged, 20u);
  EXPECT_EQ(bench.restored(texts[0]), 0);
  EXPECT_EQ(bench.restored(texts[20]), 40);
}

TEST(Opening, WhileItIsReadNamesAreServedAndTheRestWaits) {
  HeldCalls calls;
  StoreBench bench(toy::mixed_model());
  const Sequence saved = read_text(bench.here, 90, 1), other = read_text(bench.here, 80, 2);
  ASSERT_TRUE(bool(bench.store->save("mine", *bench.snapshot_of(saved))));
  ASSERT_TRUE(bool(bench.write(other)));
  const StoreStats before = bench.store->stats();
  reopen_aside(bench, calls);
  const memory::Layout& layout = bench.there.memory->layout();
  auto session = bench.store->open_session("mine", kFingerprint, layout);
  ASSERT_TRUE(bool(session));
  Result<Sequence> loaded =
      bench.store->load(*bench.there.memory, toy::kVariant, kFingerprint, *session, 0);
  ASSERT_TRUE(bool(loaded));
  EXPECT_EQ(loaded->length(), 90);
  bench.there.expect_exact(*loaded);
  EXPECT_EQ(bench.store->stats().entries, 0u);
  EXPECT_FALSE(bench.store->covers(kFingerprint, layout, other.tokens()));
  EXPECT_FALSE(bench.store->scrub_next(DiskStore::always));
  const auto never = [] { return false; };
  EXPECT_EQ(bench.store->write(*bench.snapshot_of(other), Durability::cache, never).error().code,
            ErrorCode::cancelled);
  std::future<bool> found = std::async(std::launch::async, [&] {
    return bench.store->find(kFingerprint, layout, other.tokens(), false, 0).has_value();
  });
  EXPECT_EQ(found.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_TRUE(calls.is_asked);
  calls.is_held = false;
  EXPECT_TRUE(found.get());
  EXPECT_EQ(bench.store->entries().size(), 2u);
  EXPECT_EQ(bench.store->stats().bytes, before.bytes);
  EXPECT_TRUE(bool(bench.write(read_text(bench.here, 70, 3))));
  EXPECT_EQ(bench.store->verify().value().bad_records, 0u);
}

TEST(Opening, WhatCannotBeCountedIsNotWrittenTo) {
  HeldCalls calls;
  calls.is_held = false;
  calls.fails = true;
  StoreBench bench(toy::mixed_model());
  const Sequence chat = read_text(bench.here, 90, 1);
  ASSERT_TRUE(bool(bench.write(chat)));
  reopen_aside(bench, calls);
  EXPECT_EQ(bench.restored(chat.tokens()), 0);
  EXPECT_EQ(bench.write(read_text(bench.here, 70, 2)).error().code, ErrorCode::io);
  EXPECT_EQ(bench.files("manifests").size(), 1u);
}

// Whoever opens it and has no need of it does not wait for it.
TEST(Opening, ItIsClosedWhileItIsRead) {
  HeldCalls calls;
  StoreBench bench(toy::mixed_model());
  const Sequence chat = read_text(bench.here, 90, 1);
  ASSERT_TRUE(bool(bench.write(chat)));
  reopen_aside(bench, calls);
  std::thread releasing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    calls.is_held = false;
  });
  bench.store.reset();
  releasing.join();
  bench.reopen();
  EXPECT_EQ(bench.restored(chat.tokens()), 90);
}

}  // namespace
}  // namespace cairn::store::opening_test
