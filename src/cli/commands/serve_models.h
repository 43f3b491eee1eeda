// Which models `cairn serve` has: one that is loaded at once and stays, or several that are loaded
// when they are asked for. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "command_line/command_line.h"
#include "hub/kept_model.h"
#include "serve/models/model_registry.h"

namespace cairn::cli {

struct ServeOptions;

// What --all-models serves: known before the process shuts itself in, so that it may read these
// files and no others.
struct ListedModels {
  std::vector<hub::KeptModel> kept;  // Also files that only an alias names, by its name.
  std::vector<std::pair<std::string, std::string>> aliases;  // Name, and what it stands for.
};

struct ServeModelsOptions {
  std::vector<std::string> aliases;  // NAME, or NAME=MODEL.
  std::vector<std::string> digests;  // HEX, or NAME=HEX.
  std::string budget;                // Of all models together; empty: what the process may take.
  bool takes_all = false;            // Those that `cairn list` shows.
  ListedModels listed = {};          // If it takes all.
  int32_t unload_seconds = 0;        // 0: they stay as long as there is room.
};

void add_models_options(command_line::Options& command, ServeModelsOptions& models);

// Targets of aliases that are references (hf:…, ollama:…, URLs) become the paths of their files.
// Errors: those of find_model().
Status find_alias_models(ServeModelsOptions& models);

// Nothing of a model's file is read. Errors: those of hub::read_settings().
Result<ListedModels> list_all_models();

// Whether models are loaded on demand.
bool has_several_models(const ServeOptions& options);
// By which clients know the only model: what was said, else `otherwise`. Errors: invalid_argument:
// several names.
Result<std::string> only_name(const ServeModelsOptions& options, const std::string& otherwise);
// That the file of the only model has the digest that was said, if one was.
Status check_only_digest(const ServeOptions& options);
// Errors: what is wrong with the folder, the names or the options.
Result<std::unique_ptr<serve::ModelRegistry>> start_models(const ServeOptions& options);

}  // namespace cairn::cli
