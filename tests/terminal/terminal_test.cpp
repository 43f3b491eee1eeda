// Progress, and text for files and terminals.
#include "terminal/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "tests/scratch_folder.h"

namespace cairn::terminal::terminal_test {
namespace {

using test::contents_of;
using test::ScratchFolder;

TEST(Progress, LinesSayHowFarAndHowLong) {
  EXPECT_EQ(progress_line("loading", Progress::Unit::bytes, 1ull << 30, 3ull << 30, 2),
            "loading [#####-----------] 1.0 GiB of 3.0 GiB, 4.00 s left");
  EXPECT_EQ(progress_line("a.gguf", Progress::Unit::transfer, 1ull << 30, 3ull << 30, 2),
            "a.gguf [#####-----------] 1.0 GiB of 3.0 GiB, 512 MiB/s, 4.00 s left");
  EXPECT_EQ(progress_line("a.gguf", Progress::Unit::transfer, 1ull << 30, 0, 2),
            "a.gguf [----------------] 1.0 GiB, 512 MiB/s");
  EXPECT_EQ(progress_line("reading", Progress::Unit::tokens, 500, 2000, 10),
            "reading [####------------] 500 of 2000 tokens, 50 a second, 30 s left");
  EXPECT_EQ(progress_line("checking", Progress::Unit::operations, 10, 10, 0),
            "checking [################] 10 of 10 operations");
}

// A line that is drawn over has to be one line.
TEST(Progress, LinesFitTheTerminal) {
  const std::string name = "...e-Model-Name-8B-Instruct-Q4_K_M.gguf";
  const std::string rest = progress_line("", Progress::Unit::transfer, 1ull << 30, 3ull << 30, 100);
  EXPECT_EQ(fitted_line("a.gguf", rest, 79), "a.gguf" + rest);
  EXPECT_EQ(fitted_line(name, rest, 79),
            "...t-Q4_K_M.gguf [#####-----------] 1.0 GiB of 3.0 GiB, 10 MiB/s, 3:20 min left");
  EXPECT_EQ(fitted_line(name, rest, 60),
            "..._K_M.gguf [#####-----------] 1.0 GiB of 3.0 GiB, 10 MiB/s");
  for (size_t columns = 0; columns < 120; ++columns) {
    EXPECT_LE(fitted_line(name, rest, columns).size(), columns);
    // Two columns each.
    const std::string wide =
        fitted_line("\u6a21\u578b\u6a21\u578b\u6a21\u578b\u6a21\u578b", "", columns);
    EXPECT_LE(wide.size(), 3 * columns / 2);
  }
}

TEST(TextOut, FilesGetExactBytes) {
  const ScratchFolder folder;
  std::FILE* file = std::fopen(folder.file("out").c_str(), "wb");
  TextOut out(file);
  const std::string bytes = "a\x1b[2J\xff\n";
  out.write(bytes);
  EXPECT_TRUE(out.finish());
  std::fclose(file);
  EXPECT_EQ(contents_of(folder.file("out")), bytes);
}

// Attack 46: what a model says moves no cursor, and reaches no clipboard.
TEST(TextOut, ATerminalGetsNoControls) {
  const int outside = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(outside, 0);
  ASSERT_EQ(::grantpt(outside), 0);
  ASSERT_EQ(::unlockpt(outside), 0);
  // Not by fopen(), which makes the terminal this process's own where it has none, and its end
  // a signal that ends the process.
  std::FILE* inside = ::fdopen(::open(::ptsname(outside), O_RDWR | O_NOCTTY), "r+");
  ASSERT_NE(inside, nullptr);
  TextOut out(inside);
  out.write("a\x1b]52;c;aGk=\x07\x1b[2J\xe2\x80\xae\xc2\x9bz\n");
  EXPECT_TRUE(out.finish());
  char bytes[512];
  const ssize_t count = ::read(outside, bytes, sizeof(bytes));
  const std::string shown(bytes, size_t(std::max(count, ssize_t(0))));
  EXPECT_TRUE(shown.starts_with("a") && shown.ends_with("z\r\n")) << shown;
  for (const char* raw : {"\x1b", "\x07", "\xe2\x80\xae", "\xc2\x9b"}) {
    EXPECT_EQ(shown.find(raw), std::string::npos) << raw;
  }
  std::fclose(inside);
  ::close(outside);
}

TEST(TextOut, AFullDiskIsAnError) {
  std::FILE* full = std::fopen("/dev/full", "wb");
  if (full == nullptr) GTEST_SKIP() << "no /dev/full here";
  TextOut out(full);
  out.write("text");
  EXPECT_FALSE(out.finish());
  std::fclose(full);
}

}  // namespace
}  // namespace cairn::terminal::terminal_test
