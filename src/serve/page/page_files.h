// The files of the web page, which are part of the program: all in this folder that are no C++.
// The build makes the table (serve/CMakeLists.txt). Thread-safe: constant.
#pragma once

#include <span>
#include <string_view>

namespace cairn::serve {

struct PageFile {
  std::string_view name;  // "index.html"
  std::string_view bytes;
};

std::span<const PageFile> page_files();

}  // namespace cairn::serve
