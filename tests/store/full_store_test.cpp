// What a turn costs in a store that has many sequences, and what is seen of other programs that
// write into the same folder.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>

#include "store/disk_store.h"
#include "tests/store/store_bench.h"

namespace cairn::store::full_store_test {
namespace {

using memory::Sequence;
using toy::full_model;
using toy::kFingerprint;
using toy::read_text;
using toy::StoreBench;
using toy::tokens_of;

// Counts what is asked about the folder.
class CountedCalls : public FileCalls {
 public:
  int open_at(int folder, const char* name, int flags, mode_t mode) override {
    ++count;
    return FileCalls::open_at(folder, name, flags, mode);
  }
  int status_at(int folder, const char* name, struct stat* status) override {
    ++count;
    return FileCalls::status_at(folder, name, status);
  }
  int list(int folder, std::vector<std::string>& names) override {
    const int done = FileCalls::list(folder, names);
    count += int64_t(names.size());
    return done;
  }

  std::atomic<int64_t> count{0};
};

// A store in which nothing has happened for a while, as its folders say.
class TurnsInAFullStore : public ::testing::Test {
 protected:
  static constexpr int32_t kFull = 1500;

  TurnsInAFullStore() : bench_(full_model(), {.calls = &calls_}) {
    for (int32_t number = 0; number < kFull; ++number) {
      EXPECT_TRUE(bool(bench_.write(read_text(bench_.here, 66, number))));
    }
  }
  // What was changed just now was changed an hour ago.
  void let_time_pass() {
    const auto now = std::filesystem::file_time_type::clock::now();
    const std::filesystem::path path = bench_.options.path;
    for (const auto& file : std::filesystem::recursive_directory_iterator(path)) {
      if (!file.is_directory()) continue;
      const auto time = std::filesystem::last_write_time(file.path());
      if (now - time > std::chrono::minutes(30)) continue;
      std::filesystem::last_write_time(file.path(), time - std::chrono::hours(1));
    }
  }
  // One more turn of the sequence of this number; the calls that it takes.
  int64_t turn(int32_t number) {
    Sequence chat = read_text(bench_.here, 66, number);
    EXPECT_TRUE(bool(bench_.here.read(chat, memory::toy::tokens(40, 7))));
    const auto snapshot = bench_.snapshot_of(chat);
    const int64_t before = calls_.count;
    EXPECT_TRUE(bool(bench_.store->write(*snapshot, Durability::cache)));
    return calls_.count - before;
  }

  CountedCalls calls_;
  StoreBench bench_;
};

// What has not changed since it was listed is not listed again: a turn costs no more where there
// are many sequences, but for a look at each of the 256 folders.
TEST_F(TurnsInAFullStore, CostNoListingOfAllThatIsThere) {
  let_time_pass();
  EXPECT_GT(turn(1), kFull) << "the first one has to look";
  for (int32_t number = 2; number < 20; ++number) {
    let_time_pass();
    EXPECT_LT(turn(number), 2 * 256 + 20 * (kFull / 256 + 10)) << number;
  }
  EXPECT_EQ(bench_.store->stats().entries, uint64_t(kFull)) << "each turn replaced the one before";
}

// What other programs do between two turns is seen all the same.
TEST_F(TurnsInAFullStore, SeeWhatOthersDoMeanwhile) {
  let_time_pass();
  (void)turn(1);
  let_time_pass();
  (void)turn(2);
  let_time_pass();
  // The same conversation under a name; and a branch of another one, that needs its first records.
  auto other = DiskStore::open({.path = bench_.options.path, .free_bytes_min = 0}).value();
  const Sequence saved = read_text(bench_.here, 66, 3);
  ASSERT_TRUE(bool(other->save("mine", *bench_.snapshot_of(saved))));
  Sequence branch = bench_.here.memory->at(read_text(bench_.here, 66, 4), 64).value();
  ASSERT_TRUE(bool(bench_.here.read(branch, memory::toy::tokens(30, 9))));
  ASSERT_TRUE(bool(other->write(*bench_.snapshot_of(branch), Durability::cache)));
  (void)turn(3);
  (void)turn(4);
  const memory::Layout& layout = bench_.there.memory->layout();
  Result<DiskStore::Match> match = bench_.store->open_session("mine", kFingerprint, layout);
  ASSERT_TRUE(bool(match)) << match.error().message;
  EXPECT_EQ(match->resume, saved.length());
  EXPECT_EQ(bench_.restored(tokens_of(saved)), saved.length());
  EXPECT_EQ(bench_.restored(tokens_of(branch)), branch.length());
}

}  // namespace
}  // namespace cairn::store::full_store_test
