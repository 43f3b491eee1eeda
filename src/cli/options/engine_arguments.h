// The options of every command that computes: threads, instruction set, how keys and values are
// kept, adapters; and of those that hold conversations: context and budget. Thread rule: one
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "command_line/command_line.h"
#include "engine/engine.h"

namespace cairn::cli {

class EngineArguments {
 public:
  void add_to(command_line::Options& command);
  void add_memory_to(command_line::Options& command);
  // Those alone that change no bit of what is computed, and the adapters' files.
  void add_machine_to(command_line::Options& command);
  // Which layers run, and with how many experts. For those that make text.
  void add_program_to(command_line::Options& command);
  void add_store_to(command_line::Options& command);
  void add_drafts_to(command_line::Options& command);
  // `default_kv`: how keys and values are kept where nothing is said. Errors: invalid_argument.
  Result<EngineOptions> read(std::string_view default_kv) const;

 private:
  Result<DraftModelChoice> read_draft_model() const;
  void add_threads_to(command_line::Options& command);
  void add_weights_to(command_line::Options& command);
  void add_budget_to(command_line::Options& command);

  EngineOptions options_;
  std::string isa_, numerics_, kv_, keys_, values_, memory_budget_, context_policy_, disk_budget_;
  std::string skipped_, draft_skipped_;
  std::vector<std::string> adapters_;
  std::optional<std::string> gpu_layers_;
};

}  // namespace cairn::cli
