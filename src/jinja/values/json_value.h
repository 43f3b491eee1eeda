// JSON text as template values. Knows nothing of what the values mean. Pure; any thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "jinja/values/value.h"
#include "json/reader.h"

namespace cairn::jinja {

constexpr json::Limits kJsonLimits{
    .bytes = size_t(32) << 20, .depth = 64, .values = size_t(1) << 24, .members = 65'536};

// All strings and numbers in it count as the user's (docs/chat-templates.md). Errors (invalid_data,
// with line and column): broken JSON, a key that comes twice, an integer of more than 64 bits, a
// number that is not finite, half a surrogate pair; (no_room): more than the limits above.
Result<Value> parse_json(std::string_view json);

}  // namespace cairn::jinja
