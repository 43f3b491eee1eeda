// Look-ups by beginnings, beside one that compares all tokens; who needs which record; bytes.
#include "store/index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "memory/common_prefix.h"
#include "tests/store/store_bench.h"

namespace cairn::store::index_test {
namespace {

struct Stored {
  std::vector<Token> text;
  Sha256Digest name{};
};

IndexEntry entry_for(const std::vector<Token>& text, int64_t number) {
  const Chain chain(toy::kFingerprint, text);
  IndexEntry entry{.name = Sha256().add(uint64_t(number)).finish(),
                   .fingerprint = toy::kFingerprint,
                   .key_at_end = chain.key_at(int32_t(text.size())),
                   .length = int32_t(text.size()),
                   .manifest_bytes = 100,
                   .used_ns = number};
  for (int32_t link = 1; link <= chain.link_count(); ++link) {
    entry.links.push_back(short_key(chain.link(link)));
  }
  entry.records = {Sha256().add("shared").finish(), Sha256().add(uint64_t(number + 1000)).finish()};
  return entry;
}

// Texts of a small alphabet of whole links, so that many begin alike.
std::vector<Token> random_text(std::mt19937& random) {
  std::vector<Token> text;
  for (auto links = random() % 6; links > 0; --links) {
    text.resize(text.size() + kChainTokens, Token(int32_t(random() % 2)));
  }
  text.resize(text.size() + random() % kChainTokens, Token(5));
  if (text.empty()) text.push_back(Token(1));
  return text;
}

TEST(Index, TheLongestCommonBeginningIsAmongTheCandidates) {
  std::mt19937 random(1);
  Index index;
  std::vector<Stored> stored;
  for (int64_t round = 0; round < 2000; ++round) {
    if (!stored.empty() && random() % 3 == 0) {
      const size_t gone = random() % stored.size();
      index.remove(stored[gone].name);
      stored.erase(stored.begin() + std::ptrdiff_t(gone));
    } else {
      const std::vector<Token> text = random_text(random);
      IndexEntry entry = entry_for(text, round);
      stored.push_back({.text = text, .name = entry.name});
      index.add(std::move(entry));
    }
    ASSERT_EQ(index.entry_count(), stored.size());
    const std::vector<Token> prompt = random_text(random);
    int32_t longest = 0;
    for (const Stored& other : stored) {
      longest = std::max(longest, memory::common_prefix(other.text, prompt) / kChainTokens);
    }
    const auto candidates = index.candidates(Chain(toy::kFingerprint, prompt));
    EXPECT_EQ(candidates.empty() ? 0 : candidates.front().links, longest);
    EXPECT_LE(candidates.size(), 20u);
    EXPECT_TRUE(std::ranges::is_sorted(candidates, std::greater{}, &Index::Candidate::links));
  }
}

TEST(Index, ASequenceCoversItsBeginnings) {
  const std::vector<Token> text = memory::toy::tokens(200);
  Index index;
  int64_t number = 0;
  for (const size_t length : {20, 32, 100, 150}) {
    IndexEntry entry = entry_for({text.begin(), text.begin() + ptrdiff_t(length)}, ++number);
    if (length == 150) entry.borders = {40, 140};
    index.add(std::move(entry));
  }
  std::vector<Token> other = text;
  other[15] = Token(999);
  index.add(entry_for({other.begin(), other.begin() + 100}, ++number));
  const Chain chain(toy::kFingerprint, text);
  const std::vector<int32_t> borders = {40, 140, 180}, fewer = {40};
  EXPECT_EQ(index.covered_by(chain, 200, borders).size(), 4u);
  EXPECT_EQ(index.covered_by(chain, 200, fewer).size(), 3u);
  EXPECT_EQ(index.covered_by(chain, 99, borders).size(), 2u);
}

TEST(Index, CountsBytesAndWhoNeedsThem) {
  Index index;
  const IndexEntry first = entry_for(memory::toy::tokens(40), 1);
  const IndexEntry second = entry_for(memory::toy::tokens(40, 9), 2);
  for (const Sha256Digest& record : first.records) index.note_record(record, 1000, 5);
  index.note_record(second.records[1], 500, 5);
  index.note_record(second.records[1], 600, 5);  // Written again.
  EXPECT_EQ(index.total_bytes(), 2600u);
  EXPECT_EQ(index.unneeded_records(6).size(), 3u);
  EXPECT_TRUE(index.unneeded_records(5).empty());
  index.add(first);
  index.add(second);
  index.add(second);
  EXPECT_EQ(index.total_bytes(), 2800u);
  EXPECT_TRUE(index.unneeded_records(6).empty());
  EXPECT_EQ(index.oldest_first().front()->name, first.name);
  index.remove(first.name);
  EXPECT_TRUE(index.is_needed(first.records[0]));  // By the second.
  EXPECT_FALSE(index.is_needed(first.records[1]));
  EXPECT_EQ(index.unneeded_records(6), std::vector<Sha256Digest>{first.records[1]});
  index.forget_record(first.records[1]);
  index.forget_record(first.records[1]);
  EXPECT_EQ(index.total_bytes(), 1700u);
  index.remove(second.name);
  EXPECT_EQ(index.find(second.name), nullptr);
  EXPECT_EQ(index.total_bytes(), 1600u);
}

// Ten thousand conversations with one system prompt: a look-up looks at few of them.
TEST(Index, ManySequencesOfOneBeginning) {
  Index index;
  std::vector<Token> text = memory::toy::tokens(320);
  for (int32_t number = 0; number < 10'000; ++number) {
    text[300] = Token(1000 + number);
    index.add(entry_for(text, number));
  }
  text[300] = Token(1);
  const auto candidates = index.candidates(Chain(toy::kFingerprint, text));
  EXPECT_EQ(candidates.size(), 4u);
  EXPECT_EQ(candidates.front().links, 9);
  EXPECT_EQ(index.entry_count(), 10'000u);
}

}  // namespace
}  // namespace cairn::store::index_test
