// The "format" of strings in JSON schemas, as regular expressions. Thread-safe: constant data.
#pragma once

#include <string_view>

namespace cairn::grammar {

// Empty where the format is not known: it is an annotation then.
std::string_view pattern_of_format(std::string_view format);

}  // namespace cairn::grammar
