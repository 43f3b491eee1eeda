// Lays out a step by hand: workspace, slices, pages, states, all of them in one block of memory
// that is a function of the seed. Two worlds of one seed are equal byte for byte, so that a kernel
// run in the one and a kernel run in the other can be compared by memcmp of everything they could
// write.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "backends/host/host.h"
#include "base/half.h"
#include "device/step.h"

namespace cairn::test {

struct SliceSpec {
  int32_t row_count = 1;
  int32_t first_position = 0;
  bool has_state = true;               // Else the states before are null: zeros.
  std::vector<int32_t> captures = {};  // Row counts; empty means after all rows only.
  int32_t pages_of_first = 0;          // Its first pages are the first slice's.
};

class World {
 public:
  World(uint32_t seed, const std::vector<SliceSpec>& specs, size_t memory_bytes = size_t(8) << 20)
      : random_(seed), memory_((memory_bytes + 63) / 64) {
    for (const SliceSpec& spec : specs) {
      for (int32_t i = 0; i < spec.row_count; ++i) {
        tokens_.push_back(Token(int32_t(random_() % 97)));
        positions_.push_back(spec.first_position + i);
        slice_of_row_.push_back(int32_t(specs_.size()));
        if (i % 3 == 2 || i + 1 == spec.row_count)
          output_rows_.push_back(int32_t(tokens_.size()) - 1);
      }
      specs_.push_back(spec);
    }
  }

  int32_t row_count() const { return int32_t(tokens_.size()); }
  std::vector<int32_t>& output_rows() { return output_rows_; }
  std::vector<int32_t>& positions() { return positions_; }
  std::mt19937& random() { return random_; }

  // Nearly normal, of variance 1: a sum of four even ones, since an emulator is slow at logarithms.
  float normal() {
    const uint32_t a = uint32_t(random_()), b = uint32_t(random_());
    const uint32_t sum = (a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16);
    return (float(sum) - 131070.0f) * (1.7320508f / 65536);
  }

  // A value of random numbers; rows stand apart by an odd number of floats.
  Rows rows(int32_t width, RowSet set = RowSet::tokens, float spread = 1.0f) {
    const int32_t stride = width + 1 + int32_t(random_() % 5);
    const size_t count = size_t(stride) * (size_t(row_count()) + 1);
    float* data = floats(count);
    for (size_t i = 0; i < count; ++i) data[i] = normal() * spread;
    return {.offset = data - reinterpret_cast<float*>(memory_.data()),
            .stride = stride,
            .width = width,
            .set = set};
  }

  // Numbers that ops point to: gains, biases, taps.
  Constant parameters(size_t count, float spread = 1.0f) {
    float* data = floats(count);
    for (size_t i = 0; i < count; ++i) data[i] = normal() * spread;
    return std::span<const float>(data, count);
  }
  // Negative ones, as the `a` of recurrences.
  Constant decays(size_t count) {
    float* data = floats(count);
    for (size_t i = 0; i < count; ++i) data[i] = -std::fabs(normal()) - 0.1f;
    return std::span<const float>(data, count);
  }

  // A plane whose pages hold random keys and values at all positions that a slice knows, and NaN
  // everywhere else: whoever reads what is not there shows it.
  int32_t plane(int32_t kv_head_count, int32_t key_dim, int32_t value_dim, KvType key_type,
                KvType value_type, float spread = 1.0f) {
    make_page_tables();
    const size_t keys_bytes = size_t(kv_head_count) * host::kv_head_bytes(key_type, key_dim);
    const size_t values_bytes = size_t(kv_head_count) * host::kv_head_bytes(value_type, value_dim);
    KvPlane plane{.keys = take(keys_bytes * size_t(page_count_)),
                  .values = take(values_bytes * size_t(page_count_)),
                  .keys_page_bytes = keys_bytes,
                  .values_page_bytes = values_bytes,
                  .key_bytes = host::kv_head_bytes(key_type, key_dim),
                  .value_bytes = host::kv_head_bytes(value_type, value_dim),
                  .group = 0,
                  .kv_head_count = kv_head_count,
                  .key_dim = key_dim,
                  .value_dim = value_dim,
                  .key_type = key_type,
                  .value_type = value_type};
    std::memset(plane.keys, 0xff, keys_bytes * size_t(page_count_));
    std::memset(plane.values, 0xff, values_bytes * size_t(page_count_));
    for (size_t slice = 0; slice < specs_.size(); ++slice) fill(plane, slice, spread);
    planes_.push_back(plane);
    return int32_t(planes_.size()) - 1;
  }

