// All commands; each stands with its options in the file of its name. Thread-safe: constant data.
#pragma once

#include "cli/command_line.h"

namespace cairn::cli {

extern const Command kRunCommand;  // run_options.cpp
extern const Command kServeCommand;
extern const Command kInspectCommand;
extern const Command kTokenizeCommand;
extern const Command kTemplateCommand;
extern const Command kEmbedCommand;
extern const Command kLogitsCommand;
extern const Command kVerifyCommand;
extern const Command kReplayCommand;
extern const Command kStoreCommand;
extern const Command kBenchCommand;
extern const Command kConvertCommand;
extern const Command kQuantizeCommand;
extern const Command kPerplexityCommand;
extern const Command kSynthCommand;

}  // namespace cairn::cli
