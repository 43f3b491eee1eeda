// A byte-level vocabulary for tests: all bytes, then words of any text, some control tokens. And
// whether a text fits a grammar, asked byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/matcher.h"
#include "tests/tokenize/small_vocabularies.h"

namespace cairn::grammar {

// Tokens 0 to 255 are bytes, then `words` in order, then "<think>", "</think>" and the end
// "<|im_end|>" as control tokens.
inline std::unique_ptr<tokenize::Tokenizer> toy_tokenizer(
    const std::vector<std::string>& words = {}) {
  tokenize::SmallVocabulary small;
  small.source.model = "gpt2";
  small.source.pre = "gpt-2";
  const auto spelled = [](std::string_view bytes) {
    std::string symbols;
    for (const char byte : bytes)
      unicode::append_utf8(unicode::symbol_of_byte(uint8_t(byte)), symbols);
    return symbols;
  };
  for (int byte = 0; byte < 256; ++byte) small.add(spelled(std::string(1, char(byte))));
  for (const std::string& word : words) small.add(spelled(word));
  small.add("<think>", tokenize::TokenType::control);
  small.add("</think>", tokenize::TokenType::control);
  small.source.eos = small.add("<|im_end|>", tokenize::TokenType::control);
  auto tokenizer = tokenize::Tokenizer::build(small.source);
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().message);
  return std::move(*tokenizer);
}

inline std::unique_ptr<Matcher> matcher_of(Result<Grammar> grammar,
                                           const std::vector<std::string>& words = {}) {
  EXPECT_TRUE(grammar) << (grammar ? "" : grammar.error().message);
  if (!grammar) return nullptr;
  auto matcher = Matcher::build(*grammar, TokenTrie::build(*toy_tokenizer(words)));
  EXPECT_TRUE(matcher) << (matcher ? "" : matcher.error().message);
  return matcher ? std::move(*matcher) : nullptr;
}

// The value, or the end of the test program with the reason.
template <class T>
T must(Result<T> result) {
  if (!result) ADD_FAILURE() << result.error().message;
  CHECK(result);
  return std::move(result).value();
}

enum class Fit { no, begins, whole };

// Whether the text fits, or begins something that does.
inline Fit fit(Matcher& matcher, std::string_view text) {
  auto state = matcher.advance(matcher.start(), text);
  if (!state) return Fit::no;
  return matcher.is_complete(*state) ? Fit::whole : Fit::begins;
}

inline void expect_fits(Result<Grammar> grammar, const std::vector<std::string>& good,
                        const std::vector<std::string>& bad) {
  const auto matcher = matcher_of(std::move(grammar));
  ASSERT_NE(matcher, nullptr);
  for (const std::string& text : good) EXPECT_EQ(fit(*matcher, text), Fit::whole) << text;
  for (const std::string& text : bad) EXPECT_NE(fit(*matcher, text), Fit::whole) << text;
}

inline std::string message_of(const Result<Grammar>& grammar) {
  return grammar ? "" : grammar.error().message;
}

inline bool allows(TokenMask mask, int32_t token) {
  return (mask[size_t(token) / 64] >> (token % 64) & 1) != 0;
}

}  // namespace cairn::grammar
