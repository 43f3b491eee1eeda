// The values of the preset that a person names as a model. Thread rule: one thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "command_line/command_line.h"

namespace cairn::cli {

// None where `named` is a file, a reference, or a word without a preset. Errors: of the preset's
// file.
Result<std::vector<command_line::PresetText>> read_preset(const std::string& named);

}  // namespace cairn::cli
