// `cairn serve`: a server for one model or several. Knows the options, not how they are spelled.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/commands/serve_models.h"
#include "cli/options/listen_arguments.h"
#include "cli/options/sandbox_argument.h"
#include "engine/engine.h"
#include "session/sampling_choice.h"
#include "tier/tier_options.h"

namespace cairn::cli {

struct ServeOptions {
  std::string model_path;  // Of a file, or of a folder; empty: the built-in model.
  std::string model_name;  // The alias or preset that it was found by; empty: none.
  ServeModelsOptions models;
  ListenArguments listen{"server"};
  std::string api_key;           // Empty: none.
  bool is_variable_key = false;  // It is the environment's, which others cannot see.
  std::string api_key_path, admin_key_path;
  bool has_no_keys = false;          // Nobody needs one, wherever they are.
  std::vector<std::string> proxies;  // Addresses of those that ask for others.
  std::string log_path = "-";
  std::string trace_path;  // Of a trace of what the engines do; empty: none.
  std::string pooling;     // For embeddings; empty: what the file says.
  int32_t requests_max = 256;
  int32_t request_seconds_max = 0;
  int32_t session_seconds_max = 0;
  int32_t drain_seconds = 0;
  int32_t tenant_share_percent = 100;
  session::SamplingChoice sampling;
  SandboxChoice sandbox;
  EngineOptions engine;
  tier::TierOptions tier;  // Without a URL: none.
};

// Serves until a signal ends it. Returns the exit code. Errors: what cannot be loaded or listened
// on.
Result<int> serve_model(const ServeOptions& options);

}  // namespace cairn::cli
