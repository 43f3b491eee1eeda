// Reads a JSON schema into expressions: texts of JSON that it describes. Which keywords, and where
// fewer texts are described than could be, is in docs/structured-output.md. A keyword that says
// something and cannot be followed is an error, never left out. Knows no automata. One thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/expression.h"
#include "grammar/limits.h"

namespace cairn::grammar {

// Errors: invalid_argument (no schema, or one that nothing fits), unsupported, no_room; all with
// line, column and reason.
Result<Node> read_schema(std::string_view source, const Limits& limits, Expressions& expressions);

}  // namespace cairn::grammar
