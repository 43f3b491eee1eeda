// Adapters (LoRA) in GGUF: for each matrix that they change, two matrices of a low rank. Checked
// against the model's matrices; nothing is merged, so quantized weights stay as they are.
// Invariant: what bind() gave points into the adapter, which must live as long.
// Thread-safe: constant once bound.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"
#include "graph/low_rank.h"

namespace cairn {

struct AdapterChoice {
  std::string path;
  float scale = 1.0f;  // On top of the adapter's own.
};

class Adapter {
 public:
  // Errors: not_found, invalid_data (no adapter; a half of a pair is missing), unsupported (another
  // kind of adapter, or for another architecture).
  static Result<Adapter> open(const AdapterChoice& choice, std::string_view architecture);

  // Adds a LowRank for each pair. Errors: unsupported (a tensor that is no matrix of the model),
  // invalid_data (shapes that do not fit).
  Status bind(std::span<Weight* const> matrices, std::vector<LowRank>& changes) const;

 private:
  Adapter(gguf::File file, float scale, float alpha)
      : file_(std::move(file)), scale_(scale), alpha_(alpha) {}

  gguf::File file_;
  float scale_;
  float alpha_;  // A pair counts alpha / rank; 0: as it is.
};

}  // namespace cairn
