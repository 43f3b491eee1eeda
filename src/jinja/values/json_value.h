// JSON text as template values. Knows nothing of what the values mean. Pure; any thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "jinja/values/value.h"

namespace cairn::jinja {

constexpr size_t kJsonBytesMax = 32u << 20;
constexpr int kJsonDepthMax = 64;
constexpr size_t kJsonMembersMax = 65'536;  // Of one object or array of objects' members.

// All strings and numbers in it count as the user's (docs/chat-templates.md). Errors (invalid_data,
// with line and column): broken JSON, a key that comes twice, an integer of more than 64 bits, a
// number that is not finite, half a surrogate pair; (no_room): more than the limits above.
Result<jinja::Value> parse_json(std::string_view json);

}  // namespace cairn::jinja
