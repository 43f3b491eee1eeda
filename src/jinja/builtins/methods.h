// The methods of strings, lists, tuples, dicts and of Jinja's own objects: a closed table. Methods
// that would change a list or a dict exist by name only, as in the sandbox that templates are
// written for. Constant data; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "jinja/builtins/arguments.h"

namespace cairn::jinja {

// An index for call_method(); nothing where the kind has no such method.
std::optional<uint32_t> find_method(Kind kind, std::string_view name);
bool method_is_safe(uint32_t index);
Result<Value> call_method(Runtime& runtime, uint32_t index, const Value& self,
                          const Arguments& arguments);

// The table of one kind, sorted by name.
std::span<const Callable> string_methods();

}  // namespace cairn::jinja
