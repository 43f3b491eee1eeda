// Grammars from strangers: the first byte chooses the notation, the rest is the source. What
// compiles is followed for some steps with a small vocabulary; the mask must say what trying says.
// All errors are good; a crash, an endless loop or a wrong mask is not.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "grammar/matcher.h"
#include "tokenize/tokenizer.h"
#include "unicode/unicode.h"

namespace {

using cairn::Token;
namespace grammar = cairn::grammar;
namespace tokenize = cairn::tokenize;
namespace unicode = cairn::unicode;

// Bytes, some words, and an end.
std::unique_ptr<tokenize::Tokenizer> make_tokenizer() {
  std::vector<std::string> spelled;
  const auto add = [&](std::string_view bytes) {
    std::string symbols;
    for (const char byte : bytes)
      unicode::append_utf8(unicode::symbol_of_byte(uint8_t(byte)), symbols);
    spelled.push_back(symbols);
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, char(byte)));
  for (const char* word : {"\"}", "\":", "aa", "aaaaaaaaaaaaaaaaaaaa", "true", "é", "\",\""})
    add(word);
  spelled.push_back("<|im_end|>");
  tokenize::VocabularySource source;
  source.model = "gpt2";
  source.pre = "gpt-2";
  source.tokens.assign(spelled.begin(), spelled.end());
  source.types.assign(spelled.size(), int32_t(tokenize::TokenType::normal));
  source.types.back() = int32_t(tokenize::TokenType::control);
  source.eos = int64_t(spelled.size()) - 1;
  auto tokenizer = tokenize::Tokenizer::build(source);
  CHECK(tokenizer);
  return std::move(*tokenizer);
}

cairn::Result<grammar::Grammar> compile(uint8_t kind, std::string_view source) {
  // Small budgets: what is bounded stays fast enough to be tried often.
  grammar::Limits limits;
  limits.work = 300'000;
  if (kind % 3 == 0) return grammar::compile_gbnf(source, limits);
  if (kind % 3 == 1) return grammar::compile_schema(source, limits);
  return grammar::compile_regex(source, limits);
}

bool allows(grammar::TokenMask mask, int32_t token) {
  return (mask[size_t(token) / 64] >> (token % 64) & 1) != 0;
}

// The first that is allowed from `first` on, round and round, and is text; -1: none is.
int32_t next_allowed(grammar::TokenMask mask, int32_t first, const tokenize::Tokenizer& tokenizer) {
  const auto count = int32_t(tokenizer.token_count());
  for (int32_t i = 0; i < count; ++i) {
    const int32_t token = (first + i) % count;
    if (allows(mask, token) && !tokenizer.is_end_of_generation(Token(token))) return token;
  }
  return -1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto kTokenizer = make_tokenizer();
  static const auto kTrie = grammar::TokenTrie::build(*kTokenizer);
  if (size == 0) return 0;
  const std::string_view source(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto compiled = compile(data[0], source);
  if (!compiled) {
    CHECK(compiled.error().message.size() < 600);
    return 0;
  }
  auto matcher = grammar::Matcher::build(*compiled, kTrie);
  if (!matcher) return 0;
  grammar::State state = (*matcher)->start();
  const auto count = int32_t(kTokenizer->token_count());
  for (int32_t step = 0; step < 12; ++step) {
    auto mask = (*matcher)->mask(state);
    if (!mask) return 0;
    const std::vector<uint64_t> words(mask->begin(), mask->end());
    // Other tokens each time, so that walks differ; all of them only before the first step.
    const auto first = int32_t((size_t(step) * 97 + size) % size_t(count));
    for (int32_t i = 0; i < count; i += step == 0 ? 1 : 16) {
      const int32_t token = (first + i) % count;
      auto next = (*matcher)->advance(state, Token(token));
      if (!next && next.error().code == cairn::ErrorCode::no_room) return 0;
      CHECK(bool(next) == allows(words, token));
    }
    const int32_t following = next_allowed(words, first, *kTokenizer);
    // Every byte is a token: what is not complete can go on.
    CHECK(following >= 0 || (*matcher)->is_complete(state));
    if (following < 0) return 0;
    auto next = (*matcher)->advance(state, Token(following));
    if (!next && next.error().code == cairn::ErrorCode::no_room) return 0;
    CHECK(next);
    state = *next;
  }
  return 0;
}
