// Files that appear whole or not at all.
#include "base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "tests/scratch_folder.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class File : public testing::Test {
 protected:
  std::string path(const char* name) const { return folder_.file(name); }
  size_t file_count() const {
    return size_t(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  test::ScratchFolder folder_;
};

TEST_F(File, ReadsBackWhatWasWritten) {
  std::string text = "one\0two";
  text.resize(100000, 'x');
  ASSERT_TRUE(write_file_aside(path("a"), bytes_of(text)));
  Result<std::string> back = read_file(path("a"), 100000);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, text);
  EXPECT_EQ(file_count(), 1u) << "nothing is left aside";
  ASSERT_TRUE(write_file_aside(path("a"), bytes_of("")));
  EXPECT_EQ(read_file(path("a"), 0).value(), "");
}

TEST_F(File, RefusesWhatItCannotRead) {
  ASSERT_TRUE(write_file_aside(path("a"), bytes_of("12345")));
  const Error large = read_file(path("a"), 4).error();
  EXPECT_EQ(large.code, ErrorCode::no_room);
  EXPECT_NE(large.message.find("at most 4 bytes, found 5"), std::string::npos) << large.message;
  EXPECT_EQ(read_file(path("none"), 9).error().code, ErrorCode::not_found);
  EXPECT_EQ(read_file(folder_.path(), 9).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(read_file("/dev/zero", 9).error().code, ErrorCode::invalid_argument);
}

TEST_F(File, KernelFilesWithoutASizeAreReadAndLimited) {
  Result<std::string> status = read_file("/proc/self/status", 1 << 16);
  ASSERT_TRUE(status);
  EXPECT_NE(status->find("Pid:"), std::string::npos);
  EXPECT_EQ(read_file("/proc/self/status", 10).error().code, ErrorCode::no_room);
}

TEST_F(File, TheWriterKeepsTheOldFileUntilCommit) {
  ASSERT_TRUE(write_file_aside(path("a"), bytes_of("old")));
  Result<FileWriter> writer = FileWriter::open(path("a"));
  ASSERT_TRUE(writer) << writer.error().message;
  ASSERT_TRUE(writer->append(bytes_of("....world")));
  ASSERT_TRUE(writer->pwrite(0, bytes_of("new ")));
  ASSERT_TRUE(writer->append(bytes_of("!")));
  EXPECT_EQ(writer->appended(), 10u);
  EXPECT_EQ(read_file(path("a"), 100).value(), "old");
  ASSERT_TRUE(writer->commit());
  EXPECT_EQ(read_file(path("a"), 100).value(), "new world!");
}

TEST_F(File, AnUncommittedWriterLeavesNothing) {
  {
    Result<FileWriter> writer = FileWriter::open(path("a"));
    ASSERT_TRUE(writer);
    FileWriter moved = std::move(*writer);
    ASSERT_TRUE(moved.append(bytes_of("half")));
    EXPECT_EQ(file_count(), 1u);
  }
  EXPECT_EQ(file_count(), 0u);
}

TEST_F(File, WritingWhereThereIsNoFolderIsAnError) {
  const Status status = write_file_aside(path("none/a"), bytes_of("x"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::not_found);
  EXPECT_NE(status.error().message.find("none/a"), std::string::npos);
}

}  // namespace
}  // namespace cairn
