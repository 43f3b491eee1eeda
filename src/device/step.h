// What changes from step to step: the tokens, where their sequences keep keys, values and states,
// and the workspace. Plain arrays, so that backends need not know the memory module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/function_ref.h"
#include "base/ids.h"
#include "device/op.h"
#include "device/page_format.h"

namespace cairn {

inline constexpr int32_t kAttentionBlock = 256;  // Positions of a block of keys (docs/numerics.md).
inline constexpr int32_t kLogPageTokens = 8;     // Consecutive tokens of a page of the log.
inline constexpr int32_t kReplayRowsMax = 64;    // Of the log that a plan replays at a time.
// In a page table: these positions are not kept.
inline constexpr PageId kNoPage = PageId(-1);

// One layer's keys and values in all pages of its group: in each page the heads' keys one after
// another, and their values; how a head lies is the backend's (device/page_format.h). Where a
// token's value is the beginning of its key (latent attention), it is not stored again: values,
// values_page_bytes and value_type are then those of the keys.
struct KvPlane {
  std::byte* keys = nullptr;  // Page 0.
  std::byte* values = nullptr;
  size_t keys_page_bytes = 0;  // From one page to the next.
  size_t values_page_bytes = 0;
  size_t key_bytes = 0;    // Of one head in a page.
  size_t value_bytes = 0;  // Likewise; 0 where values are in keys.
  int32_t group = 0;       // The group whose page table to use.
  int32_t kv_head_count = 0, key_dim = 0, value_dim = 0;
  KvType key_type = KvType::f16, value_type = KvType::f16;
  bool values_in_keys = false;
};

// A state after some of a slice's rows: where the recurrence stores it.
struct Capture {
  int32_t row_count;         // After this many rows of the slice, 1..slice.row_count.
  std::byte* const* states;  // [group] → that group's state block.
};

// Where one recurrent tensor lies in its group's state block.
struct StateTensor {
  int32_t group = 0;
  size_t offset = 0;  // Bytes from the block's start, a multiple of 64.
  size_t bytes = 0;
};

// Where the log stores one input of the recurrence: a page has [kLogPageTokens][width] f32.
struct LogPlane {
  std::byte* first = nullptr;  // Its rows in page 0.
  size_t page_bytes = 0;       // From one page to the next.
  int32_t group = 0;           // Whose page tables to use.
  int32_t width = 0;

  float* row(PageId page, int32_t position) const {
    return reinterpret_cast<float*>(first + size_t(index_of(page)) * page_bytes) +
           size_t(position % kLogPageTokens) * size_t(width);
  }
};

// The rows of one sequence in a step: [first_row, first_row + row_count), at positions that follow
// each other from first_position.
struct Slice {
  int32_t first_row = 0;
  int32_t row_count = 0;
  int32_t first_position = 0;
  const PageId* const* pages = nullptr;      // [group][position / page tokens of the group]
  const std::byte* const* states = nullptr;  // [group]: before the slice; null entry means zeros.
  std::span<const Capture> captures;         // Ascending; the last one is after all rows.
  bool is_answer = false;                    // Rows of an answer; else those of a prompt.
};

struct Step {
  std::span<const Token> tokens;          // [row]
  std::span<const int32_t> positions;     // [row]
  std::span<const float> given;           // [row][width of op::Given]; none: no op reads them.
  std::span<const int32_t> slice_of_row;  // [row]
  std::span<const Slice> slices;
  std::span<const int32_t> output_rows;        // Rows whose logits are wanted, ascending.
  std::span<const KvPlane> kv_planes;          // By op::StoreKv::plane.
  std::span<const StateTensor> state_tensors;  // By op::ShortConv::state and others.
  std::span<const LogPlane> log_planes;  // By op::StoreLog::log_plane; none: nothing is logged.
  std::byte* workspace = nullptr;        // 64-byte aligned.
  int32_t thread_count = 1;              // That compute it: a backend with threads sets it.
  // Asked often while it is computed, by the thread that calls: true ends it early.
  std::optional<FunctionRef<bool()>> is_given_up = std::nullopt;

  int32_t row_count(RowSet set) const {
    return int32_t(set == RowSet::tokens ? tokens.size() : output_rows.size());
  }
  float* row(const Rows& rows, int32_t index) const {
    return reinterpret_cast<float*>(workspace) + rows.offset + int64_t(index) * rows.stride;
  }
  std::byte* row(const QuantizedRows& rows, int32_t index) const {
    return workspace + rows.offset + int64_t(index) * rows.stride;
  }
};

}  // namespace cairn
