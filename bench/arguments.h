// For benchmarks: a number that somebody has typed.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace cairn::bench {

// False: it is something else, or more than that.
template <class T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace cairn::bench
