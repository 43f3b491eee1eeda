// See the header: one function, in a file of its own so that a check can allow it by name.
#include "base/env.h"

#include <cstdlib>

namespace cairn {

std::optional<std::string> env(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace cairn
