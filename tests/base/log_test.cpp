// Lines on stderr: the level decides, and one message is one harmless line.
#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/scratch_folder.h"

namespace cairn::log_test {
namespace {

template <class Action>
std::string stderr_of(Action action) {
  testing::internal::CaptureStderr();
  action();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, WritesWhatTheLevelLetsThrough) {
  log::set_level(log::Level::warning);
  const std::string out = stderr_of([] {
    log::info("quiet {}", 1);
    log::warning("loud {}", 2);
    log::error("louder {}", 3);
  });
  EXPECT_EQ(out.find("quiet"), std::string::npos) << out;
  EXPECT_NE(out.find("loud 2"), std::string::npos) << out;
  EXPECT_NE(out.find("louder 3"), std::string::npos) << out;
  log::set_level(log::Level::off);
  EXPECT_EQ(stderr_of([] { log::error("nothing"); }), "");
  log::set_level(log::Level::debug);
  EXPECT_NE(stderr_of([] { log::debug("all"); }).find("all"), std::string::npos);
  log::set_level(log::Level::info);
}

TEST(Log, OneMessageIsOneHarmlessLine) {
  const std::string out = stderr_of([] { log::error("{}", "a\nforged line\t\x1b[2J{}"); });
  EXPECT_NE(out.find("a\\nforged line\\t\\x1b[2J{}"), std::string::npos) << out;
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1) << out;
}

TEST(Log, LongMessagesAreCut) {
  const std::string out = stderr_of([] { log::error("{}", std::string(100000, '\n')); });
  EXPECT_LT(out.size(), 8192u + 200u);
  EXPECT_GT(out.size(), 8000u);
}

// Lines behind a model would destroy it.
TEST(Log, IsNotAppendedToWhatIsNoText) {
  const test::ScratchFolder folder;
  const std::string model = "GGUF" + std::string(12, '\0');
  test::write_to(folder.file("model.gguf"), model);
  const Status set = log::set_file(folder.file("model.gguf"));
  ASSERT_FALSE(bool(set));
  EXPECT_EQ(set.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(test::contents_of(folder.file("model.gguf")), model);
}

}  // namespace
}  // namespace cairn::log_test
