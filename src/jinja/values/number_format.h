// Fields of text and numbers as Python's format mini-language and its % operator write them.
// Pure functions; any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "jinja/runtime.h"

namespace cairn::jinja {

struct FieldSpec {
  std::string fill = " ";  // One character.
  char align = 0;          // '<', '>', '^', '='; 0: what the type likes.
  char sign = '-';         // '-', '+' or ' '.
  bool has_sign = false;   // It was said which.
  bool drops_minus_of_zero = false;
  bool is_alternate = false;
  bool is_zero_filled = false;  // By the "0" before the width: numbers are then filled like '='.
  char grouping = 0;            // ',' or '_' between thousands.
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

// `[[fill]align][sign][z][#][0][width][,][.precision][type]`.
Result<FieldSpec> parse_field_spec(std::string_view text);

// A number or a string, in its field; truth is a number. Error: what does not fit the value.
Result<MarkedText> format_field(Runtime& runtime, const Value& value, const FieldSpec& spec);

// Digits of a real: types e, E, f, F, g, G, %; no sign. Pays for each digit.
Result<std::string> real_digits(Runtime& runtime, double value, char type, int precision,
                                bool is_alternate);

// A text brought to the width (in characters) by the spec's fill.
MarkedText padded(MarkedText text, const FieldSpec& spec, char default_align);

}  // namespace cairn::jinja
