// A file that caches packed weights: the next start maps it instead of packing. It is written
// atomically, validated by a checksum before it is used, and belongs to one model and one packed
// layout. docs/loading.md has its format. Thread rule: one thread at a time; opening and saving use
// the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "backends/cpu/pack/packed.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "base/threads.h"
#include "device/backend.h"
#include "device/weight.h"

namespace cairn::cpu {

// A weight to be packed: its packed bytes lie at `offset` of a run that holds many.
struct PackJob {
  const Weight* weight;
  PackedMatrix* matrix;
  size_t offset;

  int64_t group_count() const { return int64_t(matrix->group_count) * weight->count; }
  size_t bytes() const { return size_t(group_count() * matrix->group_bytes); }
};

// Error: cancelled, where the packing was given up.
Status expect_wanted(const PackOptions& options);

class PackCache {
 public:
  // The packed weights of exactly these jobs. Errors: not_found (no such file), invalid_data (not
  // such a file, another layout or model, damage), cancelled, io.
  static Result<PackCache> open(const PackOptions& options, const std::vector<PackJob>& jobs,
                                ThreadPool& threads,
                                const std::function<void(size_t, size_t)>& on_progress);
  // Replaces the file, and makes its folder. Errors: cancelled, io; nothing is left then.
  static Status save(const PackOptions& options, const std::vector<PackJob>& jobs,
                     std::span<const std::byte> packed, ThreadPool& threads);

  const uint8_t* data() const;

 private:
  PackCache(MappedFile file, size_t data_offset)
      : file_(std::move(file)), data_offset_(data_offset) {}

  MappedFile file_;
  size_t data_offset_;
};

}  // namespace cairn::cpu
