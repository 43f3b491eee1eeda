// The options of commands that read what strangers made and go on running: --sandbox and
// --sandbox-path; and what a model and an engine need of the disk. Thread rule: one thread.
#pragma once

#include <string>
#include <vector>

#include "base/machine/sandbox.h"
#include "base/result.h"
#include "command_line/command_line.h"
#include "engine/engine.h"
#include "tier/tier_options.h"

namespace cairn::cli {

struct SandboxChoice {
  std::string mode = "auto";  // Or on: it is there or nothing runs; or off.
  std::vector<std::string> paths = {};
};

void add_sandbox(command_line::Options& command, SandboxChoice& choice);

// Files that the engine opens: the model with all of its parts, or a folder of models; adapters; a
// draft model; the folders of the store and of packed weights, which are made here where they are
// not there.
void allow_model(const std::string& path, SandboxRules& rules);
void allow_engine(const EngineOptions& options, SandboxRules& rules);
// Its server, and the files that say how to reach it.
void allow_tier(const tier::TierOptions& options, SandboxRules& rules);
// Where a file is written under another name first: its folder.
void allow_output(const std::string& path, SandboxRules& rules);
// Where a file is read that may have been replaced by then: its folder.
void allow_replaced(const std::string& path, SandboxRules& rules);

// base/machine/sandbox.h, as it was chosen. False: it was not, or the kernel lacks something, which
// `cairn doctor` tells. Errors: of a kernel that lacks something where mode is on.
Result<bool> enter_sandbox(const SandboxChoice& choice, SandboxRules rules);

}  // namespace cairn::cli
