// Each notation adds nodes to the same expressions; compiling is the same for all.
#include "grammar/grammar.h"

#include "grammar/automaton.h"
#include "grammar/gbnf.h"
#include "grammar/json_nodes.h"
#include "grammar/regex.h"
#include "grammar/schema.h"
#include "grammar/schema_view.h"
#include "grammar/text_without.h"

namespace cairn::grammar {

namespace {

// Behind each part of `end` that may have been read: how far a next character leads. A rule for
// each, so that any text before costs no stack.
std::vector<char32_t> characters_of(std::string_view text) {
  std::vector<char32_t> characters;
  while (!text.empty()) {
    const auto character = decode_character(text);
    CHECK(character);
    characters.push_back(character->value);
    text.remove_prefix(character->bytes);
  }
  return characters;
}

// How much of `end` is a tail of its first `count` characters and `next`.
size_t step_of(const std::vector<char32_t>& end, size_t count, char32_t next,
               const std::vector<size_t>& failures) {
  while (true) {
    if (end[count] == next) return count + 1;
    if (count == 0) return 0;
    count = failures[count];
  }
}

// failures[i]: the longest beginning that is a proper tail of the first i characters.
std::vector<size_t> failures_of(const std::vector<char32_t>& end) {
  std::vector<size_t> failures(end.size() + 1, 0);
  for (size_t i = 1; i < end.size(); ++i) {
    size_t count = failures[i];
    while (count > 0 && end[count] != end[i]) count = failures[count];
    failures[i + 1] = end[count] == end[i] ? count + 1 : 0;
  }
  return failures;
}

}  // namespace

Grammar::Grammar(Automaton automaton)
    : automaton_(std::make_shared<const Automaton>(std::move(automaton))) {}

size_t Grammar::byte_size() const {
  return automaton_->byte_size();
}

Node Builder::token(Token token) {
  return expressions_.token({.id = index_of(token)});
}

Node Builder::token(std::string_view name) {
  return expressions_.token({.text = std::string(name)});
}

Node Builder::any_text() {
  return expressions_.repeat(expressions_.characters(CharacterSet::all()), 0, kUnbounded);
}

Node Builder::text_until(std::string_view end) {
  const std::vector<char32_t> wanted = characters_of(end);
  CHECK(!wanted.empty());
  const std::vector<size_t> failures = failures_of(wanted);
  CharacterSet special;
  for (const char32_t character : wanted) special.add(character);
  std::vector<Rule> rules;
  for (size_t i = 0; i < wanted.size(); ++i) rules.push_back(declare("until"));
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::vector<Node> ways = {sequence({characters(special.inverse()), call(rules[0])})};
    for (const CharacterRange& range : special.ranges()) {
      for (char32_t c = range.first; c <= range.last; ++c) {
        const size_t next = step_of(wanted, i, c, failures);
        const Node one = characters({{c, c}});
        ways.push_back(next == wanted.size() ? one : sequence({one, call(rules[next])}));
      }
    }
    define(rules[i], choice(ways));
  }
  return call(rules[0]);
}

Node Builder::text_without(std::span<const std::string> never) {
  return grammar::text_without(never, expressions_);
}

Result<Node> Builder::pattern(std::string_view regex, const CharacterSet& never) {
  const size_t first = expressions_.size();
  CAIRN_TRY(const Node found, read_regex(regex, {.is_search = true}, limits_, expressions_));
  expressions_.forbid(first, never);
  return found;
}

Result<Node> Builder::schema(std::string_view schema, const CharacterSet& never) {
  CAIRN_TRY(const json::Document document, read_schema_text(schema, limits_));
  return this->schema(document, document.root(), kTypeAny, never);
}

Result<Node> Builder::schema(const json::Document& document, uint32_t schema, uint32_t types,
                             const CharacterSet& never) {
  const size_t first = expressions_.size();
  CAIRN_TRY(const Node node, read_schema(document, schema, types, limits_, expressions_));
  if (!never.ranges().empty()) expressions_.forbid(first, never);
  return node;
}

Result<Node> Builder::gbnf(std::string_view source) {
  CAIRN_TRY(const Rule root, read_gbnf(source, limits_, expressions_));
  return expressions_.call(root);
}

Result<Node> Builder::regex(std::string_view regex) {
  return read_regex(regex, {}, limits_, expressions_);
}

Node Builder::blanks() {
  return JsonNodes(expressions_).blanks();
}

Node Builder::json_text(std::string_view content) {
  return JsonNodes(expressions_).quoted(content);
}

Result<Grammar> Builder::finish(Node root) {
  const Rule rule = expressions_.declare("root");
  expressions_.define(rule, root);
  CAIRN_TRY(Automaton automaton, compile(expressions_, rule, limits_));
  return Grammar(std::move(automaton));
}

Result<Grammar> compile_gbnf(std::string_view source, const Limits& limits) {
  Builder builder(limits);
  CAIRN_TRY(const Node root, builder.gbnf(source));
  return builder.finish(root);
}

Result<Grammar> compile_schema(std::string_view schema, const Limits& limits) {
  Builder builder(limits);
  CAIRN_TRY(const Node root, builder.schema(schema));
  return builder.finish(root);
}

Result<Grammar> compile_json_object(const Limits& limits) {
  return compile_schema("{\"type\":\"object\"}", limits);
}

Result<Grammar> compile_regex(std::string_view regex, const Limits& limits) {
  Builder builder(limits);
  CAIRN_TRY(const Node root, builder.regex(regex));
  return builder.finish(root);
}

Result<Grammar> compile_choices(std::span<const std::string> choices, const Limits& limits) {
  if (choices.empty()) {
    return fail(ErrorCode::invalid_argument, "choices: expected at least one, found none");
  }
  size_t size = 0;
  for (const std::string& choice : choices) size += choice.size() + 1;
  if (int64_t(choices.size()) > limits.enum_count || size > limits.source_bytes) {
    return fail(ErrorCode::no_room,
                "choices: expected at most {} of {} bytes together, found {} of {}",
                limits.enum_count, limits.source_bytes, choices.size(), size);
  }
  Builder builder(limits);
  std::vector<Node> ways;
  for (const std::string& choice : choices) ways.push_back(builder.text(choice));
  return builder.finish(builder.choice(ways));
}

}  // namespace cairn::grammar
