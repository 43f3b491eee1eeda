// `cairn synth`: writes a model with random weights, of any supported architecture and any size,
// for measurements and for reports of mistakes. Knows shapes and files, not the command line.
// Thread rule: one thread; starts its own team.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "quant/quant.h"
#include "synth/synth_shape.h"

namespace cairn::synth {

struct SynthOptions {
  SynthShape shape;
  std::string type = "Q8_0";  // Of matrices, where their rows allow it.
  uint64_t seed = 0;
  std::string out_path;
  int32_t thread_count = 0;  // 0: one for each physical core.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> on_progress;
};

struct SynthReport {
  uint64_t file_bytes = 0;
  int64_t weight_count = 0;
  int64_t tensor_count = 0;
  std::vector<std::string> notes;  // Which matrices got another type than the wanted one.
};

// The type that is meant by SynthOptions::type. Errors: not_found ("type: …").
Result<const quant::Type*> matrix_type(std::string_view name);

// The file appears under its name when it is whole; an equal seed and shape give equal bytes.
// Errors: those of check(), matrix_type() and models::find_architecture(), io.
Result<SynthReport> write_synthetic(const SynthOptions& options);

}  // namespace cairn::synth
