// Symbols in and out of words.
#include "tokenize/tokenizer_words.h"

#include <algorithm>

namespace cairn::tokenize {

void append_symbol(const Vocabulary& vocabulary, std::string_view word, const Symbol& symbol,
                   std::vector<Token>& out) {
  if (symbol.token != kNoToken) return out.push_back(Token(symbol.token));
  const std::string_view bytes = word.substr(symbol.begin, symbol.end - symbol.begin);
  const auto has_token = [&](char c) {
    return vocabulary.byte_token(static_cast<unsigned char>(c)) != kNoToken;
  };
  if (std::all_of(bytes.begin(), bytes.end(), has_token)) {
    for (const char c : bytes) {
      out.push_back(Token(vocabulary.byte_token(static_cast<unsigned char>(c))));
    }
  } else if (vocabulary.special_ids().unk) {
    out.push_back(*vocabulary.special_ids().unk);
  }
}

void add_all_pairs(const Vocabulary& vocabulary, CharacterPairs& pairs) {
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.is_control(Token(id))) pairs.add(vocabulary.piece(Token(id)));
  }
}

void CharacterWords::read_symbols(std::string_view word) {
  buffer_.symbols.clear();
  for (size_t at = 0; at < word.size();) {
    const uint32_t length = character_or_byte(word.substr(at)).length;
    const int32_t token = vocabulary_.find_word(word.substr(at, length));
    buffer_.symbols.push_back({uint32_t(at), uint32_t(at + length), token});
    at += length;
  }
}

}  // namespace cairn::tokenize
