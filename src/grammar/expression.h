// What a grammar says, whatever it was written in: texts, sets of characters, sequences, choices,
// repetitions, calls of rules. Nodes come after those they are made of, so that a walk in their
// order needs no stack. Knows neither syntax nor automata. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "grammar/characters.h"

namespace cairn::grammar {

enum class Node : uint32_t {};
enum class Rule : uint32_t {};

constexpr int32_t kUnbounded = INT32_MAX;

// Tokens by id or by their exact text, for grammars that name tokens rather than characters.
struct TokenPattern {
  int32_t id = -1;          // Negative: by text.
  std::string text;         // The whole of it, "<think>".
  bool is_inverse = false;  // All tokens but this.
  bool operator==(const TokenPattern&) const = default;
};

class Expressions {
 public:
  enum class Kind : uint8_t { empty, text, characters, sequence, choice, repeat, call, token };

  struct Item {
    Kind kind = Kind::empty;
    uint32_t first = 0, count = 0;  // Its bytes, ranges or children; a rule, a token pattern.
    int32_t min = 0, max = 0;       // Of a repetition.
    uint32_t depth = 1;
  };

  Node empty();
  Node text(std::string_view bytes);
  Node characters(const CharacterSet& set);
  Node sequence(std::span<const Node> parts);
  Node choice(std::span<const Node> parts);  // Of nothing: nothing matches.
  Node repeat(Node body, int32_t min, int32_t max);
  Node optional(Node body) { return repeat(body, 0, 1); }
  Node call(Rule rule);
  Node token(TokenPattern pattern);
  Node sequence(std::initializer_list<Node> parts) {
    return sequence(std::span(parts.begin(), parts.size()));
  }
  Node choice(std::initializer_list<Node> parts) {
    return choice(std::span(parts.begin(), parts.size()));
  }

  // Rules may be called before they are defined.
  Rule declare(std::string name);
  void define(Rule rule, Node body);
  bool is_defined(Rule rule) const { return defined_[index(rule)]; }
  size_t rule_count() const { return bodies_.size(); }
  Node body(Rule rule) const { return bodies_[index(rule)]; }
  const std::string& name(Rule rule) const { return names_[index(rule)]; }

  // Takes the characters out of all nodes from the `first`th on: what they matched stays but for
  // texts that hold one of them.
  void forbid(size_t first, const CharacterSet& never);

  size_t size() const { return items_.size(); }
  const Item& item(Node node) const { return items_[size_t(node)]; }
  std::string_view text_of(const Item& item) const {
    return std::string_view(bytes_).substr(item.first, item.count);
  }
  std::span<const CharacterRange> ranges_of(const Item& item) const {
    return std::span(ranges_).subspan(item.first, item.count);
  }
  std::span<const Node> children_of(const Item& item) const {
    return std::span(children_).subspan(item.first, item.count);
  }
  const TokenPattern& pattern_of(const Item& item) const { return patterns_[item.first]; }
  std::span<const TokenPattern> patterns() const { return patterns_; }

 private:
  static size_t index(Rule rule) { return size_t(rule); }
  Node add(Item item);
  Node add_parent(Kind kind, std::span<const Node> parts);

  std::vector<Item> items_;
  std::string bytes_;
  std::vector<CharacterRange> ranges_;
  std::vector<Node> children_;
  std::vector<TokenPattern> patterns_;
  std::vector<std::string> names_;
  std::vector<Node> bodies_;
  std::vector<bool> defined_;
};

}  // namespace cairn::grammar
