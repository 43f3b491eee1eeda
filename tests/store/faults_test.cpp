// Every system call of a store fails, once and for good; the disk is full; the process is killed at
// random moments. Whatever happens, what the store then gives is exact, and saved sessions are
// there once their names were given back.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <random>
#include <set>

#include "tests/sanitized.h"
#include "tests/store/store_bench.h"

namespace cairn::store::faults_test {
namespace {

using memory::toy::conversation;
using toy::StoreBench;
using toy::tokens_of;

// The call after the next `left` ones fails, or all from there on.
class FailingCalls : public FileCalls {
 public:
  int open_at(int folder, const char* name, int flags, mode_t mode) override {
    return fails() ? -1 : FileCalls::open_at(folder, name, flags, mode);
  }
  int make_folder(int folder, const char* name, mode_t mode) override {
    return fails() ? -1 : FileCalls::make_folder(folder, name, mode);
  }
  int status(int file, struct stat* status) override {
    return fails() ? -1 : FileCalls::status(file, status);
  }
  int status_at(int folder, const char* name, struct stat* status) override {
    return fails() ? -1 : FileCalls::status_at(folder, name, status);
  }
  ssize_t read_at(int file, void* bytes, size_t count, off_t offset) override {
    if (fails()) return -1;
    return FileCalls::read_at(file, bytes, is_short ? std::min<size_t>(count, 7000) : count,
                              offset);
  }
  ssize_t write_at(int file, const void* bytes, size_t count, off_t offset) override {
    if (fails()) return -1;
    return FileCalls::write_at(file, bytes, is_short ? std::min<size_t>(count, 7000) : count,
                               offset);
  }
  int allocate(int file, off_t bytes) override {
    return fails() ? -1 : FileCalls::allocate(file, bytes);
  }
  int will_read(int file) override { return fails() ? -1 : FileCalls::will_read(file); }
  // The disk itself is not waited for: no power is lost here.
  int sync(int) override { return fails() ? -1 : 0; }
  int set_mode(int file, mode_t mode) override {
    return fails() ? -1 : FileCalls::set_mode(file, mode);
  }
  int rename_to_new(int from_folder, const char* from, int to_folder, const char* to) override {
    return fails() ? -1 : FileCalls::rename_to_new(from_folder, from, to_folder, to);
  }
  int rename_over(int from_folder, const char* from, int to_folder, const char* to) override {
    return fails() ? -1 : FileCalls::rename_over(from_folder, from, to_folder, to);
  }
  int remove_at(int folder, const char* name) override {
    return fails() ? -1 : FileCalls::remove_at(folder, name);
  }
  int mark_used(int folder, const char* name) override {
    return fails() ? -1 : FileCalls::mark_used(folder, name);
  }
  int lock(int file, int operation) override {
    return fails() ? -1 : FileCalls::lock(file, operation);
  }
  int64_t free_bytes(int folder) override { return fails() ? -1 : FileCalls::free_bytes(folder); }
  int64_t disk_bytes(int folder) override { return fails() ? -1 : FileCalls::disk_bytes(folder); }
  int list(int folder, std::vector<std::string>& names) override {
    return fails() ? -1 : FileCalls::list(folder, names);
  }

  int64_t left = INT64_MAX;
  int error = EIO;
  bool persists = false, is_short = false, has_failed = false;

