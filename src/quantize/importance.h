// Importance matrices: how strongly the inputs of each matrix are used, measured over some text by
// llama.cpp's imatrix tool. Reads its GGUF files and its older .dat files, trusting neither.
// Thread-safe once loaded: constant data.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cairn::quantize {

class Importance {
 public:
  // Errors: io, invalid_data (with the path, the tensor and what is wrong).
  static Result<Importance> load(const std::string& path);

  // A factor for each input of the matrix, for each of its experts one after another; empty where
  // the file has none. REQUIRES: the tensor has `inputs` * `expert_count` of them.
  // Errors: invalid_data, when the file has another number.
  Result<std::span<const float>> of(std::string_view tensor, int64_t inputs,
                                    int64_t expert_count) const;
  size_t size() const { return factors_.size(); }
  bool has(std::string_view tensor) const { return factors_.contains(tensor); }
  const std::string& first_name() const { return factors_.begin()->first; }
  std::span<const std::string> datasets() const { return datasets_; }

 private:
  Status load_gguf(std::span<const std::byte> bytes, const std::string& path);
  Status load_dat(std::span<const std::byte> bytes, const std::string& path);

  std::string path_;
  std::map<std::string, std::vector<float>, std::less<>> factors_;
  std::vector<std::string> datasets_;
};

}  // namespace cairn::quantize
