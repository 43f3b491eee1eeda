// Texts in which some other texts do not occur. Knows no syntax. One thread.
#pragma once

#include <span>
#include <string>

#include "grammar/expression.h"

namespace cairn::grammar {

// Any text, also none, that holds none of these. REQUIRES: each is UTF-8, not empty.
Node text_without(std::span<const std::string> never, Expressions& expressions);

}  // namespace cairn::grammar
