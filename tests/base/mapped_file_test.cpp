// Mapping, refusing, dropping; and what happens when a mapped file shrinks.
#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <thread>
#include <utility>

#include "base/output_file.h"
#include "base/threads/blocked_signals.h"
#include "tests/scratch_folder.h"

namespace cairn::mapped_file_test {
namespace {

class Mapped : public testing::Test {
 protected:
  std::string write(const char* name, const std::string& text) {
    const std::string path = folder_.file(name);
    EXPECT_TRUE(write_file(path, std::as_bytes(std::span(text))));
    return path;
  }

  test::ScratchFolder folder_;
};

std::string text_of(const MappedFile& file) {
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

TEST_F(Mapped, ShowsTheWholeFile) {
  const std::string text = std::string(10000, 'a') + "end";
  const std::string path = write("a", text);
  Result<MappedFile> file = MappedFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(text_of(*file), text);
  EXPECT_EQ(file->path(), path);
  file->will_need();
  MappedFile moved = std::move(*file);
  EXPECT_EQ(text_of(moved), text);
  EXPECT_TRUE(file->bytes().empty());
  moved = MappedFile::open(write("b", "other")).value();
  EXPECT_EQ(text_of(moved), "other");
}

TEST_F(Mapped, RefusesWhatIsNoFile) {
  EXPECT_EQ(MappedFile::open(folder_.file("none")).error().code, ErrorCode::not_found);
  EXPECT_EQ(MappedFile::open(folder_.path()).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(MappedFile::open("/dev/null").error().code, ErrorCode::invalid_argument);
  const Error empty = MappedFile::open(write("empty", "")).error();
  EXPECT_EQ(empty.code, ErrorCode::invalid_argument);
  EXPECT_NE(empty.message.find("0 bytes"), std::string::npos) << empty.message;
  const std::string fifo = folder_.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(fifo).error().code, ErrorCode::invalid_argument) << "does not block";
}

TEST_F(Mapped, DroppedPagesCanBeReadAgain) {
  std::string text(5 * 4096 + 100, 'x');
  text.back() = 'z';
  Result<MappedFile> file = MappedFile::open(write("a", text));
  ASSERT_TRUE(file);
  EXPECT_EQ(text_of(*file), text);
  file->forget(0, text.size());
  file->prefer_huge_pages();
  file->will_need(4096, text.size() - 4096);
  EXPECT_EQ(text_of(*file), text);
  file->drop(0, text.size());
  file->drop(5000, 10);
  file->drop(text.size(), 0);
  EXPECT_EQ(text_of(*file), text);
}

// Descriptors for as many files as there may be mappings, and some more.
void allow_many_files() {
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::max(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 4096));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// No mapping is made that the guard does not know.
TEST_F(Mapped, MoreThanTheTableHoldsAreAnError) {
  allow_many_files();
  const std::string path = write("a", "text");
  std::vector<MappedFile> files;
  Result<MappedFile> next = MappedFile::open(path);
  while (next && files.size() < 3000) {
    files.push_back(std::move(next).value());
    next = MappedFile::open(path);
  }
  ASSERT_FALSE(next);
  EXPECT_GE(files.size(), 1000u);
  for (const MappedFile& file : files) EXPECT_EQ(text_of(file), "text");
  files.pop_back();
  EXPECT_TRUE(MappedFile::open(path)) << "a place is free again";
}

using MappedDeathTest = Mapped;

// Attack 8.
TEST_F(MappedDeathTest, AShrunkFileIsNamedAndTheProcessEndsWith3) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path = write("a", std::string(3 * 4096, 'x'));
  const auto read_past_the_end = [&] {
    install_mapping_guard();
    install_mapping_guard();
    Result<MappedFile> file = MappedFile::open(path);
    if (!file || ::truncate(path.c_str(), 10) != 0) ::_exit(1);
    const volatile std::byte* const data = file->bytes().data();
    (void)data[2 * 4096];
    ::_exit(0);
  };
  EXPECT_EXIT(read_past_the_end(), testing::ExitedWithCode(3), "cairn: .*a: the file shrank");
}

// Threads of an engine receive no signals but those of their own faults.
TEST_F(MappedDeathTest, AThreadWithoutSignalsIsGuardedToo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path = write("a", std::string(3 * 4096, 'x'));
  const auto read_past_the_end = [&] {
    install_mapping_guard();
    Result<MappedFile> file = MappedFile::open(path);
    if (!file || ::truncate(path.c_str(), 10) != 0) ::_exit(1);
    const BlockedSignals blocked;
    std::thread([&] {
      const volatile std::byte* const data = file->bytes().data();
      (void)data[2 * 4096];
    }).join();
    ::_exit(0);
  };
  EXPECT_EXIT(read_past_the_end(), testing::ExitedWithCode(3), "cairn: .*a: the file shrank");
}

TEST_F(MappedDeathTest, TheThousandthMappingIsGuardedToo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path = write("a", std::string(3 * 4096, 'x'));
  const auto read_past_the_end = [&] {
    allow_many_files();
    install_mapping_guard();
    std::vector<MappedFile> files;
    for (int i = 0; i < 1000; ++i) {
      Result<MappedFile> file = MappedFile::open(path);
      if (!file) ::_exit(1);
      files.push_back(std::move(file).value());
    }
    if (::truncate(path.c_str(), 10) != 0) ::_exit(1);
    const volatile std::byte* const data = files.back().bytes().data();
    (void)data[2 * 4096];
    ::_exit(0);
  };
  EXPECT_EXIT(read_past_the_end(), testing::ExitedWithCode(3), "cairn: .*a: the file shrank");
}

TEST_F(MappedDeathTest, AnotherSigbusKeepsItsDefaultAction) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path = write("a", "text");
  const auto raise_it = [&] {
    install_mapping_guard();
    Result<MappedFile> file = MappedFile::open(path);
    if (!file) ::_exit(1);
    ::raise(SIGBUS);
    ::_exit(0);
  };
  EXPECT_EXIT(raise_it(), testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace cairn::mapped_file_test
