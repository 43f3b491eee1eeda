// All commands; each stands with its options in the file of its name. Thread-safe: constant data.
#pragma once

#include "command_line/command_line.h"

namespace cairn::cli {

extern const command_line::Command kRunCommand;  // run_options.cpp
extern const command_line::Command kServeCommand;
extern const command_line::Command kRouteCommand;
extern const command_line::Command kPlanCommand;  // cli/plan
extern const command_line::Command kInspectCommand;
extern const command_line::Command kTokenizeCommand;
extern const command_line::Command kTemplateCommand;
extern const command_line::Command kEmbedCommand;
extern const command_line::Command kLogitsCommand;
extern const command_line::Command kVerifyCommand;
extern const command_line::Command kReplayCommand;
extern const command_line::Command kStoreCommand;
extern const command_line::Command kBenchCommand;
extern const command_line::Command kConvertCommand;
extern const command_line::Command kQuantizeCommand;
extern const command_line::Command kPerplexityCommand;
extern const command_line::Command kSynthCommand;
extern const command_line::Command kTuneCommand;
extern const command_line::Command kDoctorCommand;
extern const command_line::Command kPullCommand;
extern const command_line::Command kListCommand;  // These four: models.cpp
extern const command_line::Command kShowCommand;
extern const command_line::Command kRmCommand;
extern const command_line::Command kCpCommand;

}  // namespace cairn::cli
