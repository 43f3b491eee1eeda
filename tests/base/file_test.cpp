// Reading whole files and streams, within limits.
#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/scratch_folder.h"

namespace cairn::file_test {
namespace {

class File : public testing::Test {
 protected:
  std::string path(const char* name) const { return folder_.file(name); }

  test::ScratchFolder folder_;
};

TEST_F(File, ReadsBackWhatWasWritten) {
  std::string text = "one\0two";
  text.resize(100000, 'x');
  test::write_to(path("a"), text);
  Result<std::string> back = read_file(path("a"), 100000);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, text);
  test::write_to(path("a"), "");
  EXPECT_EQ(read_file(path("a"), 0).value(), "");
}

TEST_F(File, RefusesWhatItCannotRead) {
  test::write_to(path("a"), "12345");
  const Error large = read_file(path("a"), 4).error();
  EXPECT_EQ(large.code, ErrorCode::no_room);
  EXPECT_NE(large.message.find("at most 4 bytes, found 5"), std::string::npos) << large.message;
  EXPECT_EQ(read_file(path("none"), 9).error().code, ErrorCode::not_found);
  EXPECT_EQ(read_file(folder_.path(), 9).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(read_file("/dev/zero", 9).error().code, ErrorCode::invalid_argument);
}

TEST_F(File, InputsArePipesAsWell) {
  test::write_to(path("a"), "12345");
  EXPECT_EQ(read_input(path("a"), 5).value(), "12345");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "piped", 5), 5);
  close(ends[1]);
  EXPECT_EQ(read_input("/dev/fd/" + std::to_string(ends[0]), 5).value(), "piped");
  close(ends[0]);
  // Nobody is there to write: no waiting.
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(read_input(path("fifo"), 5).value(), "");
  EXPECT_EQ(read_file(path("fifo"), 5).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(read_input("/dev/zero", 9).error().message,
            "/dev/zero: expected a regular file or a pipe, found something else");
}

TEST_F(File, KernelFilesWithoutASizeAreReadAndLimited) {
  Result<std::string> status = read_file("/proc/self/status", 1 << 16);
  ASSERT_TRUE(status);
  EXPECT_NE(status->find("Pid:"), std::string::npos);
  EXPECT_EQ(read_file("/proc/self/status", 10).error().code, ErrorCode::no_room);
}

TEST_F(File, TheBeginningIsAsLongAsTheFileAtMost) {
  test::write_to(path("a"), "GGUF and more");
  EXPECT_EQ(read_beginning(path("a"), 4).value(), "GGUF");
  EXPECT_EQ(read_beginning(path("a"), 100).value(), "GGUF and more");
  EXPECT_EQ(read_beginning("/dev/zero", 4).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(read_beginning(path("none"), 4).error().code, ErrorCode::not_found);
}

TEST_F(File, LinesEndAtTheirLimit) {
  test::write_to(path("a"), "one\n\n12345\n123456\n");
  std::FILE* stream = std::fopen(path("a").c_str(), "rb");
  std::string line;
  EXPECT_TRUE(read_line(stream, line, 5).value());
  EXPECT_EQ(line, "one");
  EXPECT_TRUE(read_line(stream, line, 5).value());
  EXPECT_EQ(line, "");
  EXPECT_TRUE(read_line(stream, line, 5).value());
  EXPECT_EQ(line, "12345");
  EXPECT_EQ(read_line(stream, line, 5).error().code, ErrorCode::no_room);
  std::fclose(stream);
  test::write_to(path("b"), "without an end");
  stream = std::fopen(path("b").c_str(), "rb");
  EXPECT_TRUE(read_line(stream, line, 99).value());
  EXPECT_EQ(line, "without an end");
  EXPECT_FALSE(read_line(stream, line, 99).value());
  std::fclose(stream);
}

}  // namespace
}  // namespace cairn::file_test
