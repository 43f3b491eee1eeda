// Adapters (LoRA) in GGUF: for each matrix that they change, two matrices of a low rank. Checked
// against the model's matrices; nothing is merged, so quantized weights stay as they are.
// Invariant: what changes() gave points into the adapter, which must live as long.
// Thread-safe: constant once bound and loaded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/backend.h"
#include "gguf/gguf.h"
#include "graph/low_rank.h"

namespace cairn {

struct AdapterChoice {
  std::string path;
  float scale = 1.0f;     // On top of the adapter's own, where a request says nothing else.
  std::string name = {};  // What requests call it; empty: the file's name without its ending.
};

class Adapter {
 public:
  // Errors: not_found, invalid_data (no adapter; a half of a pair is missing), unsupported (another
  // kind of adapter, or for another architecture).
  static Result<Adapter> open(const std::string& path, std::string_view architecture);

  // Finds the matrices that it changes. Errors: unsupported (a tensor that is no matrix of the
  // model), invalid_data (shapes that do not fit, scales that are not finite).
  Status bind(std::span<Weight* const> matrices);
  // Hands its matrices to the backend. REQUIRES: bound.
  Status load(Backend& backend);

  // Of its weights and how they count, wherever the file lies.
  uint64_t digest() const { return digest_; }
  // Adds a LowRank for each pair. REQUIRES: bound.
  void add_changes(float scale, std::vector<LowRank>& changes) const;
  // What the scale is multiplied with, at most.
  float largest_factor() const;

 private:
  struct Pair {
    const Weight* of;
    Weight a, b;
    float factor;  // alpha / rank.
  };

  Adapter(gguf::File file, float alpha);
  Status bind_pair(const gguf::Tensor& first, const gguf::Tensor& second,
                   std::span<Weight* const> matrices);

  gguf::File file_;
  float alpha_;  // A pair counts alpha / rank; 0: as it is.
  uint64_t digest_ = 0;
  std::vector<Pair> pairs_;
};

}  // namespace cairn
