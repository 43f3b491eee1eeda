// Reads regular expressions: the part that Python, ECMAScript and PCRE agree on and that a finite
// automaton can follow. Knows no automata. One thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/characters.h"
#include "grammar/expression.h"
#include "grammar/lengths.h"
#include "grammar/limits.h"

namespace cairn::grammar {

struct RegexStyle {
  // The expression may match anywhere in the text, unless ^ and $ anchor it: as the patterns of
  // JSON schemas. Else the whole text must fit.
  bool is_search = false;
  // Characters stand as they are written inside a JSON string: quotes and such escaped.
  bool is_json = false;
  // Texts of other lengths, in characters, are left out. Needs is_json.
  LengthRange length = {};
};

// Errors: invalid_argument; unsupported for lookaround, back references, word boundaries, anchors
// inside, and for lengths that take too much writing out; no_room.
Result<Node> read_regex(std::string_view source, RegexStyle style, const Limits& limits,
                        Expressions& expressions);

}  // namespace cairn::grammar
