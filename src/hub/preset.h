// A preset: how a model is to be run, in a file that a person writes (TOML): which model, and
// values of options by their names. Knows no options: who has them says which names there are.
// Thread-safe: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cairn::hub {

struct PresetValue {
  std::string key;                 // "top-k".
  std::vector<std::string> texts;  // As one would type them: one, or those of a list.
  int line = 0;                    // From 1.
};

struct Preset {
  std::string path;
  std::string model;  // What the key "model" says, "~/" as with_home() has it; empty: nothing.
  std::vector<PresetValue> values;
};

// Errors: invalid_argument, with the path, the line and what was expected there: no TOML; a table,
// a date, a list in a list; a model that is no text.
Result<Preset> parse_preset(std::string_view path, std::string_view text);

}  // namespace cairn::hub
