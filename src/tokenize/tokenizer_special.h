// Special tokens in a text: finds them, leftmost and longest first, and only where the text may
// contain them. Knows nothing of how the text between them is encoded. Thread-safe: constant.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tokenize/vocabulary.h"
#include "tokenize/vocabulary_trie.h"

namespace cairn::tokenize {

// How far a stretch of text is believed; each level allows all that the one before it does.
enum class Trust : uint8_t {
  user,   // Untrusted: user-defined tokens only, and none that looks like markup.
  plain,  // User-defined tokens.
  full,   // All special tokens.
};

struct Region {
  size_t end;  // It begins where the one before it ends.
  Trust trust;
};

// A stretch of text, or a special token.
struct Fragment {
  size_t begin;
  size_t end;
  int32_t token;  // kNoToken: text.
};

class SpecialMatcher {
 public:
  // `strips_right`: phi-3's special tokens swallow the spaces after them.
  SpecialMatcher(const Vocabulary& vocabulary, bool strips_right);

  // Appends the fragments of the text, in order; regions cover it, ascending.
  void split(std::string_view text, std::span<const Region> regions,
             std::vector<Fragment>& fragments) const;

 private:
  struct Match {
    int32_t token = kNoToken;
    size_t end = 0;
  };

  Match longest_at(std::string_view text, size_t at, std::span<const Region> regions) const;

  const Vocabulary& vocabulary_;
  bool strips_right_;
  VocabularyTrie trie_;
};

}  // namespace cairn::tokenize
