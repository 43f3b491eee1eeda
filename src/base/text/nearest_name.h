// Which of the known names somebody meant who mistyped one. Thread-safe: a function.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cairn {

// The known name with the fewest letters to put in, leave out or change: at most two of them, and
// at most one for each three letters. Of several the first; empty where there is none.
std::string nearest_name(std::string_view typed, std::span<const std::string> known);

}  // namespace cairn
