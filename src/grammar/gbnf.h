// Reads GBNF, the grammar notation of llama.cpp, into expressions. Knows no automata. Errors name
// line, column and reason. One thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/expression.h"
#include "grammar/limits.h"

namespace cairn::grammar {

// Adds the rules of `source`; names are this source's own. Returns the rule "root".
// Errors: invalid_argument (syntax, a rule that is called and not there, or there twice); no_room.
Result<Rule> read_gbnf(std::string_view source, const Limits& limits, Expressions& expressions);

}  // namespace cairn::grammar
