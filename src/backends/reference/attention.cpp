// Keys and values in pages: writing a row's, and softmax attention over a sequence's, in blocks of
// positions that are merged by the (maximum, sum, output) rule (Milakov and Gimelshein, 2018).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "backends/reference/kernels.h"
#include "backends/reference/row_kernel.h"
#include "base/elementary.h"
#include "base/half.h"
#include "base/small_blocks.h"

namespace cairn::reference {
namespace {

// A number that has a place of its own in a page.
float load(const std::byte* values, KvType type, size_t index) {
  switch (type) {
    case KvType::f32:
      return reinterpret_cast<const float*>(values)[index];
    case KvType::f16:
      return to_float(reinterpret_cast<const Half*>(values)[index]);
    case KvType::bf16:
      return to_float(reinterpret_cast<const BFloat16*>(values)[index]);
    case KvType::q8_0:
    case KvType::q4_0:
      break;
  }
  return 0;
}

void store(std::byte* values, KvType type, size_t index, float value) {
  switch (type) {
    case KvType::f32:
      reinterpret_cast<float*>(values)[index] = value;
      break;
    case KvType::f16:
      reinterpret_cast<Half*>(values)[index] = to_half(value);
      break;
    case KvType::bf16:
      reinterpret_cast<BFloat16*>(values)[index] = to_bfloat16(value);
      break;
    case KvType::q8_0:
    case KvType::q4_0:
      break;
  }
}

// One head's keys or values in a page: the number at `dim` of the token in `slot`.
struct HeadPart {
  std::byte* page;
  KvType type;
  int32_t dim_count;
  bool dims_first;  // Keys: [dim][slot]; values: [slot][dim].

  size_t index(int32_t slot, int32_t dim, int32_t row_width) const {
    return dims_first ? size_t(dim) * kPageTokens + size_t(slot)
                      : size_t(slot) * size_t(row_width) + size_t(dim);
  }
  uint8_t& code(int32_t slot, int32_t dim) const {
    const int32_t step = type == KvType::q4_0 ? 2 : 1;
    const size_t at = index(slot, dim / step, int32_t(host::kv_row_bytes(type, dim_count)));
    return reinterpret_cast<uint8_t*>(page)[at];
  }
  Half& scale(int32_t slot, int32_t dim) const {
    auto* scales = reinterpret_cast<Half*>(page + host::kv_codes_bytes(type, dim_count));
    return scales[index(slot, dim / host::kKvBlock, host::kv_block_count(dim_count))];
  }

  float read(int32_t slot, int32_t dim) const {
    if (!host::has_scales(type)) return load(page, type, index(slot, dim, dim_count));
    const uint8_t byte = code(slot, dim);
    const int32_t number =
        type == KvType::q8_0 ? Q8Block::code_of(byte, dim) : Q4Block::code_of(byte, dim);
    return float(number) * to_float(scale(slot, dim));
  }

  void write(int32_t slot, std::span<const float> x) const {
    if (type == KvType::q8_0) return write_blocks<Q8Block>(slot, x);
    if (type == KvType::q4_0) return write_blocks<Q4Block>(slot, x);
    for (size_t d = 0; d < x.size(); ++d) {
      store(page, type, index(slot, int32_t(d), dim_count), x[d]);
    }
  }

  template <class Block>
  void write_blocks(int32_t slot, std::span<const float> x) const {
    for (int32_t first = 0; first < dim_count; first += host::kKvBlock) {
      const int32_t count = std::min(host::kKvBlock, dim_count - first);
      uint8_t codes[host::kKvBlock] = {};
      Half& half = scale(slot, first);
      half = to_half(Block::scale(&x[size_t(first)], count));
      Block::encode(&x[size_t(first)], count, to_float(half), codes);
      for (int32_t i = 0; i < count; i += Block::kDimsPerByte) {
        code(slot, first + i) = Block::pack(codes + i);
      }
    }
  }
};

// One head's keys and values of one sequence: by position, wherever the page lies.
class HeadView {
 public:
  HeadView(const KvPlane& plane, const PageId* pages, int32_t kv_head)
      : plane_(plane), pages_(pages), kv_head_(size_t(kv_head)) {}

  HeadPart keys(int32_t position) const {
    return part(position, plane_.keys, plane_.keys_page_bytes, plane_.key_type, plane_.key_dim,
                true);
  }
  HeadPart values(int32_t position) const {
    if (plane_.values_in_keys) return keys(position);
    return part(position, plane_.values, plane_.values_page_bytes, plane_.value_type,
                plane_.value_dim, false);
  }
  float key(int32_t position, size_t element) const {
    return keys(position).read(position % kPageTokens, int32_t(element));
  }
  float value(int32_t position, size_t element) const {
    return values(position).read(position % kPageTokens, int32_t(element));
  }

 private:
  HeadPart part(int32_t position, std::byte* first_page, size_t page_bytes, KvType type,
                int32_t dim, bool dims_first) const {
    const auto page = size_t(index_of(pages_[position / kPageTokens]));
    return {first_page + page * page_bytes + kv_head_ * host::kv_head_bytes(type, dim), type, dim,
            dims_first};
  }

