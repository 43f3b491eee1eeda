// The arguments of the vector kernels, as plain data, and the table of kernels that each
// instruction set fills. ops.cpp unpacks the ops and steps of device/ into these pointers and
// counts, because the files of an instruction set must not include inline functions of the standard
// library. All strides are in floats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/reference/route_functions.h"
#include "base/ids.h"

namespace cairn::cpu {

// One row, `group_count` runs of `group` elements each.
struct RmsNormArgs {
  const float* x;
  const float* gain;  // May be null.
  float* out;
  int32_t group, group_count;
  int32_t gain_step;  // From one group's gain to the next: 0 or `group`.
  float epsilon;
};

// The same, with what LayerNorm has besides.
struct LayerNormArgs {
  const float* x;
  const float *gain, *bias;  // May be null; no bias without a gain.
  float* out;
  int32_t group, group_count;
  int32_t gain_step;
  float epsilon;
};

struct AddArgs {
  const float *a, *b;
  float* out;
  int32_t count;
  float scale;
};

struct ScaleArgs {
  const float* x;
  const float* of_columns;  // May be null.
  float* out;
  int32_t count;
  float factor;
};

struct ActivateArgs {
  const float* x;
  float* out;
  int32_t count;
};

struct GateArgs {
  const float *gate, *x;
  float* out;
  int32_t count;
};

struct ExpertSumArgs {
  const float *x, *weights;
  float* out;
  int32_t rank_count, width;
};

// One row of streams of `width` elements each.
struct MixStreamsArgs {
  const float *a, *b;
  const float* coefficients;  // [out_count][in_count]; may be null: zeros.
  float* out;                 // May be a.
  int32_t width, out_count, in_count;
  float offset;
};

struct GaussianTopkArgs {
  const float* x;
  float* out;
  int32_t count;
  float deviations;
};

struct RopeArgs {
  float* x;
  const float* table;
  int32_t head_count, head_dim, pair_count;
};

// One head of one page table: where a page's keys are [key_dim][kPageTokens], its values
// [kPageTokens][value_dim].
struct KvHeadArgs {
  std::byte *keys, *values;  // This head's part of page 0.
  size_t keys_page_bytes, values_page_bytes;
  const PageId* pages;
  int32_t key_dim, value_dim;
  bool values_in_keys;  // A value is the beginning of its key; `values` is `keys` again.
};

struct StoreKvArgs {
  KvHeadArgs head;
  const float *k, *v;
  int32_t position;
};

// One head of one row: the positions [begin, end) that it sees, at least one.
struct AttendQuery {
  const float* q;
  float* slot;  // Where its sums go: see attention.h.
  int32_t begin, end;
  int32_t position;  // Its own.
  float slope;       // ALiBi's slope; 0: none.
};

inline constexpr int32_t kAttendQueries = 128;   // The most queries of one call.
inline constexpr int32_t kBlockPositions = 256;  // kAttentionBlock of device/step.h.
inline constexpr int32_t kPageSlots = 32;        // kPageTokens of device/step.h.
inline constexpr int32_t kQueryBlock = 8;        // Queries that share one walk, at most.
inline constexpr int32_t kSlotHead = 16;         // Floats of a slot before the output.

// The blocks [first_block, end_block), as far as they are visible to the queries.
struct AttendArgs {
  KvHeadArgs head;
  const AttendQuery* queries;
  int32_t query_count;
  int32_t key_type, value_type;  // KvType.
  // Of as many queries and fewer, each block of them reads floats in pages as they are stored; of
  // more, they are widened once for all.
  int32_t queries_on_pages;
  float scale, softcap;
  int32_t first_block, end_block;
  int32_t block_step;  // Floats from a block's slot to the next one's; 0: one slot for all.
  float* scratch;      // attend_scratch_floats() long, 64-byte aligned.
};

// The slots of one query, in order.
struct FinishAttentionArgs {
  float* slots;
  int32_t slot_count, value_dim;
  const float* sink;  // May be null.
  float* out;
};

constexpr int32_t padded_dim(int32_t dim) {
  return (dim + 15) / 16 * 16;
}
constexpr int32_t slot_floats(int32_t value_dim) {
  return kSlotHead + padded_dim(value_dim);
}
// The last block may be short of queries, not of room.
constexpr int32_t attend_q_floats(int32_t key_dim) {
  return (kAttendQueries + kQueryBlock) * padded_dim(key_dim);
}
// What is widened at a time of values, 16 KiB of floats: half of a first cache, since all queries
// walk over it one block after another, and since sums are loaded and stored for each time.
inline constexpr int32_t kValueTilePages = 4;
inline constexpr int32_t kValueTileDims = 32;
constexpr int32_t attend_scratch_floats(int32_t key_dim, int32_t value_dim) {
  const int32_t values_tile = kValueTilePages * kValueTileDims;
  const int32_t tile = kPageSlots * (key_dim > values_tile ? key_dim : values_tile);
  return attend_q_floats(key_dim) + kAttendQueries * (kBlockPositions + slot_floats(value_dim)) +
         tile;
}

inline constexpr size_t kLineBytes = 64;       // Of a cache line, to which states are aligned.
inline constexpr int32_t kAheadFloats = 1024;  // How far ahead states are fetched: some 100 ns.

// Consecutive rows of one slice, some neighbouring channels.
struct ConvArgs {
  const float* x;     // Their part of the slice's first row.
  const float* tail;  // Their part of [kernel - 1][tail_stride], or null: zeros.
  const float *weight, *bias;
  float* out;  // Their part of the slice's first row.
  int32_t x_stride, tail_stride, out_stride;
  int32_t first_row, row_count;  // Which rows of the slice to compute.
  int32_t channels, kernel;
  bool silu;
  float* turned;  // Room for [kernel][channels].
};

// Consecutive rows of one slice, `channels` neighbouring channels of Mamba-1's scan.
struct ChannelScanArgs {
  const float *x, *dt;  // Their part of the first row; dt before softplus.
  const float *b, *c;   // The first row's.
  float* out;
  int32_t x_stride, dt_stride, b_stride, c_stride, out_stride;
  int32_t row_count, channels, state_size;
  const float* a;       // [channels][state_size]
  const float* before;  // The channels' part of [state_size][state_stride], or null: zeros.
  float* after;         // The same, after all rows.
  int32_t state_stride;
  const float* d;
  bool streams;            // As of ScanArgs.
  float *decays, *states;  // Room for [state_size][channels] each.
};

// What a row's inputs and the sums of its outputs take while the states walk past: four vectors of
// either.
inline constexpr int32_t kScanSumFloats = 2 * 4 * 16;

// Consecutive rows of one slice, one head.
struct ScanArgs {
  const float *x, *b, *c;   // This head's (or its group's) part of the first row.
  const float *dt, *decay;  // [row_count], already softplus and exp.
  float* out;
  int32_t x_stride, b_stride, c_stride, out_stride;
  int32_t row_count, head_dim, state_size;
  const float* before;  // [state_size][head_dim]; may be `after`.
  float* after;
  float d;
  bool streams;  // `after` has its rows aligned to kLineBytes, and is not read soon.
  float* room;   // [row_count][kScanSumFloats], where row_count > 1.
};

// dt = softplus(raw + bias), decay = exp(dt * a), for `count` rows.
struct ScanStepArgs {
  const float* raw;
  float *dt, *decay;
  int32_t raw_stride, count;
  float bias, a;
};

// Columns whose states wait between rows, where the last row stores them past the caches.
inline constexpr int32_t kDeltaRoomColumns = 32;

// Consecutive rows of one slice, some columns of one head.
struct DeltaArgs {
  const float *q, *k, *v;     // This head's part of the first row; v from the first column.
  const float *decay, *rate;  // [row_count], already exp and sigmoid.
  float* out;                 // From the first column.
  int32_t q_stride, k_stride, v_stride, out_stride;
  int32_t row_count, column_count;
  int32_t key_dim, value_dim;
  const float* before;  // [key_dim][value_dim] from the first column; may be `after`.
  float* after;
  bool streams;  // As of ScanArgs.
  float* room;   // [key_dim][kDeltaRoomColumns], where it streams more than one row.
};

// decay = exp(softplus(raw + bias) * a), rate = sigmoid(raw_rate), for `count` rows.
struct DeltaStepArgs {
  const float *raw, *raw_rate;
  float *decay, *rate;
  int32_t raw_stride, raw_rate_stride, count;
  float bias, a;
};

// Consecutive rows of one slice, some columns of one head, whose keys do four things.
struct ChannelDeltaArgs {
  const float *q, *written, *asked, *erased, *decay;  // This head's part of the first row.
  const float* v;                                     // From the first column.
  float* out;                                         // From the first column.
  int32_t q_stride, written_stride, asked_stride, erased_stride, decay_stride, v_stride, out_stride;
  int32_t row_count, column_count;
  int32_t key_dim, value_dim;
  const float* before;  // [key_dim][value_dim] from the first column; may be `after`.
  float* after;
  bool streams;  // As of ScanArgs.
  float* room;   // As of DeltaArgs.
};

// One row of one head: decay = exp(log_decay * a); where there are keys, asked = k * decay and
// written = k * sigmoid(raw_rate).
struct ChannelDeltaStepArgs {
  const float *log_decay, *k;
  float *decay, *asked, *written;
  int32_t key_dim;
  float a, raw_rate;
};

inline constexpr int32_t kActivationCount = 9;
inline constexpr int32_t kKvTypeCount = 5;

struct OpsTable {
  void (*clear_upper_halves)();
  void (*rms_norm)(const RmsNormArgs&);
  void (*layer_norm)(const LayerNormArgs&);
  void (*add)(const AddArgs&);
  void (*scale)(const ScaleArgs&);
  void (*activate[kActivationCount])(const ActivateArgs&);  // By Activation.
  void (*gate[kActivationCount])(const GateArgs&);          // By Activation.
  void (*expert_sum)(const ExpertSumArgs&);
  reference::RouteFunctions route;
  void (*mix_streams)(const MixStreamsArgs&);
  void (*gaussian_topk)(const GaussianTopkArgs&);
  void (*rope_adjacent)(const RopeArgs&);
  void (*rope_halves)(const RopeArgs&);
  void (*store_keys[kKvTypeCount])(const StoreKvArgs&);    // By KvType.
  void (*store_values[kKvTypeCount])(const StoreKvArgs&);  // By KvType.
  int32_t queries_on_pages;
  void (*attend)(const AttendArgs&);
  void (*finish_attention)(const FinishAttentionArgs&);
  void (*short_conv)(const ConvArgs&);
  void (*channel_scan)(const ChannelScanArgs&);
  void (*scan_steps)(const ScanStepArgs&);
  void (*scan)(const ScanArgs&);
  void (*delta_steps)(const DeltaStepArgs&);
  void (*delta)(const DeltaArgs&);
  void (*channel_delta_steps)(const ChannelDeltaStepArgs&);
  void (*channel_delta)(const ChannelDeltaArgs&);
};

}  // namespace cairn::cpu

namespace cairn::avx2 {
extern const cpu::OpsTable ops_table;
}
namespace cairn::avx512 {
extern const cpu::OpsTable ops_table;
// For attention on machines with tiles.
extern const cpu::OpsTable attention_beside_tiles;
}
namespace cairn::neon {
extern const cpu::OpsTable ops_table;
}
