// A stage of the sampler's chain: a file in this folder, found by its name through a generated
// table. The order of the chain is data in sample/sampler.cpp. Thread-safe: constant data.
#pragma once

#include <span>
#include <string_view>

#include "sample/candidates.h"
#include "sample/params.h"

namespace cairn::sample {

struct SamplerStage {
  std::string_view name;
  // Never removes the likeliest token. REQUIRES: candidates are not empty, temperature > 0.
  void (*apply)(Candidates& candidates, const SamplingParams& params);
};

std::span<const SamplerStage* const> all_stages();

}  // namespace cairn::sample
