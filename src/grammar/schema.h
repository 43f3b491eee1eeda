// Reads a JSON schema into expressions: texts of JSON that it describes. Which keywords, and where
// fewer texts are described than could be, is in docs/structured-output.md. A keyword that says
// something and cannot be followed is an error, never left out. Knows no automata. One thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/expression.h"
#include "grammar/limits.h"
#include "json/document.h"

namespace cairn::grammar {

// The text of a schema. Errors: invalid_argument (no JSON, a key that comes twice), no_room.
Result<json::Document> read_schema_text(std::string_view source, const Limits& limits);

// One of the document's values as a schema; what is no reference may be narrowed to some of its
// types (grammar/schema_view.h). Errors: invalid_argument (no schema, or one that nothing fits),
// unsupported, no_room; all with line, column and reason.
Result<Node> read_schema(const json::Document& document, uint32_t schema, uint32_t types,
                         const Limits& limits, Expressions& expressions);

}  // namespace cairn::grammar
