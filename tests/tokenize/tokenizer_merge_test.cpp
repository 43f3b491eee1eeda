// The row of joins against the definition carried out naively, and its work counted.
#include "tokenize/tokenizer_merge.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace cairn::tokenize::tokenizer_merge_test {
namespace {

using Rules = std::map<std::pair<int32_t, int32_t>, Joined>;

Joined look_up(const Rules& rules, int32_t left, int32_t right) {
  const auto found = rules.find({left, right});
  return found == rules.end() ? Joined{} : found->second;
}

// Again and again the best pair of all, the leftmost of equals.
std::vector<int32_t> merged_naively(std::vector<int32_t> tokens, const Rules& rules) {
  for (;;) {
    size_t best = tokens.size();
    Joined best_joined;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const Joined joined = look_up(rules, tokens[i], tokens[i + 1]);
      if (joined.priority < best_joined.priority) {
        best = i;
        best_joined = joined;
      }
    }
    if (best == tokens.size()) return tokens;
    tokens[best] = best_joined.token;
    tokens.erase(tokens.begin() + std::ptrdiff_t(best) + 1);
  }
}

std::vector<int32_t> merged(const std::vector<int32_t>& tokens, const Rules& rules,
                            MergeBuffer& buffer) {
  buffer.symbols.clear();
  for (uint32_t i = 0; i < tokens.size(); ++i) buffer.symbols.push_back({i, i + 1, tokens[i]});
  buffer.merge([&](const Symbol& left, const Symbol& right) {
    return look_up(rules, left.token, right.token);
  });
  std::vector<int32_t> out;
  for (const Symbol& symbol : buffer.symbols) out.push_back(symbol.token);
  return out;
}

TEST(MergeBuffer, EqualsTheDefinition) {
  std::mt19937 random(11);
  MergeBuffer buffer;
  for (int round = 0; round < 2000; ++round) {
    // Priorities at random, equal ones and joins that come before those that made them included.
    Rules rules;
    const int32_t letter_count = 1 + int32_t(random() % 4);
    int32_t token_count = letter_count;
    for (int i = 0; i < 30; ++i) {
      const auto left = int32_t(random() % uint32_t(token_count));
      const auto right = int32_t(random() % uint32_t(token_count));
      if (rules.emplace(std::pair(left, right), Joined{uint32_t(random() % 20), token_count})
              .second) {
        ++token_count;
      }
    }
    std::vector<int32_t> word(random() % 80);
    for (int32_t& token : word) token = int32_t(random() % uint32_t(letter_count));
    ASSERT_EQ(merged(word, rules, buffer), merged_naively(word, rules)) << round;
  }
}

TEST(MergeBuffer, WorkGrowsLikeTheWord) {
  Rules rules;
  int32_t token = 2;
  for (int32_t left = 0; left < 40; ++left) {
    for (int32_t right = 0; right < 40; ++right) {
      if ((left * 7 + right * 3) % 5 < 2) rules[{left, right}] = {uint32_t(token), token};
      ++token;
    }
  }
  std::mt19937 random(3);
  const auto steps_of = [&](size_t length, bool is_random) {
    MergeBuffer buffer;
    std::vector<int32_t> word(length, 0);
    for (int32_t& letter : word) letter = is_random ? int32_t(random() % 40) : 0;
    merged(word, rules, buffer);
    return double(buffer.step_count) / double(length);
  };
  for (const bool is_random : {false, true}) {
    const double small = steps_of(10'000, is_random);
    const double large = steps_of(1'000'000, is_random);
    EXPECT_LT(large, small * 1.1);
    EXPECT_LT(large, 8.0);
  }
}

TEST(MergeBuffer, LeavesShortWordsAlone) {
  MergeBuffer buffer;
  buffer.merge([](const Symbol&, const Symbol&) { return Joined{}; });
  EXPECT_TRUE(buffer.symbols.empty());
  buffer.symbols = {{0, 1, 7}};
  buffer.merge([](const Symbol&, const Symbol&) { return Joined{0, 1}; });
  ASSERT_EQ(buffer.symbols.size(), 1u);
  EXPECT_EQ(buffer.symbols[0].token, 7);
}

}  // namespace
}  // namespace cairn::tokenize::tokenizer_merge_test
