// The filters of Jinja that chat templates have, with Hugging Face's tojson: a closed table.
// Constant data; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "jinja/builtins/arguments.h"

namespace cairn::jinja {

std::optional<uint32_t> find_filter(std::string_view name);
Result<Value> call_filter(Runtime& runtime, uint32_t index, const Value& subject,
                          const Arguments& arguments);

// The two parts of the table: what works on sequences, what works on texts and numbers.
std::span<const Callable> sequence_filters();
std::span<const Callable> text_filters();

}  // namespace cairn::jinja
