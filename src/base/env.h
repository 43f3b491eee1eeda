// The only place that reads environment variables, so that `grep base/env.h` finds every hidden
// switch there is. Thread rule: as getenv: no thread may change the environment meanwhile.
#pragma once

#include <optional>
#include <string>

namespace cairn {

// The variable's value; empty when it is not set (a variable set to nothing is a value: "").
std::optional<std::string> env(const char* name);

// "~/x" within the home folder, which shells expand only where it begins a word; else the path.
std::string with_home(std::string path);

}  // namespace cairn