  const KvPlane& plane_;
  const PageId* pages_;
  size_t kv_head_;
};

const PageId* pages_of_row(const Step& step, const KvPlane& plane, int32_t row) {
  return step.slices[size_t(step.slice_of_row[size_t(row)])].pages[plane.group];
}

void store_kv(const op::StoreKv& op, const Step& step, int32_t row) {
  const KvPlane& plane = step.kv_planes[size_t(op.plane)];
  const int32_t position = step.positions[size_t(row)];
  const size_t key_dim = size_t(plane.key_dim), value_dim = size_t(plane.value_dim);
  for (int32_t head = 0; head < plane.kv_head_count; ++head) {
    const HeadView view(plane, pages_of_row(step, plane, row), head);
    const float* k = step.row(op.k, row) + size_t(head) * key_dim;
    view.keys(position).write(position % kPageTokens, {k, key_dim});
    if (plane.values_in_keys) continue;
    const float* v = step.row(op.v, row) + size_t(head) * value_dim;
    view.values(position).write(position % kPageTokens, {v, value_dim});
  }
}

// Softmax over some positions, not yet divided: the largest score, the sum of exp(score - max), and
// the values' sum weighted by the same.
struct Part {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
  std::span<float> out;
};

// A NaN score is passed over here and then makes the sum NaN.
float larger(float a, float b) {
  return a > b ? a : b;
}

// One head of one row.
struct Query {
  std::span<const float> q;
  int32_t position;
  float slope;  // 0: distance does not matter.
};

float score(const op::Attend& op, const Query& query, const HeadView& view, int32_t position) {
  float dot = 0;
  for (size_t d = 0; d < query.q.size(); ++d) {
    dot = std::fma(query.q[d], view.key(position, d), dot);
  }
  dot *= op.scale;
  if (op.softcap != 0) dot = op.softcap * elementary::tanh(dot / op.softcap);
  if (query.slope == 0) return dot;
  return std::fma(query.slope, float(-std::abs(position - query.position)), dot);
}

// The part of positions [begin, end), which lie in one block.
void attend_block(const op::Attend& op, const Query& query, const HeadView& view, int32_t begin,
                  int32_t end, Part& part) {
  float scores[kAttentionBlock];
  part.max = -std::numeric_limits<float>::infinity();
  for (int32_t position = begin; position < end; ++position) {
    scores[position - begin] = score(op, query, view, position);
    part.max = larger(scores[position - begin], part.max);
  }
  part.sum = 0;
  std::fill(part.out.begin(), part.out.end(), 0.0f);
  for (int32_t position = begin; position < end; ++position) {
    const float p = elementary::exp(scores[position - begin] - part.max);
    part.sum += p;
    for (size_t d = 0; d < part.out.size(); ++d) {
      part.out[d] = std::fma(p, view.value(position, d), part.out[d]);
    }
  }
}

// total becomes the part of both, `next` being that of the positions after total's.
void merge(Part& total, const Part& next) {
  const float max = larger(next.max, total.max);
  const float keep = elementary::exp(total.max - max);
  const float take = elementary::exp(next.max - max);
  total.sum = std::fma(next.sum, take, total.sum * keep);
  for (size_t d = 0; d < total.out.size(); ++d) {
    total.out[d] = std::fma(next.out[d], take, total.out[d] * keep);
  }
  total.max = max;
}

// A sink is one more logit, after all positions, whose value is zero.
void merge_sink(Part& total, float sink) {
  const float max = larger(sink, total.max);
  const float keep = elementary::exp(total.max - max);
  total.sum = total.sum * keep + elementary::exp(sink - max);
  for (float& value : total.out) value *= keep;
  total.max = max;
}

void attend_head(const op::Attend& op, const Step& step, int32_t row, int32_t head,
                 std::span<float> block_out) {
  const KvPlane& plane = step.kv_planes[size_t(op.plane)];
  const int32_t group_heads = op.head_count / plane.kv_head_count;
  const HeadView view(plane, pages_of_row(step, plane, row), head / group_heads);
  const size_t key_dim = size_t(plane.key_dim);
  const int32_t own = step.positions[size_t(row)];
  const Query query{.q = {step.row(op.q, row) + size_t(head) * key_dim, key_dim},
                    .position = own,
                    .slope = op.slopes.exists() ? op.slopes[head] : 0.0f};

  const Slice& slice = step.slices[size_t(step.slice_of_row[size_t(row)])];
  const int32_t end = op.end_visible(own, slice.first_position + slice.row_count);
  const int32_t begin = op.first_visible(own);
  Part total{.out = {step.row(op.out, row) + size_t(head) * block_out.size(), block_out.size()}};
  Part next{.out = block_out};
  const int32_t first_block_end = std::min(end, (begin / kAttentionBlock + 1) * kAttentionBlock);
  attend_block(op, query, view, begin, first_block_end, total);
  for (int32_t from = first_block_end; from < end; from += kAttentionBlock) {
    attend_block(op, query, view, from, std::min(end, from + kAttentionBlock), next);
    merge(total, next);
  }
  if (op.sinks.exists()) merge_sink(total, op.sinks[head]);
  for (float& value : total.out) value /= total.sum;
}

}  // namespace

host::HostKernel store_kv_kernel() {
  return row_kernel<op::StoreKv, store_kv>();
}

host::HostKernel attend_kernel() {
  return {.task_count = [](const Op& op, const Step& step) -> int64_t {
            const auto& attend = std::get<op::Attend>(op);
            return int64_t(step.row_count(RowSet::tokens)) * attend.head_count;
          },
          .run =
              [](const Op& op, const Step& step, int64_t task, std::byte* scratch) {
                const auto& attend = std::get<op::Attend>(op);
                const size_t value_dim = size_t(attend.out.width / attend.head_count);
                attend_head(attend, step, int32_t(task / attend.head_count),
                            int32_t(task % attend.head_count),
                            {reinterpret_cast<float*>(scratch), value_dim});
              },
          .scratch_bytes = [](const Op& op) -> size_t {
            const auto& attend = std::get<op::Attend>(op);
            return size_t(attend.out.width / attend.head_count) * sizeof(float);
          }};
}

}  // namespace cairn::reference
