// Sequences and alternatives between parentheses, as GBNF and regular expressions have both: an
// explicit stack, so that nesting costs no recursion. Knows no syntax. One thread.
#pragma once

#include <vector>

#include "grammar/expression.h"

namespace cairn::grammar {

class Groups {
 public:
  explicit Groups(Expressions& expressions) : expressions_(expressions) { open(0); }

  void open(size_t offset) { levels_.push_back({.offset = offset}); }
  // Closes the innermost group and returns its expression. The outermost may be closed too.
  Node close();
  // The end of an alternative of the innermost group.
  void alternate();
  void append(Node node) { levels_.back().sequence.push_back(node); }
  // Whether there is an element that a repetition would apply to; if not, `last` must not be
  // called.
  bool has_last() const { return !levels_.back().sequence.empty(); }
  Node& last() { return levels_.back().sequence.back(); }

  size_t depth() const { return levels_.size() - 1; }  // Open parentheses.
  size_t offset() const { return levels_.back().offset; }
  size_t alternative_count() const { return alternative_count_; }

 private:
  struct Level {
    std::vector<Node> sequence = {};
    std::vector<Node> alternatives = {};
    size_t offset = 0;
  };

  Expressions& expressions_;
  std::vector<Level> levels_;
  size_t alternative_count_ = 0;
};

// Parses {min,max} after its opening brace: "3}", "3,}", "3,5}". If the text is no count, `bytes`
// is 0.
struct CountText {
  int64_t min = 0, max = 0;  // Larger than any limit where the digits are more than fit.
  size_t bytes = 0;          // Up to and with the closing brace.
};
CountText read_count(std::string_view text, bool blanks_allowed);

// `count` digits of base 16 at the beginning of `text`, or a negative number.
int64_t read_hex(std::string_view text, size_t count);

}  // namespace cairn::grammar
