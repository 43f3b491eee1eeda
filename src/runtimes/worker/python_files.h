// The Python texts that worker processes run, which are part of the library. The build makes the
// table (runtimes/CMakeLists.txt). Thread-safe: constant.
#pragma once

#include <span>
#include <string_view>

namespace cairn::runtimes {

struct PythonFile {
  std::string_view name;  // "worker.py"
  std::string_view bytes;
};

std::span<const PythonFile> python_files();
// REQUIRES: there is one of that name.
std::string_view python_file(std::string_view name);

}  // namespace cairn::runtimes
