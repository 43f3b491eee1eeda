// A matcher that is asked line by line, so that scripts can compare it with other programs. Texts
// are in hexadecimal. Answers begin with "ok" or "error CODE MESSAGE".
//   grammar_session MODEL.gguf
//   vocabulary          a line for each token: its bytes and t (text), s (special) or e (end)
//   compile KIND TEXT   gbnf, schema, regex; starts again
//   mask                a byte for each eight tokens, the lowest bit first
//   take TOKEN          whether the text is complete, whether it is finished
#include <fmt/core.h>

#include <cstdio>
#include <iostream>
#include <sstream>

#include "engine/vocabulary_source.h"
#include "grammar/matcher.h"

namespace cairn::grammar {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(char(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    hex += kDigits[uint8_t(byte) >> 4];
    hex += kDigits[uint8_t(byte) & 15];
  }
  return hex;
}

std::string refusal(const Error& error) {
  return fmt::format("error {} {}", int(error.code), to_hex(error.message));
}

class Session {
 public:
  explicit Session(const tokenize::Tokenizer& tokenizer) : trie_(TokenTrie::build(tokenizer)) {}

  std::string answer(const std::string& line) {
    std::istringstream fields(line);
    std::string command, kind, text;
    fields >> command >> kind >> text;
    if (command == "vocabulary") return vocabulary();
    if (command == "compile") return compile(kind, from_hex(text));
    if (!matcher_) return "error 0 ";
    if (command == "mask") return mask();
    if (command == "take") return take(Token(std::stoi(kind)));
    return "error 0 ";
  }

 private:
  std::string vocabulary() const {
    std::string lines = fmt::format("ok {}", trie_->token_count());
    for (int32_t id = 0; size_t(id) < trie_->token_count(); ++id) {
      const char kind = trie_->is_end(Token(id)) ? 'e' : trie_->is_text(Token(id)) ? 't' : 's';
      lines += fmt::format("\n{} {}", to_hex(trie_->bytes_of(Token(id))), kind);
    }
    return lines;
  }

  std::string compile(const std::string& kind, const std::string& source) {
    matcher_.reset();
    Result<Grammar> grammar = kind == "gbnf"     ? compile_gbnf(source)
                              : kind == "schema" ? compile_schema(source)
                                                 : compile_regex(source);
    if (!grammar) return refusal(grammar.error());
    auto matcher = Matcher::build(*grammar, trie_);
    if (!matcher) return refusal(matcher.error());
    matcher_ = std::move(*matcher);
    state_ = matcher_->start();
    return "ok";
  }

  std::string mask() {
    auto mask = matcher_->mask(state_);
    if (!mask) return refusal(mask.error());
    const auto* bytes = reinterpret_cast<const char*>(mask->data());
    return "ok " + to_hex(std::string_view(bytes, (trie_->token_count() + 7) / 8));
  }

  std::string take(Token token) {
    auto next = matcher_->advance(state_, token);
    if (!next) return refusal(next.error());
    state_ = *next;
    return fmt::format("ok {:d} {:d}", matcher_->is_complete(state_),
                       matcher_->is_finished(state_));
  }

  std::shared_ptr<const TokenTrie> trie_;
  std::unique_ptr<Matcher> matcher_;
  State state_{};
};

int run(const char* path) {
  auto file = gguf::File::open(path);
  if (!file) return 1;
  auto source = vocabulary_source(*file);
  if (!source) return 1;
  auto tokenizer = tokenize::Tokenizer::build(*source);
  if (!tokenizer) return 1;
  Session session(**tokenizer);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << session.answer(line) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace cairn::grammar

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    fmt::print(stderr, "usage: grammar_session MODEL.gguf\n");
    return 2;
  }
  return cairn::grammar::run(arguments[1]);
}
