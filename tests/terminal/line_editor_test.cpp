// Lines that are typed at a terminal, while its size changes.
#include "terminal/line_editor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>

namespace cairn::terminal::line_editor_test {
namespace {

// The side of a terminal that a person sees.
class Screen {
 public:
  Screen() : outside_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    EXPECT_EQ(::grantpt(outside_), 0);
    EXPECT_EQ(::unlockpt(outside_), 0);
    resize(80);
    inside_ = ::fdopen(::open(::ptsname(outside_), O_RDWR | O_NOCTTY), "r+");
  }
  ~Screen() {
    std::fclose(inside_);
    ::close(outside_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  std::FILE* inside() const { return inside_; }
  void type(const std::string& keys) const {
    EXPECT_EQ(::write(outside_, keys.data(), keys.size()), ssize_t(keys.size()));
  }
  void resize(int columns) const {
    const winsize size{.ws_row = 24, .ws_col = uint16_t(columns), .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(outside_, TIOCSWINSZ, &size), 0);
  }
  // Until this is drawn; false: it is not.
  bool waits_for(const std::string& text) const {
    constexpr int kLongEnoughMilliseconds = 10'000;
    std::string seen;
    while (seen.find(text) == seen.npos) {
      pollfd drawn{.fd = outside_, .events = POLLIN, .revents = 0};
      if (::poll(&drawn, 1, kLongEnoughMilliseconds) <= 0) return false;
      char byte = 0;
      if (::read(outside_, &byte, 1) != 1) return false;
      seen += byte;
    }
    return true;
  }

 private:
  int outside_;
  std::FILE* inside_ = nullptr;
};

TEST(LineEditor, ALineIsDrawnAnewWhereTheTerminalGetsAnotherSize) {
  const Screen screen;
  LineEditor editor(screen.inside(), screen.inside(), "");
  std::string line;
  LineEditor::Event event = LineEditor::Event::end;
  std::thread reading([&] { event = editor.read("> ", line, 1000); });
  EXPECT_TRUE(screen.waits_for("> "));
  screen.type("abc\xe6\xbc\xa2\xff\xe6z");  // A wide letter, and bytes that are none.
  EXPECT_TRUE(screen.waits_for("z"));
  for (const int columns : {40, 120, 5, 1, 80}) {
    screen.resize(columns);
    EXPECT_TRUE(screen.waits_for("z")) << columns;
  }
  screen.type("d\r");
  reading.join();
  EXPECT_EQ(event, LineEditor::Event::line);
  EXPECT_EQ(line, "abc\xe6\xbc\xa2zd");
}

}  // namespace
}  // namespace cairn::terminal::line_editor_test
