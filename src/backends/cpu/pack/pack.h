// Packs weights from a file's blocks into the layout that the vector kernels read (packed.h),
// without changing their values. Chooses the layout for each format; a format without a special one
// becomes bytes with f32 scales. Thread-safe: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/cpu/pack/pack_cache.h"
#include "backends/cpu/pack/packed.h"
#include "base/arena.h"
#include "base/half.h"
#include "base/result.h"
#include "base/threads.h"
#include "device/backend.h"
#include "device/weight.h"

namespace cairn::cpu {

// The scales of one row's 8 units (256 weights), of formats whose scale is d times a small integer.
struct SuperScales {
  Half d;
  Half dmin;          // The offset is -(dmin * minimum).
  int8_t scales[16];  // One for each unit, or for each half.
  int8_t minima[16];
};

struct FormatRule {
  PackedForm form;
  SuperScales (*super_scales)(const std::byte* block) = nullptr;  // Where form.scales is super.
};

FormatRule format_rule(const quant::Type& type);

// What a block holds, read without a detour over Type::integers, which serves where this is empty.
struct CodeReader {
  // The stored numbers of the block's weights, a byte each, in order.
  void (*codes)(const std::byte* block, uint8_t* codes) = nullptr;
  // The scale of a block of 32 weights. Null: it is super, or f16 at the block's beginning.
  void (*scale)(const std::byte* block, float* scale) = nullptr;
};
CodeReader code_reader(const quant::Type& type);

// What `weight` becomes, without data.
PackedMatrix packed_shape(const Weight& weight);

// Packs rows [16 * group, 16 * group + 16) of a matrix into matrix.group_bytes bytes.
void pack_group(const Weight& weight, const PackedMatrix& shape, int32_t matrix, int32_t group,
                uint8_t* out);

struct PackSettings {
  PackOptions options;
  BlockAdvice advice;
  std::function<void(size_t done_bytes, size_t total_bytes)> on_progress;
  bool halves_by_vectors = false;  // What PackedMatrix::by_vectors says of forms with halves.
};

// The packed weights of one backend. Thread rule: one thread at a time; it uses the pool.
class PackedWeights {
 public:
  explicit PackedWeights(PackSettings settings = {}) : settings_(std::move(settings)) {}

  // Notes a weight and gives the matrix that will hold it, which stays where it is: the same one
  // for weights of the same blocks and shape. Errors: invalid_data when the blocks do not fit the
  // shape.
  Result<const PackedMatrix*> add(const Weight& weight);
  // What pack() would take for them: nothing where a cache's file is mapped instead.
  size_t needed_bytes(const std::vector<const PackedMatrix*>& matrices) const;
  // Gives data to those of the matrices that have none yet: packs them, or takes them from the
  // cache. Does nothing where packing is off. Errors: memory_full. A cache that cannot be used is a
  // warning.
  Status pack(const std::vector<const PackedMatrix*>& matrices, ThreadPool& threads);

 private:
  struct Entry {
    Weight weight;
    PackedMatrix matrix;
  };

  std::vector<PackJob> jobs_of(const std::vector<const PackedMatrix*>& matrices) const;
  Status pack_all(const std::vector<PackJob>& jobs, uint8_t* data, ThreadPool& threads);

  PackSettings settings_;
  std::unordered_map<const PackedMatrix*, std::unique_ptr<Entry>> entries_;
  std::unordered_map<const std::byte*, const Entry*> by_blocks_;  // By where these begin.
  std::vector<Arena> arenas_;
  std::vector<PackCache> caches_;
};

}  // namespace cairn::cpu
