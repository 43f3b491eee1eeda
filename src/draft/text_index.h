// Texts in which the longest end of another text is found, within a budget of bytes: two
// generations, of which the older one is dropped when the younger one is full. Who follows a text
// has a cursor; what is appended or dropped meanwhile does not disturb it. Knows neither tenants
// nor drafts. Thread rule: none, it has no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.h"
#include "draft/suffix_automaton.h"

namespace cairn::draft {

class TextIndex {
 public:
  // Matches are no longer than this, and what a new generation and a new branch begin with: a
  // cursor is made anew from so many tokens.
  static constexpr size_t kContextTokens = 64;

  // Less than 64 KiB is nothing: then nothing is kept.
  explicit TextIndex(size_t budget_bytes);

  // A token that is none of a vocabulary ends the text.
  void append(Token token);
  void end_text();
  // The text that is being appended ends with these tokens.
  bool ends_with(std::span<const Token> tokens) const;
  void forget();
  size_t bytes() const;

  // Belongs to one text, and to one index.
  struct Cursor {
    struct Place {
      uint64_t generation = 0;
      SuffixAutomaton::Cursor at;
    };
    std::array<Place, 2> places;
  };
  // `text`: all of it; its last `new_count` tokens are new to the cursor. A cursor that was never
  // used, and each that has fallen far behind, begins with the last tokens.
  void follow(Cursor& cursor, std::span<const Token> text, size_t new_count) const;

  struct Match {
    int32_t length = 0;
    const SuffixAutomaton* automaton = nullptr;
    SuffixAutomaton::Cursor at;
    bool is_younger = false;
  };
  // Of length 0: there is none. Of equally long ones, the younger.
  Match longest(const Cursor& cursor) const;

 private:
  void rotate();

  size_t budget_bytes_;
  // The younger one is number generation_, the older one the number before.
  uint64_t generation_ = 1;
  std::unique_ptr<SuffixAutomaton> younger_;
  std::unique_ptr<SuffixAutomaton> older_;
};

}  // namespace cairn::draft