  // A plane whose values are the beginnings of its keys.
  int32_t latent_plane(int32_t kv_head_count, int32_t key_dim, int32_t value_dim, KvType type) {
    const int32_t index = plane(kv_head_count, key_dim, key_dim, type, type);
    KvPlane& plane = planes_.back();
    std::memset(plane.values, 0xff, plane.values_page_bytes * size_t(page_count_));
    plane.values = plane.keys;
    plane.values_page_bytes = plane.keys_page_bytes;
    plane.value_dim = value_dim;
    plane.value_bytes = 0;
    plane.values_in_keys = true;
    return index;
  }

  int32_t state(size_t float_count) {
    const size_t bytes = (float_count * sizeof(float) + 63) / 64 * 64;
    tensors_.push_back({.group = 0, .offset = state_bytes_, .bytes = bytes});
    state_bytes_ += bytes;
    return int32_t(tensors_.size()) - 1;
  }

  // REQUIRES: everything has been added. The step points into this world.
  Step step() {
    if (slices_.empty()) make_slices();
    return {.tokens = tokens_,
            .positions = positions_,
            .slice_of_row = slice_of_row_,
            .slices = slices_,
            .output_rows = output_rows_,
            .kv_planes = planes_,
            .state_tensors = tensors_,
            .workspace = reinterpret_cast<std::byte*>(memory_.data())};
  }

