// See the header: in a file of its own, so that a check can allow getenv by name.
#include "base/env.h"

#include <cstdlib>

namespace cairn {

std::optional<std::string> env(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::string with_home(std::string path) {
  const std::string home = env("HOME").value_or("");
  return path.starts_with("~/") && !home.empty() ? home + path.substr(1) : path;
}

}  // namespace cairn