 private:
  bool fails() {
    if (left > 0) {
      --left;
      return false;
    }
    if (has_failed && !persists) return false;
    has_failed = true;
    errno = error;
    return true;
  }
};

// A load of everything a store does, under one fault; then all is looked at without faults.
// Whether the fault was reached.
bool survives_fault(int64_t call, int error, bool persists, bool is_short) {
  FailingCalls calls;
  calls.error = error;
  calls.persists = persists;
  calls.is_short = is_short;
  StoreOptions options{.budget_bytes = 300'000};
  StoreBench bench(toy::mixed_model(), options);
  bench.store.reset();
  const memory::Sequence chat = conversation(bench.here);
  const std::vector<Token> text = tokens_of(chat);
  StoreOptions faulty = bench.options;
  faulty.calls = &calls;
  calls.left = call;
  bool is_saved = false;
  if (Result<std::unique_ptr<DiskStore>> opened = DiskStore::open(faulty)) {
    bench.store = std::move(opened).value();
    is_saved = bool(bench.store->save("mine", *bench.snapshot_of(chat)));
    for (int32_t number = 0; number < 2; ++number) {
      (void)bench.write(toy::read_text(bench.here, 70, number));
    }
    EXPECT_LE(bench.restored(text), chat.length());
    (void)bench.store->verify();
    EXPECT_LE(bench.store->stats().bytes, 300'000u);
  }
  const bool was_reached = calls.has_failed;
  calls.left = INT64_MAX;
  calls.has_failed = false;
  calls.persists = false;
  bench.reopen();
  const int32_t length = bench.restored(text);
  EXPECT_LE(length, chat.length());
  const auto session =
      bench.store->open_session("mine", toy::kFingerprint, bench.there.memory->layout());
  EXPECT_TRUE(!is_saved || session) << call;
  EXPECT_TRUE(bool(bench.write(chat))) << call;
  EXPECT_EQ(bench.restored(text), chat.length()) << call;
  return was_reached;
}

// The sanitizers look at what is done after a fault, which one call in five shows.
void expect_survival(int error, bool persists, bool is_short) {
  constexpr int64_t kEvery = test::kIsSanitized ? 5 : 1;
  int64_t call = 0;
  while (survives_fault(call, error, persists, is_short) && !::testing::Test::HasFailure()) {
    call += kEvery;
  }
  EXPECT_GT(call, 100);
}

TEST(Faults, EveryCallFailsOnce) {
  expect_survival(EIO, false, false);
}

TEST(Faults, EveryCallFindsTheDiskFull) {
  expect_survival(ENOSPC, false, true);
}

TEST(Faults, EveryCallFailsFromThereOn) {
  expect_survival(EIO, true, false);
}

// Reads and writes go on where a signal came between.
TEST(Faults, InterruptedCallsAreRepeated) {
  for (int64_t call = 0; call < 400; call += test::kIsSanitized ? 9 : 3) {
    FailingCalls calls;
    calls.error = EINTR;
    StoreOptions options;
    options.calls = &calls;
    StoreBench bench(toy::mixed_model(), options);
    const memory::Sequence chat = conversation(bench.here);
    calls.left = call;
    (void)bench.write(chat);
    EXPECT_LE(bench.restored(tokens_of(chat)), chat.length());
  }
}

// After a disk has failed, nothing is written for a minute; memory does its work.
TEST(Faults, AfterAFailureTheDiskHasAPause) {
  FailingCalls calls;
  int64_t now = 0;
  StoreOptions options;
  options.calls = &calls;
  options.now_ns = [&] { return now; };
  StoreBench bench(toy::mixed_model(), options);
  const memory::Sequence chat = conversation(bench.here);
  calls.left = 20;
  calls.persists = true;
  EXPECT_FALSE(bool(bench.write(chat)));
  calls.left = INT64_MAX;
  EXPECT_EQ(bench.write(chat).error().code, ErrorCode::no_room);
  now = int64_t(59) * 1'000'000'000;
  EXPECT_FALSE(bool(bench.write(chat)));
  now = int64_t(61) * 1'000'000'000;
  EXPECT_TRUE(bool(bench.write(chat)));
}

// A clock that was wrong and is set right does not make that a day.
TEST(Faults, APauseIsNotLongerWhereTheClockIsSetBack) {
  constexpr int64_t kDayNs = int64_t(86400) * 1'000'000'000;
  FailingCalls calls;
  int64_t now = 2 * kDayNs;
  StoreOptions options;
  options.calls = &calls;
  options.now_ns = [&] { return now; };
  StoreBench bench(toy::mixed_model(), options);
  const memory::Sequence chat = conversation(bench.here);
  calls.left = 20;
  calls.persists = true;
  EXPECT_FALSE(bool(bench.write(chat)));
  calls.left = INT64_MAX;
  EXPECT_EQ(bench.write(chat).error().code, ErrorCode::no_room);
  now -= kDayNs;
  EXPECT_TRUE(bool(bench.write(chat)));
}

// Cannot open some files for a while, as where a process has no descriptors left.
class ClosedCalls : public FileCalls {
 public:
  int open_at(int folder, const char* name, int flags, mode_t mode) override {
    if (name != closed) return FileCalls::open_at(folder, name, flags, mode);
    errno = EMFILE;
    return -1;
  }
  std::string closed;
};

// Which records a manifest needs is not known while it cannot be opened: they stay.
TEST(Faults, WhatCannotBeOpenedNowLosesNothing) {
  ClosedCalls calls;
  int64_t now = int64_t(3600) * 1'000'000'000;
  StoreBench bench(toy::mixed_model(), {.budget_bytes = 600'000});
  const memory::Sequence chat = toy::read_text(bench.here, 90, 1);
  ASSERT_TRUE(bool(bench.store->save("mine", *bench.snapshot_of(chat))));
  const std::vector<std::string> manifests = bench.files("manifests");
  ASSERT_EQ(manifests.size(), 1u);
  calls.closed = std::filesystem::path(manifests[0]).filename().string();
  // A program that begins meanwhile; its clock says that the records are old.
  const auto year = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::hours(8760));
  now = std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1) +
        year.count();
  auto other = DiskStore::open({.path = bench.options.path,
                                .budget_bytes = 600'000,
                                .free_bytes_min = 0,
                                .calls = &calls,
                                .now_ns = [&] { return now; }})
                   .value();
  for (int32_t number = 2; number < 40; ++number) {
    (void)other->write(*bench.snapshot_of(toy::read_text(bench.here, 90, number)),
                       Durability::cache);
  }
  EXPECT_EQ(other->stats().evicted, 0u);
  const memory::Layout& layout = bench.there.memory->layout();
  EXPECT_TRUE(bool(bench.store->open_session("mine", toy::kFingerprint, layout)));
  EXPECT_EQ(bench.restored(tokens_of(chat)), chat.length());
  // It can be opened again.
  calls.closed.clear();
  EXPECT_TRUE(bool(
      other->write(*bench.snapshot_of(toy::read_text(bench.here, 90, 50)), Durability::cache)));
  EXPECT_GT(other->stats().evicted, 0u);
  EXPECT_EQ(bench.restored(tokens_of(chat)), chat.length());
}

// Cannot open the first of some files that is asked for, once.
class OnceClosedCalls : public FileCalls {
 public:
  int open_at(int folder, const char* name, int flags, mode_t mode) override {
    if (!closed.contains(name)) return FileCalls::open_at(folder, name, flags, mode);
    closed.clear();
    errno = EMFILE;
    return -1;
  }
  std::set<std::string> closed;
};

// What was listed beside a manifest that could not be opened is looked at again: else nobody would
// see which records it needs.
TEST(Faults, WhatIsListedBesideWhatCannotBeOpenedIsNotForgotten) {
  OnceClosedCalls calls;
  StoreBench bench(toy::mixed_model());
  auto other =
      DiskStore::open({.path = bench.options.path, .free_bytes_min = 0, .calls = &calls}).value();
  // Conversations of another program; this one saves them too, with other states on the way.
  constexpr int32_t kCount = 4;
  std::vector<memory::Sequence> chats;
  const auto turn = [&](int32_t number) {
    memory::Sequence& chat = chats[size_t(number)];
    EXPECT_TRUE(bool(other->write(*bench.snapshot_of(chat), Durability::cache)));
    EXPECT_TRUE(bool(bench.here.read(chat, memory::toy::tokens(40, 2))));
  };
  for (int32_t number = 0; number < kCount; ++number) {
    chats.push_back(toy::read_text(bench.here, 66, number));
    memory::Sequence saved = bench.here.memory->new_sequence(toy::kVariant);
    ASSERT_TRUE(bool(bench.here.read(saved, tokens_of(chats.back()), {20})));
    turn(number);
    ASSERT_TRUE(bool(bench.store->save(std::to_string(number), *bench.snapshot_of(saved))));
  }
  // What was changed just now was changed an hour ago.
  for (const std::string& path : bench.files("manifests")) {
    const std::filesystem::path file = path, folder = file.parent_path();
    calls.closed.insert(file.filename().string());
    const auto time = std::filesystem::last_write_time(folder);
    std::filesystem::last_write_time(folder, time - std::chrono::hours(1));
  }
  turn(0);
  EXPECT_TRUE(calls.closed.empty());
  for (int32_t number = 0; number < kCount; ++number) turn(number);
  EXPECT_EQ(other->stats().entries, uint64_t(2 * kCount)) << "each turn replaced those before it";
  bench.reopen();
  EXPECT_EQ(bench.store->verify()->bad_sequences, 0u);
}

// Each user may have less than the disk.
class QuotaCalls : public FileCalls {
 public:
  int allocate(int file, off_t bytes) override {
    if (has_room) return FileCalls::allocate(file, bytes);
    errno = EDQUOT;
    return -1;
  }

  bool has_room = true;
};

// It is written as soon as there is room again: nothing is broken.
TEST(Faults, AUsedUpQuotaIsAFullDisk) {
  QuotaCalls calls;
  StoreOptions options;
  options.calls = &calls;
  StoreBench bench(toy::mixed_model(), options);
  calls.has_room = false;
  const memory::Sequence chat = conversation(bench.here);
  EXPECT_EQ(bench.write(chat).error().code, ErrorCode::no_room);
  EXPECT_TRUE(bench.files("manifests").empty() && bench.files("tmp").empty());
  calls.has_room = true;
  EXPECT_TRUE(bool(bench.write(chat)));
  EXPECT_EQ(bench.restored(tokens_of(chat)), chat.length());
}

// Writes sequences, saved ones among them, and says which were saved, until it is killed.
[[noreturn]] void write_until_killed(StoreBench& bench, std::span<const memory::Sequence> chats,
                                     int said) {
  Result<std::unique_ptr<DiskStore>> opened = DiskStore::open(bench.options);
  if (!opened) ::_exit(1);
  const std::unique_ptr<DiskStore> store = std::move(opened).value();
  for (uint8_t round = 0;; ++round) {
    const uint8_t number = uint8_t(round % chats.size());
    const auto snapshot = bench.snapshot_of(chats[number]);
    if (round % 3 != 0) {
      (void)store->write(*snapshot, Durability::cache);
    } else if (store->save(fmt::format("chat{}", number), *snapshot)) {
      (void)!::write(said, &number, 1);
    }
  }
}

void kill_at_random_moments(int round_count) {
  std::mt19937 random(11);
  StoreOptions options{.budget_bytes = 1'000'000};
  StoreBench bench(toy::mixed_model(), options);
  std::vector<memory::Sequence> chats;
  for (int32_t number = 0; number < 20; ++number) {
    chats.push_back(toy::read_text(bench.here, 60 + number, number));
  }
  size_t found = 0;
  for (int round = 0; round < round_count; ++round) {
    bench.store.reset();
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) write_until_killed(bench, chats, pipe[1]);
    ::close(pipe[1]);
    // Some way into the load, however fast the machine is.
    std::vector<uint8_t> saved(random() % 6);
    for (uint8_t& number : saved) ASSERT_EQ(::read(pipe[0], &number, 1), 1);
    ::usleep(useconds_t(random() % 5'000));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    for (uint8_t number = 0; ::read(pipe[0], &number, 1) == 1;) saved.push_back(number);
    ::close(pipe[0]);
    bench.reopen();
    for (const uint8_t number : saved) {
      const auto session = bench.store->open_session(
          fmt::format("chat{}", number), toy::kFingerprint, bench.there.memory->layout());
      ASSERT_TRUE(bool(session)) << session.error().message;
      ASSERT_EQ(bench.restored(chats[number].tokens()), chats[number].length());
    }
    for (const memory::Sequence& chat : chats) {
      const int32_t length = bench.restored(chat.tokens());
      ASSERT_TRUE(length == 0 || length == chat.length()) << length;
      found += size_t(length > 0);
    }
    ASSERT_EQ(bench.store->verify().value().bad_records, 0u);
    ASSERT_EQ(bench.store->stats().damaged, 0u);
  }
  EXPECT_GT(found, size_t(2 * round_count));
}

TEST(Faults, KilledAtRandomMomentsItIsWhole) {
  kill_at_random_moments(test::kIsSanitized ? 15 : 50);
}

// `./dev soak` runs it.
TEST(Faults, DISABLED_SoakKilledAtAThousandMomentsItIsWhole) {
  kill_at_random_moments(1000);
}

}  // namespace
}  // namespace cairn::store::faults_test
