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
  limits.work = 2'000'000;
  if (kind % 3 == 0) return grammar::compile_gbnf(source, limits);
  if (kind % 3 == 1) return grammar::compile_schema(source, limits);
  return grammar::compile_regex(source, limits);
}

bool allows(grammar::TokenMask mask, int32_t token) {
  return (mask[size_t(token) / 64] >> (token % 64) & 1) != 0;
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
  for (uint32_t step = 0; step < 12; ++step) {
    auto mask = (*matcher)->mask(state);
    if (!mask) return 0;
    const std::vector<uint64_t> words(mask->begin(), mask->end());
    bool is_found = false;
    grammar::State following = state;
    // Another token each time, so that walks differ.
    const auto count = int32_t(kTokenizer->token_count());
    for (int32_t i = 0; i < count; ++i) {
      const int32_t token = (i + int32_t(step * 97 + size)) % count;
      auto next = (*matcher)->advance(state, Token(token));
      if (!next && next.error().code == cairn::ErrorCode::no_room) return 0;
      CHECK(bool(next) == allows(words, token));
      if (!next || is_found || kTokenizer->is_end_of_generation(Token(token))) continue;
      is_found = true;
      following = *next;
    }
    // Every byte is a token: what is not complete can go on.
    CHECK(is_found || (*matcher)->is_complete(state));
    if (!is_found) return 0;
    state = following;
  }
  return 0;
}
