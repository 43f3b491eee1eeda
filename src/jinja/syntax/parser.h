// A template's source becomes a tree, or a syntax error with line and column. Pure; any thread.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "jinja/syntax/syntax.h"

namespace cairn::jinja {

// Jinja as chat templates use it: for, if, set, macro, call, filter, with, break, continue, print,
// raw, generation. Errors: invalid_data (syntax; a tag that chat templates may not use, such as
// include), no_room (a budget: 1 MiB of source, nesting of 128).
Result<std::unique_ptr<const Tree>> parse(std::string_view source);

}  // namespace cairn::jinja
