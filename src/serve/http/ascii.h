// Letters of ASCII, which is what HTTP compares; the program's locale has no say in it.
// Thread-safe: pure.
#pragma once

#include <string>
#include <string_view>

namespace cairn::serve::http {

inline char lower(char c) {
  return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
}

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

}  // namespace cairn::serve::http
