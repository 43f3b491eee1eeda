// The functions that every template may call by name: a closed table. Constant data; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "jinja/builtins/arguments.h"

namespace cairn::jinja {

std::optional<uint8_t> find_function(std::string_view name);
Result<Value> call_function(Runtime& runtime, uint8_t id, const Arguments& arguments);

// dict(…): a mapping or pairs, then the named ones. Shared with namespace(…).
Result<std::vector<Entry>> entries_of(Runtime& runtime, const Arguments& arguments);

}  // namespace cairn::jinja
