// An engine's parameters as the header has them, and as the library has them. Thread-safe: pure.
#pragma once

#include <cairn.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/schedule/scheduler.h"

namespace cairn::capi {

struct EngineTerms {
  std::optional<std::string> backend;  // As it was asked for by name.
  Status others_fit = Ok{};            // Or what no other backend than the built-in one has.
  EngineOptions engine;
  SchedulerOptions scheduler;
};

// Errors: invalid_argument and invalid_data, naming the member.
Result<EngineTerms> engine_terms_of(const cairn_engine_params& params);

}  // namespace cairn::capi
