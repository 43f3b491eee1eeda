// Names of a JSON object that are none of some others. Knows no schemas. One thread.
#pragma once

#include <span>
#include <string>

#include "grammar/expression.h"

namespace cairn::grammar {

// Any JSON string without escapes, its quotes included, whose content is not among `names`. Without
// escapes there is one spelling for each content.
Node keys_except(std::span<const std::string> names, Expressions& expressions);

}  // namespace cairn::grammar
