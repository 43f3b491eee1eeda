// For tests of what other programs see of cairn.h: commands of a shell, and the header's text.
#pragma once

#include <array>
#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

namespace cairn::test {

struct Ran {
  int status;
  std::string output;  // Of both kinds.
};

inline Ran run(const std::string& command) {
  std::string output;
  FILE* const pipe = ::popen(("(" + command + ") 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "no pipe"};
  std::array<char, 4096> bytes;
  while (const size_t count = std::fread(bytes.data(), 1, bytes.size(), pipe)) {
    output.append(bytes.data(), count);
  }
  return {::pclose(pipe), output};
}

inline bool can_run(const std::string& program) {
  return run("command -v " + program).status == 0;
}

// Without its comments.
inline std::string header_text() {
  std::ifstream file(std::string(CAIRN_SOURCE) + "/include/cairn.h");
  std::stringstream read;
  read << file.rdbuf();
  return std::regex_replace(read.str(), std::regex("//[^\n]*"), std::string());
}

}  // namespace cairn::test
