// Tools as requests describe them (a list in OpenAI's form), as far as reading calls needs it:
// their names and the types of their parameters. Thread-safe: values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/reader.h"

namespace cairn::chat {

// Of the text that describes tools, and of what is written for one of them.
constexpr json::Limits kToolLimits{};

enum class ParameterType : uint8_t {
  any,     // Nothing is said, or several types are possible.
  string,  // Always a string.
  other,   // Never a string.
};

struct Tool {
  std::string name;
  std::string parameters;  // The JSON schema, as text; "{}" where there is none.
  std::vector<std::pair<std::string, ParameterType>> types;

  ParameterType type_of(std::string_view parameter) const;
  // Of what stands within parameters: members by their names, the items of lists as "item".
  ParameterType type_at(std::span<const std::string> path) const;
};

// [{"type": "function", "function": {"name", "description", "parameters"}}, …]; also the functions
// without the object around them. Errors: invalid_data, naming what is not as expected; no_room,
// over a limit.
Result<std::vector<Tool>> read_tools(std::string_view json);

// Null where there is none of this name.
const Tool* find_tool(const std::vector<Tool>& tools, std::string_view name);

}  // namespace cairn::chat
