// Vocabularies of each kind, small enough to be read, for the tests of this folder.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tokenize/tokenizer.h"
#include "unicode/unicode.h"

namespace cairn::tokenize {

// A source that owns its strings.
class SmallVocabulary {
 public:
  VocabularySource source;

  int32_t add(std::string_view token, TokenType type = TokenType::normal, float score = 0.0f) {
    source.tokens.push_back(keep(token));
    source.types.push_back(int32_t(type));
    source.scores.push_back(score);
    return int32_t(source.tokens.size() - 1);
  }
  // Adds a merge and the token it makes.
  int32_t join(std::string_view left, std::string_view right) {
    merge(left, right);
    return add(std::string(left).append(right));
  }
  void merge(std::string_view left, std::string_view right) {
    source.merges.push_back(keep(std::string(left).append(" ").append(right)));
  }
  std::string_view keep(std::string_view text) { return strings_.emplace_back(text); }

 private:
  std::deque<std::string> strings_;  // Stay where they are as more come.
};

// Tokens 0 to 255 are the bytes in order; then the joins; then special tokens.
inline SmallVocabulary byte_level_vocabulary() {
  SmallVocabulary small;
  small.source.model = "gpt2";
  small.source.pre = "gpt-2";
  for (int byte = 0; byte < 256; ++byte) {
    std::string symbol;
    unicode::append_utf8(unicode::symbol_of_byte(uint8_t(byte)), symbol);
    small.add(symbol);
  }
  const std::string space = "\u0120";                 // The symbol of the space.
  small.join("t", "h");                               // 256
  small.join("th", "e");                              // 257
  small.join(space, "the");                           // 258
  small.join("a", "a");                               // 259
  small.join("aa", "aa");                             // 260
  small.join("b", "c");                               // 261
  small.join("a", "b");                               // 262
  small.join("\u00C3", "\u00A9");                     // 263: the two bytes of é.
  small.add("<|start|>", TokenType::control);         // 264
  small.add("<|im_end|>", TokenType::control);        // 265
  small.add("<tool>", TokenType::user_defined);       // 266
  small.add("<|call_me|>", TokenType::user_defined);  // 267
  small.add("<|start|>long", TokenType::control);     // 268
  small.source.bos = 264;
  small.source.eos = 265;
  return small;
}

// SPM: 0 <unk>, 1 <s>, 2 </s>, 3 to 258 the bytes, then words by score.
inline SmallVocabulary spm_vocabulary() {
  SmallVocabulary small;
  small.source.model = "llama";
  small.add("<unk>", TokenType::unknown);
  small.add("<s>", TokenType::control);
  small.add("</s>", TokenType::control);
  for (int byte = 0; byte < 256; ++byte) {
    small.add(fmt::format("<0x{:02X}>", byte), TokenType::byte);
  }
  const std::string space = "\u2581";
  float score = -1.0f;
  for (const std::string& word :
       {space, std::string("h"), std::string("e"), std::string("l"), std::string("o"),
        std::string("he"), std::string("ll"), space + "he", space + "hell", std::string("lo"),
        space + space, std::string("\u00E9")}) {
    small.add(word, TokenType::normal, score);  // From 259 on.
    score -= 1.0f;
  }
  return small;
}

// WordPiece: word beginnings carry U+2581.
inline SmallVocabulary wpm_vocabulary() {
  SmallVocabulary small;
  small.source.model = "bert";
  for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) {
    small.add(special, TokenType::control);
  }
  for (const char* word : {"\u2581un", "afford", "able", "\u2581cafe", "\u2581,", "\u2581a", "b",
                           "\u2581\u6F22", "\u2581straße", "s"}) {
    small.add(word);  // From 4 on.
  }
  small.source.pad = 0;
  small.source.unk = 1;
  small.source.cls = 2;
  small.source.sep = 3;
  return small;
}

// Gemma 4's kind: BPE over characters, bytes for the rest.
inline SmallVocabulary gemma4_vocabulary() {
  SmallVocabulary small;
  small.source.model = "gemma4";
  small.add("<pad>", TokenType::control);
  small.add("<eos>", TokenType::control);
  small.add("<bos>", TokenType::control);
  for (int byte = 0; byte < 256; ++byte) {
    small.add(fmt::format("<0x{:02X}>", byte), TokenType::byte);  // From 3 on.
  }
  for (const char* character : {"\u2581", "a", "b", "\n"}) small.add(character);  // From 259 on.
  small.join("a", "b");                                                           // 263
  small.join("\u2581", "ab");                                                     // 264
  small.join("ab", "\u2581ab");  // 265: a token across a space.
  small.join("\n", "\n");        // 266
  small.add("\n\n\n");           // 267: a token that no merge makes.
  small.source.bos = 2;
  small.source.eos = 1;
  return small;
}

inline std::unique_ptr<Tokenizer> build(const SmallVocabulary& small) {
  auto built = Tokenizer::build(small.source);
  if (!built) fmt::print(stderr, "{}\n", built.error().message);
  CHECK(built);
  return std::move(*built);
}

inline std::vector<int32_t> ids(const std::vector<Token>& tokens) {
  std::vector<int32_t> numbers;
  for (const Token token : tokens) numbers.push_back(index_of(token));
  return numbers;
}

// Bytes, or characters of one to four bytes, at random.
inline std::string random_text(std::mt19937& random, size_t length, bool is_utf8) {
  static constexpr char32_t kSome[] = {' ',    'a',    'b',     't',   'h', 'e',  '\n',
                                       '<',    '|',    '1',     '\'',  'Z', 0xE9, 0x3B1,
                                       0x4E2D, 0x2581, 0x1F600, 0x301, 0xA0};
  std::string text;
  for (size_t i = 0; i < length; ++i) {
    if (is_utf8) {
      unicode::append_utf8(kSome[random() % std::size(kSome)], text);
    } else {
      text += random() % 3 == 0 ? "the aab"[random() % 7] : char(random());
    }
  }
  return text;
}

}  // namespace cairn::tokenize
