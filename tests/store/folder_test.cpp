// What a store's folder may be, and what may stand in it: planted links, pipes, devices and folders
// are never opened as records.
#include "store/folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "tests/scratch_folder.h"

namespace cairn::store::folder_test {
namespace {

const Sha256Digest kName = Sha256().add("name").finish();

struct FolderBench {
  std::string path() const { return scratch.file("store"); }
  Result<std::unique_ptr<Folder>> open() { return Folder::open(path(), calls); }
  ErrorCode refusal() { return open().error().code; }
  std::string record_path() const {
    const std::string hex = hex_of(kName);
    return path() + "/objects/" + hex.substr(0, 2) + "/" + hex;
  }

  test::ScratchFolder scratch;
  FileCalls calls;
};

Result<bool> write(Folder& folder, const std::string& text, Durability durability) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return folder.write(Place::objects, kName, {&part, 1}, durability);
}

// Sizes of the files that are handed out.
std::vector<uint64_t> opened(Folder& folder) {
  std::vector<uint64_t> sizes;
  const Status status =
      folder.open_each(Place::objects, [&](const Sha256Digest& name, const RecordFile& file) {
        EXPECT_EQ(name, kName);
        sizes.push_back(file.size());
      });
  EXPECT_TRUE(bool(status));
  return sizes;
}

// A server makes its folder of sessions before the first model opens the store.
TEST(Folder, MayHoldSessionsBeforeItIsAStore) {
  FolderBench bench;
  ASSERT_EQ(::mkdir(bench.path().c_str(), 0700), 0);
  ASSERT_EQ(::mkdir((bench.path() + "/sessions").c_str(), 0700), 0);
  EXPECT_TRUE(bool(bench.open()));
  EXPECT_EQ(test::contents_of(bench.path() + "/VERSION"), "cairn-store 1\n");
}

TEST(Folder, IsMadeForItsOwnerAlone) {
  FolderBench bench;
  ASSERT_TRUE(bool(bench.open()));
  struct stat status = {};
  ASSERT_EQ(::stat(bench.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_EQ(test::contents_of(bench.path() + "/VERSION"), "cairn-store 1\n");
  EXPECT_TRUE(bool(bench.open()));
  EXPECT_EQ(Folder::open(bench.scratch.file("a/b"), bench.calls).error().code,
            ErrorCode::not_found);
}

TEST(Folder, OtherFoldersAreRefused) {
  FolderBench bench;
  ::mkdir(bench.path().c_str(), 0700);
  test::write_to(bench.path() + "/letter.txt", "mine");
  EXPECT_EQ(bench.refusal(), ErrorCode::invalid_argument);  // Somebody's folder.
  std::filesystem::remove(bench.path() + "/letter.txt");
  test::write_to(bench.path() + "/VERSION", "cairn-store 2\n");
  EXPECT_EQ(bench.refusal(), ErrorCode::unsupported);
  test::write_to(bench.path() + "/VERSION", "cairn");  // Killed while it was made.
  ASSERT_TRUE(bool(bench.open()));
  EXPECT_EQ(test::contents_of(bench.path() + "/VERSION"), "cairn-store 1\n");
  ::chmod(bench.path().c_str(), 0777);
  EXPECT_EQ(bench.refusal(), ErrorCode::invalid_argument);
  ::chmod(bench.path().c_str(), 0700);
  std::filesystem::remove_all(bench.path() + "/objects");
  std::filesystem::create_symlink("/tmp", bench.path() + "/objects");
  EXPECT_EQ(bench.refusal(), ErrorCode::io);
  FolderBench file;
  test::write_to(file.path(), "x");
  EXPECT_EQ(file.refusal(), ErrorCode::invalid_argument);
}

TEST(Folder, ARecordIsWrittenOnceAndReadsBack) {
  for (const Durability durability : {Durability::cache, Durability::saved}) {
    FolderBench bench;
    const auto folder = bench.open().value();
    EXPECT_EQ(folder->open_record(Place::objects, kName).error().code, ErrorCode::not_found);
    EXPECT_TRUE(write(*folder, "first", durability).value());
    EXPECT_FALSE(write(*folder, "other", durability).value());
    const RecordFile file = folder->open_record(Place::objects, kName).value();
    ASSERT_EQ(file.size(), 5u);
    char text[5];
    ASSERT_TRUE(bool(file.read(0, std::as_writable_bytes(std::span(text)))));
    EXPECT_EQ(std::memcmp(text, "first", 5), 0);
    EXPECT_FALSE(bool(file.read(1, std::as_writable_bytes(std::span(text)))));
    const std::vector<ListedRecord> listed = folder->list(Place::objects).value();
    ASSERT_EQ(listed.size(), 1u);
    EXPECT_EQ(listed[0].used_ns, file.used_ns());
    EXPECT_EQ(opened(*folder), std::vector<uint64_t>{5});
    struct stat status = {};
    ASSERT_EQ(::stat(bench.record_path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0400u);
    EXPECT_TRUE(std::filesystem::is_empty(bench.path() + "/tmp"));
    folder->quarantine(Place::objects, kName, "why");
    EXPECT_FALSE(folder->size_of(Place::objects, kName).has_value());
    EXPECT_EQ(test::contents_of(bench.path() + "/quarantine/" + hex_of(kName) + ".txt"), "why\n");
  }
}

// Attack 33.
TEST(Folder, WhatIsPlantedInTheNameOfARecordIsNotOpened) {
  const auto planted = [](auto plant) {
    FolderBench bench;
    const auto folder = bench.open().value();
    EXPECT_TRUE(write(*folder, "x", Durability::cache).value());
    std::filesystem::remove(bench.record_path());
    plant(bench.record_path());
    EXPECT_TRUE(opened(*folder).empty());
    EXPECT_TRUE(folder->list(Place::objects).value().empty());
    const Result<RecordFile> file = folder->open_record(Place::objects, kName);
    return file ? ErrorCode::cancelled : file.error().code;
  };
  const ErrorCode damage = ErrorCode::invalid_data;
  EXPECT_EQ(planted([](const std::string& path) {
              std::filesystem::create_symlink("/etc/passwd", path);
            }),
            damage);
  EXPECT_EQ(planted([](const std::string& path) { ::mkfifo(path.c_str(), 0600); }), damage);
  EXPECT_EQ(planted([](const std::string& path) { ::mkdir(path.c_str(), 0700); }), damage);
  // Only root may make devices; the rule that refuses them is that of the pipe.
  EXPECT_EQ(planted([](const std::string& path) {
              if (::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 5)) != 0) {
                ::mkfifo(path.c_str(), 0600);
              }
            }),
            damage);
}

TEST(Folder, TheQuarantineHasALimit) {
  FolderBench bench;
  const auto folder = bench.open().value();
  for (uint64_t number = 0; number < 80; ++number) {
    const Sha256Digest name = Sha256().add(number).finish();
    const std::string text = "damaged";
    const std::span<const std::byte> part = std::as_bytes(std::span(text));
    ASSERT_TRUE(folder->write(Place::objects, name, {&part, 1}, Durability::cache).value());
    folder->quarantine(Place::objects, name, "why");
  }
  size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(bench.path() + "/quarantine")) {
    count += size_t(file.is_regular_file());
  }
  EXPECT_LE(count, 128u);
  EXPECT_GE(count, 120u);
  EXPECT_TRUE(folder->list(Place::objects).value().empty());
}

TEST(Folder, WhatKilledWritersLeftIsSweptByWhoeverIsAlone) {
  FolderBench bench;
  auto folder = bench.open().value();
  const std::string left = bench.path() + "/tmp/123.4";
  test::write_to(left, "half");
  auto second = bench.open().value();
  EXPECT_TRUE(std::filesystem::exists(left));  // The first may be writing it.
  folder.reset();
  second.reset();
  folder = bench.open().value();
  EXPECT_FALSE(std::filesystem::exists(left));
}

// Another program is sweeping, when this one begins, and for some tries more.
class SweptCalls : public FileCalls {
 public:
  int lock(int file, int operation) override {
    if ((operation & LOCK_SH) != 0) ++shared_count;
    if (shared_count > 3) return FileCalls::lock(file, operation);
    errno = EWOULDBLOCK;
    return -1;
  }
  int shared_count = 0;
};

TEST(Folder, WhoSweepsIsWaitedFor) {
  const FolderBench bench;
  SweptCalls calls;
  const auto folder = Folder::open(bench.path(), calls);
  EXPECT_TRUE(bool(folder)) << folder.error().message;
  EXPECT_EQ(calls.shared_count, 4);
}

// Names of records, and of sessions.
struct Seen {
  std::vector<Sha256Digest> records;
  bool has_saved_changed = false;
};

Seen look(Folder& folder, FolderTimes& times) {
  const Descriptor lock = folder.lock_collection();
  return {folder.list_changed(Place::objects, times).value(), folder.have_saved_changed(times)};
}

// What was changed just now was changed so long ago, or will be.
void let_time_pass(const FolderBench& bench, std::chrono::hours passed = std::chrono::hours(1)) {
  for (const std::string& path : {std::filesystem::path(bench.record_path()).parent_path().string(),
                                  bench.path() + "/saved"}) {
    if (!std::filesystem::exists(path)) continue;
    const auto time = std::filesystem::last_write_time(path);
    std::filesystem::last_write_time(path, time - passed);
  }
}

// A folder that was changed just now may change again without another time: it is listed again
// until some time has passed.
TEST(Folder, ListsWhatMayHaveChanged) {
  FolderBench bench;
  const auto folder = bench.open().value();
  const auto other = bench.open().value();
  FolderTimes times;
  let_time_pass(bench);
  EXPECT_TRUE(look(*folder, times).records.empty());
  EXPECT_FALSE(look(*folder, times).has_saved_changed);
  ASSERT_TRUE(write(*other, "first", Durability::cache).value());
  for (int times_looked = 0; times_looked < 3; ++times_looked) {
    EXPECT_EQ(look(*folder, times).records.size(), 1u);
    let_time_pass(bench);
    EXPECT_EQ(look(*folder, times).records.size(), 1u) << "it has another time";
    EXPECT_TRUE(look(*folder, times).records.empty()) << "nothing has happened since";
    ASSERT_TRUE(other->remove(Place::objects, kName));
    EXPECT_TRUE(look(*folder, times).records.empty());
    ASSERT_TRUE(write(*other, "again", Durability::cache).value());
  }
  // The next change may come at the same time, by a clock that ticks slowly, or was set back.
  let_time_pass(bench, std::chrono::hours(-2));
  for (int times_looked = 0; times_looked < 3; ++times_looked) {
    EXPECT_EQ(look(*folder, times).records.size(), 1u);
  }
  ASSERT_TRUE(bool(other->save_name("mine", kName)));
  EXPECT_TRUE(look(*folder, times).has_saved_changed);
  let_time_pass(bench);
  EXPECT_TRUE(look(*folder, times).has_saved_changed);
  EXPECT_FALSE(look(*folder, times).has_saved_changed);
  ASSERT_TRUE(bool(other->save_name("mine", Sha256().add("another").finish())));
  EXPECT_TRUE(look(*folder, times).has_saved_changed) << "the name stands for something else";
}

TEST(Folder, OneCollectsAtATime) {
  FolderBench bench;
  auto first = bench.open().value();
  auto second = bench.open().value();
  Descriptor lock = first->lock_collection();
  EXPECT_TRUE(bool(lock));
  EXPECT_FALSE(bool(second->lock_collection()));
  lock = Descriptor();
  EXPECT_TRUE(bool(second->lock_collection()));
}

// A disk that nobody may write to, as a medium or a mount has it.
class ReadOnlyCalls : public FileCalls {
 public:
  int open_at(int folder, const char* name, int flags, mode_t mode) override {
    if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) == 0) {
      return FileCalls::open_at(folder, name, flags, mode);
    }
    errno = EROFS;
    return -1;
  }
  int make_folder(int folder, const char* name, mode_t mode) override {
    struct stat status = {};
    const bool exists = status_at(folder, name, &status) == 0;
    (void)mode;
    errno = exists ? EEXIST : EROFS;
    return -1;
  }
};

