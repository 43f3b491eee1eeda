// Words of characters, for vocabularies that fall back to bytes (SPM, Gemma 4): a text is cut where
// no token can span, each part is joined from its characters, and characters that are no token
// become bytes. Knows nothing of how joined forms are found. One object serves one thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tokenize/tokenizer_cache.h"
#include "tokenize/tokenizer_merge.h"
#include "tokenize/tokenizer_pairs.h"
#include "tokenize/vocabulary.h"

namespace cairn::tokenize {

// The token of a symbol, else the tokens of its bytes, else the unknown token where there is one.
void append_symbol(const Vocabulary& vocabulary, std::string_view word, const Symbol& symbol,
                   std::vector<Token>& out);

// Enters the pairs of all tokens that text can become.
void add_all_pairs(const Vocabulary& vocabulary, CharacterPairs& pairs);

class CharacterWords {
 public:
  // Both must outlive this.
  CharacterWords(const Vocabulary& vocabulary, const CharacterPairs& pairs, size_t text_bytes)
      : vocabulary_(vocabulary), pairs_(pairs), cache_(text_bytes) {}

  // `find(word, left, right)` gives the Joined form of two neighbouring symbols of the word.
  template <class Find>
  void encode(std::string_view text, const Find& find, std::vector<Token>& out) {
    size_t begin = 0;
    char32_t before = 0;
    for (size_t at = 0; at < text.size();) {
      const unicode::Character character = character_or_byte(text.substr(at));
      const bool is_cut = at > begin && (!pairs_.may_join(before, character.code) ||
                                         at - begin + 4 > kWordBytesMax);
      if (is_cut) {
        encode_word(text.substr(begin, at - begin), find, out);
        begin = at;
      }
      before = character.code;
      at += character.length;
    }
    if (begin < text.size()) encode_word(text.substr(begin), find, out);
  }

 private:
  template <class Find>
  void encode_word(std::string_view word, const Find& find, std::vector<Token>& out) {
    const bool is_cached = cache_.takes(word);
    if (is_cached) {
      const std::span<const Token> known = cache_.find(word);
      if (!known.empty()) {
        out.insert(out.end(), known.begin(), known.end());
        return;
      }
    }
    const size_t before = out.size();
    read_symbols(word);
    buffer_.merge([&](const Symbol& left, const Symbol& right) { return find(word, left, right); });
    for (const Symbol& symbol : buffer_.symbols) append_symbol(vocabulary_, word, symbol, out);
    if (is_cached) cache_.insert(word, std::span(out).subspan(before));
  }

  void read_symbols(std::string_view word);

  const Vocabulary& vocabulary_;
  const CharacterPairs& pairs_;
  WordCache cache_;
  MergeBuffer buffer_;
};

}  // namespace cairn::tokenize
