// What structured output costs: compiling a grammar, the masks of all steps of real texts, steps.
//   grammar_bench MODEL.gguf
// Cold: a Matcher that has seen nothing. Warm: the same text again. The texts are tokenized by the
// model's own vocabulary.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "engine/vocabulary_source.h"
#include "grammar/matcher.h"
#include "session/grammar_cache.h"

namespace cairn::grammar {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

std::string people_schema() {
  return R"({"type":"object","properties":{"people":{"type":"array","items":{"type":"object",
    "properties":{"name":{"type":"string","minLength":1,"maxLength":60},
    "age":{"type":"integer","minimum":0,"maximum":150},"email":{"type":"string","format":"email"},
    "role":{"enum":["author","editor","reader"]},"notes":{"type":"string"},
    "friends":{"type":"array","items":{"type":"string"}}},
    "required":["name","age","email","role","notes","friends"]}}},"required":["people"]})";
}

std::string people_text() {
  std::string text = "{\"people\": [";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format(
        R"({}{{"name": "Wanda Miller-{}", "age": {}, "email": "wanda.{}@example.org", )"
        R"("role": "{}", "notes": "Writes about rivers, bridges\nand the people who live there; )"
        R"(said \"yes\" to number {}. Приве́т, 世界.", "friends": ["Ann", "Bob {}", "Élodie"]}})",
        i > 0 ? ", " : "", i, 20 + i, i, i % 2 == 0 ? "author" : "reader", i * 17, i);
  }
  return text + "]}";
}

std::string any_text() {
  std::string text = "{\"items\": [";
  for (int i = 0; i < 60; ++i) {
    text += fmt::format(
        R"({}{{"id": {}, "path": [0.5, -{}e3, null, true], "in": {{"deep": [[{{"x": "y{}"}}]]}}}})",
        i > 0 ? ", " : "", i, i, i);
  }
  return text + "]}";
}

constexpr char kCode[] = R"gbnf(
root ::= line+
line ::= "let " name " = " sum ";\n"
name ::= [a-z] [a-z0-9_]{0,20}
sum ::= product ([+-] product)*
product ::= atom ([*/] atom)*
atom ::= name | [0-9]+ | "(" sum ")"
)gbnf";

std::string code_text() {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("let value_{} = (alpha+{})*beta/(gamma-{}*(delta+1));\n", i, i * 3, i);
  }
  return text;
}

struct Figures {
  std::vector<double> masks, steps;
};

void print(const char* name, const char* when, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) { return times[size_t(part * double(times.size() - 1))]; };
  fmt::print("{:<8} {:<12} {:6} {:9.1f} {:9.1f} {:9.1f} {:9.1f}\n", name, when, times.size(),
             at(0.5), at(0.9), at(0.99), times.back());
}

Result<Figures> walk(Matcher& matcher, const std::vector<Token>& tokens) {
  Figures figures;
  State state = matcher.start();
  for (const Token token : tokens) {
    const Clock::time_point begin = Clock::now();
    CAIRN_TRY(const TokenMask mask, matcher.mask(state));
    figures.masks.push_back(microseconds_since(begin));
    if ((mask[size_t(index_of(token)) / 64] >> (index_of(token) % 64) & 1) == 0) {
      return fail(ErrorCode::invalid_argument, "token {} does not fit", figures.masks.size());
    }
    const Clock::time_point step = Clock::now();
    CAIRN_TRY(state, matcher.advance(state, token));
    figures.steps.push_back(microseconds_since(step));
  }
  CHECK(matcher.is_complete(state));
  return figures;
}

Status measure(const char* name, Result<Grammar> (*compile)(std::string_view, const Limits&),
               const std::string& source, const std::string& text,
               const tokenize::Tokenizer& tokenizer, const std::shared_ptr<const TokenTrie>& trie) {
  session::GrammarCache cache;
  const auto get = [&] {
    return session::TenantGrammars(&cache, 0).get(Sha256().add(source).finish(),
                                                  [&] { return compile(source, {}); });
  };
  const Clock::time_point begin = Clock::now();
  CAIRN_TRY(const Grammar grammar, get());
  const double compiled = microseconds_since(begin);
  const Clock::time_point again = Clock::now();
  CAIRN_TRY(const Grammar same, get());
  const double found = microseconds_since(again);
  CAIRN_TRY(const std::unique_ptr<Matcher> matcher, Matcher::build(grammar, trie));
  const std::vector<Token> tokens = tokenizer.encode(text);
  CAIRN_TRY(const Figures cold, walk(*matcher, tokens));
  CAIRN_TRY(const Figures warm, walk(*matcher, tokens));
  print(name, "mask, cold", cold.masks);
  print(name, "mask, warm", warm.masks);
  print(name, "step, cold", cold.steps);
  fmt::print(
      "{:<8} compiled in {:.0f} us to {} bytes; found again in {:.1f} us; {} bytes of "
      "states and masks\n",
      name, compiled, grammar.byte_size(), found, matcher->byte_size());
  return Ok{};
}

Status run(const char* path) {
  CAIRN_TRY(const gguf::File file, gguf::File::open(path));
  CAIRN_TRY(const tokenize::VocabularySource source, vocabulary_source(file));
  CAIRN_TRY(const std::unique_ptr<tokenize::Tokenizer> tokenizer,
            tokenize::Tokenizer::build(source));
  const Clock::time_point begin = Clock::now();
  const std::shared_ptr<const TokenTrie> trie = TokenTrie::build(*tokenizer);
  fmt::print("{} tokens, {} + {} + {} nodes, built in {:.0f} us\n", trie->token_count(),
             trie->plain_nodes().size(), trie->other_nodes().size(), trie->long_nodes().size(),
             microseconds_since(begin));
  fmt::print("{:<8} {:<12} {:>6} {:>9} {:>9} {:>9} {:>9}   (us)\n", "", "", "count", "median",
             "p90", "p99", "max");
  CAIRN_TRY(measure("people", compile_schema, people_schema(), people_text(), *tokenizer, trie));
  CAIRN_TRY(measure("json", compile_schema, "{}", any_text(), *tokenizer, trie));
  CAIRN_TRY(measure("code", compile_gbnf, kCode, code_text(), *tokenizer, trie));
  CAIRN_TRY(measure("regex", compile_regex, "([A-Z][a-z]{1,30} ?){2,200}\\.",
                    "This Is The Long Line Of Capital Letters And Small Ones Indeed.", *tokenizer,
                    trie));
  return Ok{};
}

}  // namespace
}  // namespace cairn::grammar

int main(int argument_count, char** arguments) {
  if (argument_count != 2) {
    fmt::print(stderr, "usage: grammar_bench MODEL.gguf\n");
    return 2;
  }
  const cairn::Status done = cairn::grammar::run(arguments[1]);
  if (!done) fmt::print(stderr, "{}\n", done.error().message);
  return done ? 0 : 1;
}
