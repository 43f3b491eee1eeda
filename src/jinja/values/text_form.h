// Values as text: Python's str() and repr(), and JSON as json.dumps writes it.
// What the form adds to strings (quotes, brackets, commas) counts as the user's text: it can never
// help to build a special token. One render, one thread.
#pragma once

#include <string>

#include "jinja/runtime.h"

namespace cairn::jinja {

std::string real_repr(double value);  // The shortest that reads back: 1.0, 1e+16, inf.

Status append_text(Runtime& runtime, MarkedText& out, const Value& value);
// `is_ascii`: with escapes for all other characters, as ascii() has it.
Status append_repr(Runtime& runtime, MarkedText& out, const Value& value, bool is_ascii = false);
// str(value) as a value; strings come back as they are, `safe` ones too.
Result<Value> to_string(Runtime& runtime, const Value& value);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool has_indent = false;
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// Error: a value that JSON does not have, such as an undefined one.
Result<Value> to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace cairn::jinja
