// The drawing of a conversation's memory, on sequences whose pages and states are known.
#include "terminal_chat/memory_map.h"

#include <gtest/gtest.h>

#include <sstream>

#include "backends/host/kv_page.h"
#include "device/host_memory.h"

namespace cairn::terminal_chat::memory_map_test {
namespace {

constexpr int32_t kCells = 32;

// The lines of groups, behind the head line.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  EXPECT_EQ(begin, text.size()) << "each line is ended";
  EXPECT_TRUE(lines.front().starts_with("kind ")) << text;
  lines.erase(lines.begin());
  return lines;
}

// The words of a line before its cells, with single blanks.
std::string figures(const std::string& line) {
  std::istringstream words(line);
  std::string text, word;
  while (words >> word && !word.starts_with("█") && !word.starts_with("░") && word != "|") {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

std::string repeated(const std::string& cell, int32_t count) {
  std::string text;
  for (int32_t index = 0; index < count; ++index) text += cell;
  return text;
}

// One layer of each kind; what is read is never computed, since only its places are drawn.
class MemoryMapTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::vector<State>> layers{
        {State::full(1, 32, 32)}, {State::windowed(32, 1, 32, 32)}, {State::recurrent({4})}};
    memory_ = memory::Memory::create(
                  memory::Layout::make(layers, host::kPageFormat, KvType::f16, KvType::f16, 8),
                  {.budget_bytes = size_t(16) << 20, .context_tokens_max = 4096}, device_)
                  .value();
    sequence_ = memory_->new_sequence();
  }

  void read(int32_t count) {
    const std::vector<Token> tokens(size_t(count), Token(1));
    memory::Transaction transaction =
        memory_->begin(sequence_, {.tokens = tokens, .keeps_hidden = true}).value();
    transaction.commit(count);
  }

  HostMemory device_;
  std::unique_ptr<memory::Memory> memory_;
  memory::Sequence sequence_;
};

TEST_F(MemoryMapTest, NothingIsKeptOfNothing) {
  EXPECT_EQ(memory_map(*memory_, sequence_), "nothing is kept yet\n");
}

TEST_F(MemoryMapTest, ALineForEachGroupThatSaysWhatIsHeldWhere) {
  read(512);
  ASSERT_TRUE(memory_->keep_anchor(sequence_, memory::AnchorKind::message_start));
  read(512);
  memory_->protect_from(sequence_, 1024);
  const std::vector<std::string> lines = lines_of(memory_map(*memory_, sequence_));
  ASSERT_EQ(lines.size(), memory_->layout().groups.size());
  EXPECT_EQ(figures(lines[0]), "full 1024 32 pages 0 128 KiB");
  EXPECT_TRUE(lines[0].ends_with("  " + repeated("█", kCells))) << lines[0];
  // A cell is 32 tokens, a page: the window before the anchor, and the one before the end.
  EXPECT_EQ(figures(lines[1]), "window 32 64 2 pages 0 8.0 KiB");
  EXPECT_TRUE(lines[1].ends_with(repeated("░", 15) + "█" + repeated("░", 15) + "█")) << lines[1];
  EXPECT_TRUE(figures(lines[2]).starts_with("recurrent 2 states 0 ")) << lines[2];
  EXPECT_TRUE(lines[2].ends_with("  " + std::string(16, ' ') + "|" + std::string(14, ' ') + "|"))
      << lines[2];
  EXPECT_TRUE(figures(lines[3]).starts_with("hidden 2 rows 0 ")) << lines[3];
}

TEST_F(MemoryMapTest, HalfHeldCellsAreDrawnLighter) {
  read(2048 + 32);
  memory_->protect_from(sequence_, sequence_.length());
  const std::vector<std::string> lines = lines_of(memory_map(*memory_, sequence_));
  // A cell is 65 tokens; the last 32 are held.
  EXPECT_TRUE(lines[1].ends_with(repeated("░", 31) + "▒")) << lines[1];
}

TEST_F(MemoryMapTest, BlocksOfTwoSequencesAreShared) {
  read(96);
  const memory::Sequence twin = sequence_;
  const std::vector<std::string> lines = lines_of(memory_map(*memory_, sequence_));
  EXPECT_EQ(figures(lines[0]), "full 96 3 pages 3 12 KiB");
  EXPECT_TRUE(figures(lines[2]).starts_with("recurrent 1 states 1 ")) << lines[2];
}

TEST_F(MemoryMapTest, OneTokenIsDrawnToo) {
  read(1);
  for (const std::string& line : lines_of(memory_map(*memory_, sequence_))) {
    EXPECT_FALSE(line.ends_with("░")) << line;
  }
}

}  // namespace
}  // namespace cairn::terminal_chat::memory_map_test
