// The tree against a plain set of strings.
#include "tokenize/vocabulary_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace cairn::tokenize::vocabulary_trie_test {
namespace {

int32_t token_of(const VocabularyTrie& trie, std::string_view key) {
  uint32_t node = VocabularyTrie::kRoot;
  for (const char c : key) {
    node = trie.step(node, static_cast<unsigned char>(c));
    if (node == VocabularyTrie::kNowhere) return kNoToken;
  }
  return trie.token(node);
}

TEST(VocabularyTrie, EqualsASet) {
  std::mt19937 random(5);
  std::map<std::string, int32_t> expected;
  VocabularyTrie trie;
  const auto random_key = [&] {
    std::string key(1 + random() % 6, ' ');
    for (char& c : key) c = char("ab\xFF\0z"[random() % 5]);
    return key;
  };
  for (int32_t token = 0; token < 5000; ++token) {
    const std::string key = random_key();
    trie.insert(key, token);
    expected.emplace(key, token);  // The first of equal keys stays, as in the tree.
  }
  for (int i = 0; i < 20000; ++i) {
    const std::string key = random_key();
    const auto found = expected.find(key);
    EXPECT_EQ(token_of(trie, key), found == expected.end() ? kNoToken : found->second);
  }
  EXPECT_TRUE(trie.starts('a'));
  EXPECT_FALSE(trie.starts('q'));
}

}  // namespace
}  // namespace cairn::tokenize::vocabulary_trie_test