  std::span<const std::byte> memory() const {
    return {reinterpret_cast<const std::byte*>(memory_.data()), used_};
  }
  std::byte* state_before(size_t slice) { return states_before_[slice]; }
  std::byte* captured(size_t slice, size_t capture) { return captured_[slice][capture]; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  std::byte* take(size_t bytes) {
    std::byte* data = reinterpret_cast<std::byte*>(memory_.data()) + used_;
    used_ += (bytes + 63) / 64 * 64;
    CHECK(used_ <= memory_.size() * sizeof(Line));
    return data;
  }
  float* floats(size_t count) { return reinterpret_cast<float*>(take(count * sizeof(float))); }

  // Pages are dealt out in no order, as a pool in use would.
  void make_page_tables() {
    if (!page_tables_.empty()) return;
    std::vector<PageId> free;
    int32_t needed = 0;
    for (const SliceSpec& spec : specs_) needed += page_need(spec);
    for (int32_t page = 0; page < needed + 3; ++page) free.push_back(PageId(page));
    std::shuffle(free.begin(), free.end(), random_);
    page_count_ = needed + 3;
    for (const SliceSpec& spec : specs_) {
      page_tables_.emplace_back(free.end() - page_need(spec), free.end());
      free.resize(free.size() - size_t(page_need(spec)));
      std::copy_n(page_tables_.front().begin(), spec.pages_of_first, page_tables_.back().begin());
    }
    for (const std::vector<PageId>& table : page_tables_)
      page_table_of_group_.push_back(table.data());
  }
  static int32_t page_need(const SliceSpec& spec) {
    return (spec.first_position + spec.row_count + kPageTokens - 1) / kPageTokens;
  }

  void fill(const KvPlane& plane, size_t slice, float spread) {
    const SliceSpec& spec = specs_[slice];
    for (int32_t position = 0; position < spec.first_position + spec.row_count; ++position) {
      const auto page = size_t(index_of(page_tables_[slice][size_t(position / kPageTokens)]));
      const auto slot = size_t(position % kPageTokens);
      for (size_t head = 0; head < size_t(plane.kv_head_count); ++head) {
        put({.page = plane.keys + page * plane.keys_page_bytes +
                     head * host::kv_head_bytes(plane.key_type, plane.key_dim),
             .type = plane.key_type,
             .dim_count = plane.key_dim,
             .dim_stride = kPageTokens,
             .token = slot,
             .block_stride = kPageTokens,
             .block_token = slot},
            spread);
        const size_t row = host::kv_row_bytes(plane.value_type, plane.value_dim);
        const auto width = host::has_scales(plane.value_type) ? row : size_t(plane.value_dim);
        put({.page = plane.values + page * plane.values_page_bytes +
                     head * host::kv_head_bytes(plane.value_type, plane.value_dim),
             .type = plane.value_type,
             .dim_count = plane.value_dim,
             .dim_stride = 1,
             .token = slot * width,
             .block_stride = 1,
             .block_token = slot * size_t(host::kv_block_count(plane.value_dim))},
            spread);
      }
    }
  }

  // One token's numbers of one head: where its dims (or the bytes that hold two) and its scales
  // lie.
  struct TokenPart {
    std::byte* page;
    KvType type;
    int32_t dim_count;
    size_t dim_stride, token, block_stride, block_token;
  };
  void put(const TokenPart& at, float spread) {
    if (host::has_scales(at.type)) {
      auto* scales = reinterpret_cast<Half*>(at.page + host::kv_codes_bytes(at.type, at.dim_count));
      for (int32_t block = 0; block < host::kv_block_count(at.dim_count); ++block) {
        const float levels = at.type == KvType::q8_0 ? 60.0f : 4.0f;
        scales[size_t(block) * at.block_stride + at.block_token] =
            to_half(std::abs(normal()) * spread / levels);
      }
      for (size_t d = 0; d < host::kv_row_bytes(at.type, at.dim_count); ++d) {
        at.page[d * at.dim_stride + at.token] = std::byte(random_() % 256);
      }
      return;
    }
    for (size_t d = 0; d < size_t(at.dim_count); ++d) {
      put(at.page, at.type, d * at.dim_stride + at.token, spread);
    }
  }
  void put(std::byte* page, KvType type, size_t index, float spread) {
    const float value = normal() * spread;
    if (type == KvType::f32) reinterpret_cast<float*>(page)[index] = value;
    if (type == KvType::f16) reinterpret_cast<Half*>(page)[index] = to_half(value);
    if (type == KvType::bf16) reinterpret_cast<BFloat16*>(page)[index] = to_bfloat16(value);
  }

  std::byte* state_block() {
    std::byte* block = take(state_bytes_);
    for (size_t i = 0; i < state_bytes_ / sizeof(float); ++i) {
      reinterpret_cast<float*>(block)[i] = normal();
    }
    return block;
  }

  void make_slices() {
    int32_t first_row = 0;
    for (size_t index = 0; index < specs_.size(); ++index) {
      const SliceSpec& spec = specs_[index];
      std::vector<int32_t> counts = spec.captures;
      if (counts.empty()) counts.push_back(spec.row_count);
      states_before_.push_back(spec.has_state ? state_block() : nullptr);
      std::vector<Capture>& captures = captures_.emplace_back();
      std::vector<std::byte*>& blocks = captured_.emplace_back();
      for (size_t i = 0; i < counts.size(); ++i) blocks.push_back(state_block());
      for (size_t i = 0; i < counts.size(); ++i) {
        captures.push_back({.row_count = counts[i], .states = &blocks[i]});
      }
    }
    for (size_t index = 0; index < specs_.size(); ++index) {
      states_of_group_.push_back(states_before_[index]);
    }
    for (size_t index = 0; index < specs_.size(); ++index) {
      const bool paged = !page_tables_.empty();
      slices_.push_back({.first_row = first_row,
                         .row_count = specs_[index].row_count,
                         .first_position = specs_[index].first_position,
                         .pages = paged ? &page_table_of_group_[index] : nullptr,
                         .states = &states_of_group_[index],
                         .captures = captures_[index]});
      first_row += specs_[index].row_count;
    }
  }

  std::mt19937 random_;
  std::vector<Line> memory_;
  size_t used_ = 0;
  std::vector<SliceSpec> specs_;
  std::vector<Token> tokens_;
  std::vector<int32_t> positions_, slice_of_row_, output_rows_;
  std::vector<KvPlane> planes_;
  int32_t page_count_ = 0;
  std::vector<std::vector<PageId>> page_tables_;
  std::vector<const PageId*> page_table_of_group_;
  std::vector<StateTensor> tensors_;
  size_t state_bytes_ = 0;
  std::vector<std::byte*> states_before_;
  std::deque<std::vector<std::byte*>> captured_;
  std::deque<std::vector<Capture>> captures_;
  std::vector<const std::byte*> states_of_group_;
  std::vector<Slice> slices_;
};

// One row of a step of one slice as a step of its own. Ops that run on it must have their rows
// moved by moved_to().
class OneRow {
 public:
  // `before` and `after` are the states of the step's only group; both may be null where the op has
  // none. The step points into this object.
  OneRow(const Step& all, int32_t row, const std::byte* before = nullptr,
         std::byte* after = nullptr)
      : token_(all.tokens[size_t(row)]),
        position_(all.positions[size_t(row)]),
        before_(before),
        after_(after),
        capture_{.row_count = 1, .states = &after_},
        slice_{.first_row = 0,
               .row_count = 1,
               .first_position = position_,
               .pages = all.slices[0].pages,
               .states = &before_,
               .captures = {&capture_, 1}},
        step_(all) {
    step_.tokens = {&token_, 1};
    step_.positions = {&position_, 1};
    step_.slice_of_row = {&slice_of_row_, 1};
    step_.slices = {&slice_, 1};
  }
  OneRow(const OneRow&) = delete;
  OneRow& operator=(const OneRow&) = delete;

