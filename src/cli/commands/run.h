// `cairn run`: one answer to a prompt, or a conversation. Knows the options, not how they are
// spelled. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options/sandbox_argument.h"
#include "engine/engine.h"
#include "session/constraint.h"
#include "session/sampling_choice.h"

namespace cairn::cli {

struct RunOptions {
  std::string model_path;  // Empty: the built-in model.
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_path;  // "-": standard input.
  bool is_variable_prompt = false;         // One of these is the environment's: input comes first.
  std::string system;
  int32_t token_count_max = -1;
  session::SamplingChoice sampling;
  session::ConstraintChoice constraint;
  std::string tools_path;              // A JSON list of tools; empty: none.
  std::string tool_choice;             // auto, none, required, a tool's name; empty: no constraint.
  std::string reasoning;               // "on", "off", a number of tokens; empty: as it comes.
  std::vector<std::string> stop = {};  // Texts that end an answer.
  bool raw = false;
  bool json = false;
  bool chat = false;           // A conversation line by line even where input is no terminal.
  bool verbose = false;        // All figures, even where stderr is no terminal.
  bool quiet = false;          // No figures.
  bool forgets_lines = false;  // Typed lines are not kept in the history file.
  // A conversation that is gone on with, and written again after each turn; empty: none.
  std::string session_path = {};
  std::string trace_path = {};                  // Of a trace of what the engine does; empty: none.
  std::string receipt_path = {};                // Of the last answer's receipt; empty: none.
  std::string server = {};                      // Whose model answers; empty: one in this process.
  std::string api_key = {}, api_key_path = {};  // That the server wants.
  std::string authority_path = {};              // Who vouches for it; empty: the system's.
  std::string message_prefix = {};              // Stands before each message of a conversation.
  SandboxChoice sandbox = {};
  EngineOptions engine;
};

// Returns the exit code. Errors: everything that loading and answering can say.
Result<int> run(const RunOptions& options);

}  // namespace cairn::cli
