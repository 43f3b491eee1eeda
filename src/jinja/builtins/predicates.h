// Jinja's tests, as in `x is defined`: a closed table. Constant data; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "jinja/builtins/arguments.h"

namespace cairn::jinja {

std::optional<uint32_t> find_test(std::string_view name);
Result<bool> call_test(Runtime& runtime, uint32_t index, const Value& subject,
                       const Arguments& arguments);

}  // namespace cairn::jinja
