// LoRA adapters in GGUF: two low-rank matrices for each matrix that they change. Checked against
// the model's matrices; nothing is merged, so quantized weights stay as they are. Invariant: the
// result of changes() points into the adapter, which must live as long. Thread-safe: constant once
// bound and loaded.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "device/backend.h"
#include "gguf/gguf.h"
#include "graph/low_rank.h"
#include "models/program.h"

namespace cairn {

struct AdapterChoice {
  std::string path;
  float scale = 1.0f;     // Multiplies the adapter's own scale; a request's default.
  std::string name = {};  // Its name in requests; empty: the file's name without its extension.
};

class Adapter {
 public:
  // Errors: not_found, invalid_data (no adapter; a half of a pair is missing), unsupported (another
  // kind of adapter, or for another architecture).
  static Result<Adapter> open(const std::string& path, std::string_view architecture);

  // Finds the model's matrices that the adapter changes; those of layers that the program skips
  // change nothing. Errors: unsupported (a tensor that is no
  // matrix of the model), invalid_data (shapes that do not fit, scales that are not finite).
  Status bind(std::span<Weight* const> matrices, const models::Program& program);
  // Hands its matrices to the backend. REQUIRES: bound.
  Status load(Backend& backend);

  // Of its tensors and alpha; independent of the file's path.
  const Sha256Digest& digest() const { return digest_; }
  // Adds a LowRank for each pair. REQUIRES: bound.
  void add_changes(float scale, std::vector<LowRank>& changes) const;
  // The largest factor that a scale is multiplied by.
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
  float alpha_;  // A pair is scaled by alpha / rank; 0: not scaled.
  Sha256Digest digest_{};
  std::vector<Pair> pairs_;
};

}  // namespace cairn
