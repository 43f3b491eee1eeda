// Arguments of calls, and the tables that name what a template may call. The tables are closed:
// nothing else of the host can be reached (docs/chat-templates.md). Constant data; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/runtime.h"

namespace cairn::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// What was not given is absent.
using Call = Result<Value> (*)(Runtime&, const Value& subject, std::span<const Value> arguments);
using FreeCall = Result<Value> (*)(Runtime&, const Value& subject, const Arguments& arguments);

// Parameters are names with spaces between; `=` after a name says that it may be left out.
struct Callable {
  std::string_view name;
  std::string_view parameters;
  Call call = nullptr;
  FreeCall free_call = nullptr;  // Instead of `call`: takes what comes.
};

constexpr uint32_t kUnknownFunction = UINT32_MAX;
// Handing over one argument costs as much as touching so many bytes.
constexpr size_t kArgumentWork = 32;

// Error: an argument too many, twice or missing.
Result<std::vector<Value>> bind(std::string_view function, std::string_view parameters,
                                const Arguments& arguments);

Result<Value> invoke(Runtime& runtime, const Callable& callable, const Value& subject,
                     const Arguments& arguments);

// An argument as a number, a truth value, a text; or the fallback where it is absent.
Result<int64_t> integer_or(const Value& argument, int64_t fallback, std::string_view what);
bool truth_or(const Value& argument, bool fallback);
Result<std::string_view> text_of(const Value& argument, std::string_view what);

}  // namespace cairn::jinja
