// Values that models write in other forms than JSON, made JSON text: Python's literals, bare
// scalars between tags, Gemma's braces, MiniMax's elements. Thread-safe: pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/tools.h"

namespace cairn::chat {

constexpr int kLiteralDepthMax = 64;  // Values in values.

// Python's or JSON's literal as JSON; nothing where it is neither.
std::optional<std::string> python_literal_json(std::string_view text);

// The arguments of a Python call, "a=1, b='x'" as {"a": 1, "b": "x"}. Positional ones take the
// tool's parameter names in their order. Nothing where it is no such text.
std::optional<std::string> python_arguments_json(std::string_view text, const Tool* tool);

// What stood between two tags.
std::string scalar_json(std::string_view text, ParameterType type);

// a:1,b:{c:<quote>x<quote>} as JSON; nothing where it is no such text.
std::optional<std::string> braces_json(std::string_view text, std::string_view quote);

// <mark><a>1<mark></a><mark><b>…: elements of their own names as a JSON object; those named "item"
// are a list.
std::optional<std::string> elements_json(std::string_view text, std::string_view mark,
                                         const Tool* tool);

}  // namespace cairn::chat