TEST(Folder, AReadOnlyOneIsRead) {
  FolderBench bench;
  ASSERT_TRUE(write(*bench.open().value(), "first", Durability::cache).value());
  ReadOnlyCalls calls;
  const auto folder = Folder::open(bench.path(), calls).value();
  EXPECT_TRUE(folder->is_read_only());
  EXPECT_TRUE(bool(folder->open_record(Place::objects, kName)));
  EXPECT_FALSE(bool(write(*folder, "x", Durability::cache)));
  EXPECT_FALSE(folder->remove(Place::objects, kName));
  folder->quarantine(Place::objects, kName, "why");
  EXPECT_TRUE(std::filesystem::exists(bench.record_path()));
  EXPECT_FALSE(bool(folder->lock_collection()));
}

TEST(Folder, NamesOfSessionsAreHarmless) {
  FolderBench bench;
  const auto folder = bench.open().value();
  for (const char* name : {"", ".", "..", ".hidden", "a/b", "a b", "\xc3\xa4", "a\n"}) {
    EXPECT_FALSE(is_session_name(name));
    EXPECT_FALSE(bool(folder->save_name(name, kName)));
    EXPECT_FALSE(bool(folder->saved(name)));
    EXPECT_FALSE(bool(folder->remove_saved(name)));
  }
  EXPECT_FALSE(is_session_name(std::string(65, 'a')));
  ASSERT_TRUE(bool(folder->save_name("chat-1_B.txt", kName)));
  ASSERT_TRUE(bool(folder->save_name("chat-1_B.txt", kName)));
  EXPECT_EQ(folder->saved("chat-1_B.txt").value(), kName);
  EXPECT_EQ(folder->list_saved().value(), std::vector<std::string>{"chat-1_B.txt"});
  test::write_to(bench.path() + "/saved/broken", "not a digest");
  EXPECT_EQ(folder->saved("broken").error().code, ErrorCode::invalid_data);
  EXPECT_TRUE(bool(folder->remove_saved("broken")));
  EXPECT_EQ(digest_of_hex(hex_of(kName)), kName);
  EXPECT_FALSE(digest_of_hex(hex_of(kName).substr(1) + "G").has_value());
  for (const std::string& wrong :
       {std::string(), std::string(63, '0'), std::string(65, '0'), std::string(64, 'A'),
        std::string(64, 'g'), std::string(63, '0') + "\n"}) {
    EXPECT_FALSE(digest_of_hex(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace cairn::store::folder_test
