// The expressions of JSON's syntax, each made as a rule when it is first used. Knows no schemas.
// One thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/expression.h"

namespace cairn::grammar {

class JsonNodes {
 public:
  // REQUIRES: `expressions` outlives this.
  explicit JsonNodes(Expressions& expressions) : expressions_(expressions) {}

  // Nothing, a space, or a line end and at most 20 spaces or 8 tabs: enough for any usual layout,
  // and no model can go on with blanks for ever. Before colons and commas stands nothing, behind
  // colons at most a space.
  Node blanks();
  // One character of a string, in any of its spellings; halves of surrogate pairs are none.
  Node character();
  Node string();
  Node number();   // As doubles hold it: 16 digits on each side, two of an exponent.
  Node integer();  // At most 16 digits.
  Node boolean();
  Node null() { return expressions_.text("null"); }
  Node value();
  Node object();
  Node array();

  // Between the given brackets: `min` to `max` items with commas and blanks.
  Node list(std::string_view open, Node item, int32_t min, int32_t max, std::string_view close);
  // `name` as a string, a colon, a value.
  Node member(Node name, Node value);
  // "," and blanks behind it.
  Node comma();
  // Exactly this content, between its quotes.
  Node quoted(std::string_view content);

 private:
  enum Known { kBlanks, kCharacter, kString, kNumber, kInteger, kBoolean, kValue, kObject, kArray };
  // The rule's call; `make` says what it is when it is called for the first time.
  template <class Make>
  Node rule(Known known, std::string_view name, const Make& make);

  Expressions& expressions_;
  std::array<std::optional<Rule>, kArray + 1> rules_;
};

}  // namespace cairn::grammar
