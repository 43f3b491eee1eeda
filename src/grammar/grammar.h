// A compiled grammar that constrains text, from GBNF, a JSON schema, a regular expression, a list
// of choices, or a Builder in C++. Knows no vocabulary: grammar/matcher.h matches a model's tokens
// against it. Errors of all of these: invalid_argument, with line, column and reason; unsupported,
// for what is well-formed and not done here; no_room, over the limits. Thread-safe: a Grammar is
// constant; a Builder is one thread's.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "grammar/expression.h"
#include "grammar/limits.h"
#include "json/document.h"

namespace cairn::grammar {

struct Automaton;

// A small value: copies share the automaton.
class Grammar {
 public:
  explicit Grammar(Automaton automaton);
  const Automaton& automaton() const { return *automaton_; }
  std::shared_ptr<const Automaton> shared() const { return automaton_; }
  size_t byte_size() const;

 private:
  std::shared_ptr<const Automaton> automaton_;
};

// The notation of llama.cpp; the text must fit the rule "root".
Result<Grammar> compile_gbnf(std::string_view source, const Limits& limits = {});
// A JSON text that the schema describes (docs/structured-output.md: which keywords, what blanks).
Result<Grammar> compile_schema(std::string_view schema, const Limits& limits = {});
// Any JSON object, as response_format json_object asks for.
Result<Grammar> compile_json_object(const Limits& limits = {});
// The whole text fits the expression.
Result<Grammar> compile_regex(std::string_view regex, const Limits& limits = {});
// The text is one of these.
Result<Grammar> compile_choices(std::span<const std::string> choices, const Limits& limits = {});

// Puts grammars together: literals around a schema, alternatives of several, repetitions.
//   Builder b;
//   CAIRN_TRY(const Node arguments, b.schema(schema));
//   CAIRN_TRY(Grammar call, b.finish(b.sequence({b.text("<call>"), arguments,
//   b.text("</call>")})));
class Builder {
 public:
  explicit Builder(const Limits& limits = {}) : limits_(limits) {}

  Node empty() { return expressions_.empty(); }
  Node text(std::string_view bytes) { return expressions_.text(bytes); }
  // A token by its number or by its name, also one that text cannot spell. Whether a marker such as
  // <tool_call> is a token or text depends on the vocabulary, which the caller knows.
  Node token(Token token);
  Node token(std::string_view name);
  Node characters(const CharacterSet& set) { return expressions_.characters(set); }
  // Any text, also none.
  Node any_text();
  // Any text that does not contain `end`, then `end`. REQUIRES: `end` is UTF-8, not empty.
  Node text_until(std::string_view end);
  // Any text in which none of these occurs. REQUIRES: each is UTF-8, not empty.
  Node text_without(std::span<const std::string> never);
  Node sequence(std::initializer_list<Node> parts) { return expressions_.sequence(parts); }
  Node sequence(std::span<const Node> parts) { return expressions_.sequence(parts); }
  Node choice(std::initializer_list<Node> parts) { return expressions_.choice(parts); }
  Node choice(std::span<const Node> parts) { return expressions_.choice(parts); }
  Node optional(Node body) { return expressions_.optional(body); }
  // `max` may be kUnbounded. REQUIRES: 0 <= min <= max.
  Node repeat(Node body, int32_t min, int32_t max) { return expressions_.repeat(body, min, max); }

  // `never`: characters that no text of it holds. REQUIRES: none that JSON is written with.
  Result<Node> schema(std::string_view schema, const CharacterSet& never = {});
  // One of the document's values as a schema, narrowed to some types (grammar/schema_view.h).
  Result<Node> schema(const json::Document& document, uint32_t schema, uint32_t types,
                      const CharacterSet& never);
  Result<Node> gbnf(std::string_view source);
  Result<Node> regex(std::string_view regex);
  // A text in which the expression is found somewhere, as a schema's pattern, and none of these
  // characters.
  Result<Node> pattern(std::string_view regex, const CharacterSet& never);
  // Blanks as between the parts of a schema's JSON, or none.
  Node blanks();
  // A JSON string with exactly this content, between its quotes.
  Node json_text(std::string_view content);

  // Rules that call each other: declared first.
  Rule declare(std::string name) { return expressions_.declare(std::move(name)); }
  void define(Rule rule, Node body) { expressions_.define(rule, body); }
  Node call(Rule rule) { return expressions_.call(rule); }

  Result<Grammar> finish(Node root);
  const Limits& limits() const { return limits_; }

 private:
  Limits limits_;
  Expressions expressions_;
};

}  // namespace cairn::grammar
