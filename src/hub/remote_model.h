// A model as a source has it: which files, where, of what size and digest. The source is asked for
// descriptions only; download.h fetches. Thread rule: one thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "hub/download.h"
#include "hub/model_reference.h"
#include "hub/settings.h"
#include "hub/web.h"

namespace cairn::hub {

struct RemoteModel {
  ModelReference reference;        // With the file that was chosen.
  std::string revision;            // The commit, or the digest of a manifest; empty: none is known.
  std::vector<RemoteFile> files;   // Of a split model all parts, in order.
  std::vector<std::string> paths;  // Of each, within the folder of the reference.
  std::vector<std::string> left_out;  // Names of files that belong to it and are not read.
  bool is_folder = false;             // safetensors, to be converted.
  Credential credential;              // For its files.
  ExplainStatus explain;              // Must not outlive the Web that found it.
};

struct FindOptions {
  bool takes_folder = false;  // Where there is no GGUF file, what can be converted to one.
};

// Errors: those of the source, in its words: not_found with near names; invalid_argument: a token
// is needed, a licence has to be accepted; unsupported: no GGUF file, and what can be done.
Result<RemoteModel> find_model(Web& web, const HubSettings& settings,
                               const ModelReference& reference, const FindOptions& options);

// The sources, each in a file of its name.
Result<RemoteModel> find_on_hugging_face(Web& web, const HubSettings& settings,
                                         const ModelReference& reference,
                                         const FindOptions& options);
Result<RemoteModel> find_in_ollama_registry(Web& web, const HubSettings& settings,
                                            const ModelReference& reference);
Result<RemoteModel> find_at_url(const HubSettings& settings, const ModelReference& reference);

}  // namespace cairn::hub
