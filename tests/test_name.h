// Names of tests with a parameter: what a person can type, and run again in another build.
#pragma once

#include <string>
#include <string_view>

namespace cairn::test {

// Letters and digits as they are; an underscore for each other character.
inline std::string test_name(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && (c < '0' || c > '9')) c = '_';
  }
  return name;
}

}  // namespace cairn::test
