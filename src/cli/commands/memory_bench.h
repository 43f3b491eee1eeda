// `cairn bench memory`: what conversations cost in tokens, bytes and time, on models of real sizes
// with random weights (only the text that they say is random) or on a model that is named.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace cairn::cli {

struct MemoryBenchArguments {
  std::vector<std::string> models;   // GGUF files; empty: presets.
  std::vector<std::string> presets;  // Empty: all with a line in the table of peers.
  std::string type = "Q4_0";         // Of the presets' matrices.
  std::string folder;                // For the presets' files; empty: the system's temporary one.
  bool json = false;
  EngineOptions engine;
};

// Prints a table for each model; returns the exit code, an error's where a bar is missed.
Result<int> bench_memory(const MemoryBenchArguments& arguments);

}  // namespace cairn::cli
