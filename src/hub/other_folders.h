// Models that other programs have fetched, found where those keep them. Nothing there is ever
// changed; what cannot be read is not there. Thread rule: one thread.
#pragma once

#include <string>
#include <vector>

#include "hub/kept_model.h"

namespace cairn::hub {

// models--OWNER--REPO/snapshots/COMMIT/FILE: of each file the one of the main branch, else any.
std::vector<KeptModel> in_hub_cache(const std::string& folder);
// OWNER_REPO_FILE, and beside it FILE.json with the URL where it is known.
std::vector<KeptModel> in_llama_cache(const std::string& folder);
// OWNER/REPO/FILE.
std::vector<KeptModel> in_lm_studio(const std::string& folder);
// manifests/HOST/NAMESPACE/NAME/TAG and blobs/sha256-DIGEST.
std::vector<KeptModel> in_ollama(const std::string& folder);

}  // namespace cairn::hub
