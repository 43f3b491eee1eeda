// Pieces hold every page and state once, on a grid that common beginnings share.
#include "store/pieces.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/store/store_bench.h"

namespace cairn::store::pieces_test {
namespace {

TEST(Pieces, HoldEveryBlockOnce) {
  for (const toy::ToyModel& model : toy::store_models()) {
    toy::StoreBench bench(model);
    for (const int32_t length : {1, 31, 32, 33, 64, 65, 500}) {
      memory::Sequence sequence = bench.here.memory->new_sequence();
      ASSERT_TRUE(bool(bench.here.read(sequence, memory::toy::tokens(length), {length})));
      const memory::Outline outline = memory::Archive::outline_of(sequence);
      const memory::Layout& layout = bench.here.memory->layout();
      std::map<std::pair<int32_t, int32_t>, int32_t> pages;
      std::set<int32_t> states;
      for (const Piece& piece : pieces_of(outline, layout)) {
        EXPECT_LE(piece.end, length);
        EXPECT_LT(piece.begin, piece.end);
        if (piece.type == RecordType::state) states.insert(piece.end);
        for (int32_t page = piece.pages.first; page < piece.pages.end(); ++page) {
          ++pages[{piece.group, page}];
        }
        const bool is_whole = piece.end % kPageTokens == 0;
        EXPECT_TRUE(piece.type != RecordType::extent || piece.is_partial == !is_whole);
      }
      size_t held = 0;
      for (size_t group = 0; group < outline.runs.size(); ++group) {
        for (const memory::PageRun& run : outline.runs[group]) held += size_t(run.count);
      }
      EXPECT_EQ(pages.size(), held);
      for (const auto& [page, count] : pages) EXPECT_EQ(count, 1);
      const std::vector<int32_t> positions = outline.state_positions();
      EXPECT_TRUE(std::ranges::equal(states, positions));
    }
  }
}

TEST(Pieces, CommonBeginningsHaveCommonNames) {
  toy::StoreBench bench(toy::full_model(), {});
  const memory::Layout& layout = bench.here.memory->layout();
  const auto names_of = [&](std::vector<Token> text) {
    memory::Outline outline;
    outline.tokens = std::move(text);
    outline.log_begin = outline.length();
    outline.runs.assign(layout.groups.size(), {});
    const int32_t full = layout.kv_planes[0].group;
    outline.runs[size_t(full)] = {{.first = 0, .count = (outline.length() + 31) / 32}};
    const Chain chain(toy::kFingerprint, outline.tokens);
    std::set<Sha256Digest> names;
    for (const Piece& piece : pieces_of(outline, layout)) {
      names.insert(name_of(header_of(piece, chain, layout)));
    }
    return names;
  };
  // A record has 64 pages at most: 2048 tokens.
  std::vector<Token> text = memory::toy::tokens(5000);
  const std::set<Sha256Digest> whole = names_of(text);
  EXPECT_EQ(whole.size(), 4u);  // Two of the grid, the whole pages behind them, the last page.
  text[4200] = Token(7777);
  std::vector<Sha256Digest> common;
  std::ranges::set_intersection(whole, names_of(text), std::back_inserter(common));
  EXPECT_EQ(common.size(), 2u);
  text[100] = Token(7777);
  common.clear();
  std::ranges::set_intersection(whole, names_of(text), std::back_inserter(common));
  EXPECT_TRUE(common.empty());
}

}  // namespace
}  // namespace cairn::store::pieces_test