  const Step& step() const { return step_; }

 private:
  Token token_;
  int32_t position_;
  int32_t slice_of_row_ = 0;
  const std::byte* before_;
  std::byte* after_;
  Capture capture_;
  Slice slice_;
  Step step_;
};

inline Rows moved_to(Rows rows, int32_t row) {
  rows.offset += int64_t(row) * rows.stride;
  return rows;
}

// A kernel's scratch and what its tasks share: full of NaN.
class KernelRoom {
 public:
  KernelRoom(const host::HostKernel& kernel, const Op& op)
      : scratch_(lines(kernel.joint != nullptr ? kernel.joint->scratch_bytes : kernel.scratch_bytes,
                       op)),
        notes_(lines(kernel.joint != nullptr ? kernel.joint->notes_bytes : nullptr, op)),
        shared_(lines(kernel.joint != nullptr ? kernel.joint->shared_bytes : nullptr, op)) {
    spoil(shared_);
  }
  host::SharedRoom room() { return {data(scratch_), data(notes_), data(shared_)}; }
  void spoil_scratch() { spoil(scratch_); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static size_t lines(size_t (*bytes)(const Op&), const Op& op) {
    return bytes == nullptr ? 0 : (bytes(op) + 63) / 64;
  }
  static std::byte* data(std::vector<Line>& lines) {
    return reinterpret_cast<std::byte*>(lines.data());
  }
  static void spoil(std::vector<Line>& lines) {
    if (!lines.empty()) std::memset(lines.data(), 0xff, lines.size() * sizeof(Line));
  }

  std::vector<Line> scratch_, notes_, shared_;
};

// Runs all tasks of an op, in an order that no kernel may rely on, with scratch full of NaN.
inline void run_op(const host::HostKernel& kernel, const Op& op, const Step& step) {
  CHECK(kernel.exists());
  KernelRoom memory(kernel, op);
  const host::SharedRoom room = memory.room();
  const int64_t task_count = kernel.joint != nullptr ? kernel.joint->cut(op, step, room.notes)
                                                     : kernel.task_count(op, step);
  for (int64_t i = 0; i < task_count; ++i) {
    memory.spoil_scratch();
    const int64_t task = i % 2 == 0 ? i / 2 : task_count - 1 - i / 2;
    if (kernel.joint != nullptr) {
      kernel.joint->run(op, step, task, room);
    } else {
      kernel.run(op, step, task, room.scratch);
    }
  }
}

}  // namespace cairn::test
