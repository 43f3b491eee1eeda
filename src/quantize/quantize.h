// `cairn quantize`: writes a model again with its matrices in other types. Row by row, so that
// neither the order of threads nor their number changes a byte.
// Thread rule: one thread; starts its own team.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "quantize/quantize_types.h"

namespace cairn::quantize {

struct QuantizeOptions {
  std::string in_path;   // Of a split model: the first file.
  std::string out_path;  // "-": standard output.
  std::string mix;       // "Q4_K_M".
  std::vector<TypeOverride> overrides;
  std::string importance_path;  // May be empty.
  int32_t thread_count = 0;     // 0: one for each physical core.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> on_progress;
};

struct QuantizeReport {
  uint64_t in_bytes = 0;
  uint64_t out_bytes = 0;
  int64_t weight_count = 0;
  std::map<std::string, int64_t> tensor_counts;  // By type.
  int64_t blind_count = 0;  // Matrices of so few bits that importances matter much, without any.
  std::vector<std::string> notes;
};

// The file appears under its name when it is whole. Errors: what files and types can be wrong in.
Result<QuantizeReport> quantize(const QuantizeOptions& options);

}  // namespace cairn::quantize
