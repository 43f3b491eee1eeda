// Where models come from and where they lie, as the environment says it: the variables of other
// programs mean here what they mean there. Read once, handed on as a value. Thread rule: as env().
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cairn::hub {

struct HubSettings {
  std::string hub_url;         // HF_ENDPOINT.
  std::string token;           // HF_TOKEN, or the file of HF_TOKEN_PATH or HF_HOME; empty: none.
  std::string token_source;    // For errors: which of them it was.
  std::string ollama_url;      // CAIRN_OLLAMA_REGISTRY.
  std::string authority_path;  // SSL_CERT_FILE; empty: the system's.
  bool is_offline = false;     // HF_HUB_OFFLINE.

  std::string folder;  // Of the models that cairn has fetched; empty: no home, no folder.
  // Of other programs, whether they are there or not.
  std::string hub_cache;
  std::string llama_cache;
  std::vector<std::string> lm_studio_folders, ollama_folders;
};

// Errors: invalid_argument: a token that cannot be one. A token is read, never shown or logged.
Result<HubSettings> read_settings();

}  // namespace cairn::hub
