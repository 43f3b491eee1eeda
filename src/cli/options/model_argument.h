// The option of every command that names a model's file. Thread rule: one thread.
#pragma once

#include <string>

#include "command_line/command_line.h"

namespace cairn::cli {

// Where no file is named, `path` stays empty: the built-in model.
void add_model(command_line::Options& command, std::string& path);
void add_required_model(command_line::Options& command, std::string& path);

}  // namespace cairn::cli
