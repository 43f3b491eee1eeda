// From a reference to a file on this machine: found where any program has put it, else fetched into
// cairn's folder. Knows no command line. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/download.h"
#include "hub/kept_model.h"
#include "hub/model_reference.h"
#include "hub/settings.h"
#include "hub/web.h"

namespace cairn::hub {

// Cairn's own first, then those of other programs; nobody's twice.
std::vector<KeptModel> list_models(const HubSettings& settings);

// The model that is meant, without asking anybody; cairn's own first. Nothing where there is none,
// or where several could be meant.
std::optional<KeptModel> find_kept(const HubSettings& settings, const ModelReference& reference);

struct PullOptions {
  WebOptions web = {};
  int connections_max = 4;
  uint64_t chunk_bytes = uint64_t(16) << 20;
  bool takes_folder = false;  // See FindOptions.
  // What a person wants to know: which files are left out, how large what is fetched is.
  std::function<void(std::string_view line)> on_note = {};
  // Of the file of this name; `done` of what this run has to fetch, or to check.
  using OnProgress = std::function<void(std::string_view name, uint64_t done, uint64_t total)>;
  OnProgress on_progress = {}, on_check = {};
};

struct Pulled {
  std::string name;            // The reference with the file that was chosen.
  std::string path;            // Of the first file; of a folder of safetensors the folder.
  std::string sha256;          // Of the first file; empty where it was there and nobody knows.
  uint64_t fetched_bytes = 0;  // In this run.
  uint64_t resumed_bytes = 0;  // In an earlier one that was cut off.
  std::optional<Keeper> was_kept_by;  // It was there: nothing was fetched.
  bool is_folder = false;             // To be converted: see finish_conversion().
  std::string converted_path;         // Where the GGUF file of a folder has to go.
};

// Errors: those of find_model() and download(); not_found: there is no folder for models.
Result<Pulled> pull(const HubSettings& settings, const ModelReference& reference,
                    const PullOptions& options);

// When the GGUF file is there: its record is written, and the safetensors go unless they are kept.
Status finish_conversion(const HubSettings& settings, const Pulled& pulled, bool keeps_source);

}  // namespace cairn::hub
