// A cache of encoded words for the length of one call: words repeat, and most are short.
// Direct-mapped; a new word replaces the old one. Knows nothing of how words are encoded. One cache
// serves one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "tokenize/vocabulary_index.h"

namespace cairn::tokenize {

class WordCache {
 public:
  static constexpr size_t kWordBytesMax = 24;
  static constexpr size_t kTokensMax = 8;

  // Texts of fewer bytes cost less than clearing the table.
  static constexpr size_t kWorthwhileBytes = 8192;

  explicit WordCache(size_t text_bytes) {
    if (text_bytes >= kWorthwhileBytes) entries_.resize(kEntryCount);
  }

  bool takes(std::string_view word) const {
    return !entries_.empty() && word.size() <= kWordBytesMax;
  }

  // The tokens, or none where the word is not known. REQUIRES: takes(word).
  std::span<const Token> find(std::string_view word) const {
    const Key key(word);
    const Entry& entry = entries_[key.slot()];
    if (!(entry.key == key)) return {};
    return {entry.tokens, entry.token_count};
  }

  // REQUIRES: takes(word).
  void insert(std::string_view word, std::span<const Token> tokens) {
    if (tokens.size() > kTokensMax) return;
    const Key key(word);
    Entry& entry = entries_[key.slot()];
    entry.key = key;
    entry.token_count = uint8_t(tokens.size());
    std::copy(tokens.begin(), tokens.end(), entry.tokens);
  }

 private:
  static constexpr size_t kEntryCount = 4096;  // 256 KiB: fits the second-level cache.

  struct Key {
    Key() = default;
    explicit Key(std::string_view word) : length(uint8_t(word.size())) {
      std::memcpy(parts, word.data(), word.size());
    }
    bool operator==(const Key&) const = default;
    size_t slot() const {
      return mix(parts[0] ^ mix(parts[1] ^ (parts[2] << 1) ^ length)) % kEntryCount;
    }

    uint64_t parts[3] = {};
    uint8_t length = 0;
  };
  struct Entry {
    Key key;  // Its length 0 is no word.
    uint8_t token_count = 0;
    Token tokens[kTokensMax] = {};
  };

  std::vector<Entry> entries_;
};

}  // namespace cairn::tokenize
