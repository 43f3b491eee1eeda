// Unpacks ops and steps into plain arguments for the vector kernels, and cuts ops into tasks: one
// task for a row alone, some rows a task for many, so that a task is neither lost in the cost of
// claiming it nor so large that a thread waits for another.
#include "backends/cpu/ops.h"

#include <algorithm>
#include <variant>

#include "backends/cpu/attention/ops_attend.h"
#include "backends/cpu/ops_kernels.h"
#include "backends/cpu/ops_route.h"
#include "backends/cpu/recurrent/ops_channel_delta.h"
#include "backends/cpu/recurrent/ops_delta.h"
#include "backends/cpu/recurrent/ops_states.h"
#include "backends/cpu/slice_blocks.h"
#include "backends/reference/position_scale.h"

namespace cairn::cpu {
namespace {

static_assert(kAttentionBlock == kBlockPositions && kPageTokens == kPageSlots);
static_assert(int32_t(Activation::none) + 1 == kActivationCount);
static_assert(int32_t(KvType::q4_0) + 1 == kKvTypeCount);

// Elements of a row op's task: a few microseconds of arithmetic.
constexpr int32_t kTaskElements = 16384;

int32_t rows_per_task(int32_t width) {
  return std::max(1, kTaskElements / std::max(1, width));
}

// Some columns of a row.
struct Columns {
  int32_t first, count;
};

// A row op's kernel from a function that computes some columns of one row. `Shape` says which
// value's width and rows it walks.
template <class T, Rows T::*Shape, void (*Compute)(const T&, const Step&, int32_t, Columns)>
host::HostKernel columns_kernel() {
  return {.task_count = [](const Op& any, const Step& step) -> int64_t {
            const Rows& shape = std::get<T>(any).*Shape;
            const int32_t rows = rows_per_task(shape.width);
            return (step.row_count(shape.set) + rows - 1) / rows;
          },
          .run =
              [](const Op& any, const Step& step, int64_t task, std::byte*) {
                const T& op = std::get<T>(any);
                const Rows& shape = op.*Shape;
                const int32_t rows = rows_per_task(shape.width);
                const int32_t first = int32_t(task) * rows;
                const int32_t end = std::min(step.row_count(shape.set), first + rows);
                for (int32_t row = first; row < end; ++row) {
                  Compute(op, step, row, {0, shape.width});
                }
              },
          .scratch_bytes = nullptr,
          .run_piece =
              [](const Op& any, const Step& step, const host::Piece& piece, std::byte*) {
                for (int32_t row = piece.first_row; row < piece.end_row; ++row) {
                  Compute(std::get<T>(any), step, row, {piece.first_column, piece.column_count()});
                }
              }};
}

// The same from a function that computes whole rows.
template <class T, void (*ComputeRow)(const T&, const Step&, int32_t)>
void all_columns(const T& op, const Step& step, int32_t row, Columns) {
  ComputeRow(op, step, row);
}

template <class T, Rows T::*Shape, void (*ComputeRow)(const T&, const Step&, int32_t)>
host::HostKernel row_kernel() {
  return columns_kernel<T, Shape, all_columns<T, ComputeRow>>();
}

// Where a gain of `group` or of `width` numbers stands for the columns from `first` on.
const float* gain_at(const Constant& gain, bool per_element, int32_t first) {
  return gain.from(per_element ? first : 0);
}

template <const OpsTable& Table>
void rms_norm(const op::RmsNorm& op, const Step& step, int32_t row, Columns columns) {
  Table.rms_norm({.x = step.row(op.x, row) + columns.first,
                  .gain = gain_at(op.gain, op.gain_per_element, columns.first),
                  .out = step.row(op.out, row) + columns.first,
                  .group = op.group,
                  .group_count = columns.count / op.group,
                  .gain_step = op.gain_per_element ? op.group : 0,
                  .epsilon = op.epsilon});
}

template <const OpsTable& Table>
void layer_norm(const op::LayerNorm& op, const Step& step, int32_t row, Columns columns) {
  Table.layer_norm({.x = step.row(op.x, row) + columns.first,
                    .gain = gain_at(op.gain, op.gain_per_element, columns.first),
                    .bias = gain_at(op.bias, op.gain_per_element, columns.first),
                    .out = step.row(op.out, row) + columns.first,
                    .group = op.group,
                    .group_count = columns.count / op.group,
                    .gain_step = op.gain_per_element ? op.group : 0,
                    .epsilon = op.epsilon});
}

template <const OpsTable& Table>
void add(const op::Add& op, const Step& step, int32_t row, Columns columns) {
  Table.add({.a = step.row(op.a, row) + columns.first,
             .b = step.row(op.b, row) + columns.first,
             .out = step.row(op.out, row) + columns.first,
             .count = columns.count,
             .scale = op.scale});
}

template <const OpsTable& Table>
void scale(const op::Scale& op, const Step& step, int32_t row, Columns columns) {
  Table.scale({.x = step.row(op.x, row) + columns.first,
               .of_columns = op.of_columns.from(columns.first),
               .out = step.row(op.out, row) + columns.first,
               .count = columns.count,
               .factor = op.factor});
}

template <const OpsTable& Table>
void activate(const op::Activate& op, const Step& step, int32_t row, Columns columns) {
  Table.activate[size_t(op.activation)]({.x = step.row(op.x, row) + columns.first,
                                         .out = step.row(op.out, row) + columns.first,
                                         .count = columns.count});
}

// Gates in runs are computed by whole rows only.
template <const OpsTable& Table>
void gate(const op::Gate& op, const Step& step, int32_t row, Columns columns) {
  const int32_t run = op.run == 0 ? columns.count : op.run;
  for (int32_t first = columns.first; first < columns.first + columns.count; first += run) {
    const int32_t from = op.run == 0 ? first : 2 * first;
    Table.gate[size_t(op.activation)]({.gate = step.row(op.gate, row) + from,
                                       .x = step.row(op.x, row) + from,
                                       .out = step.row(op.out, row) + first,
                                       .count = run});
  }
}

template <const OpsTable& Table>
void expert_scale(const op::ExpertScale& op, const Step& step, int32_t row) {
  for (int32_t rank = 0; rank < op.weights.width; ++rank) {
    Table.scale({.x = step.row(op.x, row),
                 .out = step.row(op.out, row) + int64_t(rank) * op.x.width,
                 .count = op.x.width,
                 .factor = step.row(op.weights, row)[rank]});
  }
}

template <const OpsTable& Table>
void expert_sum(const op::ExpertSum& op, const Step& step, int32_t row) {
  Table.expert_sum({.x = step.row(op.x, row),
                    .weights = step.row(op.weights, row),
                    .out = step.row(op.out, row),
                    .rank_count = op.weights.width,
                    .width = op.out.width});
}

template <const OpsTable& Table>
void mix_streams(const op::MixStreams& op, const Step& step, int32_t row) {
  Table.mix_streams(
      {.a = step.row(op.a, row),
       .b = step.row(op.b, row),
       .coefficients = op.coefficients.exists() ? step.row(op.coefficients, row) : nullptr,
       .out = step.row(op.out, row),
       .width = op.width,
       .out_count = op.out.width / op.width,
       .in_count = op.b.width / op.width,
       .offset = op.offset});
}

template <const OpsTable& Table>
void gaussian_topk(const op::GaussianTopk& op, const Step& step, int32_t row) {
  Table.gaussian_topk({.x = step.row(op.x, row),
                       .out = step.row(op.out, row),
                       .count = op.out.width,
                       .deviations = op.deviations});
}

template <const OpsTable& Table>
void rope(const op::Rope& op, const Step& step, int32_t row, Columns columns) {
  const auto kernel = op.style == RopeStyle::halves ? Table.rope_halves : Table.rope_adjacent;
  kernel({.x = step.row(op.x, row) + columns.first,
          .table = step.row(op.table, row),
          .head_count = columns.count / op.head_dim,
          .head_dim = op.head_dim,
          .pair_count = op.pair_count});
}

template <const OpsTable& Table>
void scale_by_position(const op::ScaleByPosition& op, const Step& step, int32_t row,
                       Columns columns) {
  float* x = step.row(op.x, row) + columns.first;
  const float factor = reference::position_scale(op, step.positions[size_t(row)]);
  Table.scale({.x = x, .of_columns = nullptr, .out = x, .count = columns.count, .factor = factor});
}

// Columns are those of the keys; where they are not all, the values have as many.
template <const OpsTable& Table>
void store_kv(const op::StoreKv& op, const Step& step, int32_t row, Columns columns) {
  const KvPlane& plane = step.kv_planes[size_t(op.plane)];
  const Slice& slice = step.slices[size_t(step.slice_of_row[size_t(row)])];
  const int32_t end = (columns.first + columns.count) / plane.key_dim;
  for (int32_t head = columns.first / plane.key_dim; head < end; ++head) {
    StoreKvArgs args{.head = kv_head_args(plane, slice, head),
                     .k = step.row(op.k, row) + int64_t(head) * plane.key_dim,
                     .v = nullptr,
                     .position = step.positions[size_t(row)]};
    Table.store_keys[size_t(plane.key_type)](args);
    if (plane.values_in_keys) continue;
    args.v = step.row(op.v, row) + int64_t(head) * plane.value_dim;
    Table.store_values[size_t(plane.value_type)](args);
  }
}

// An op without a choice here has no vector kernel: a copy, the angles that are computed once a
// step for all layers, or a row too short to matter.
template <const OpsTable& Table>
struct Choice {
  template <class T>
  host::HostKernel operator()(const T&) const {
    return {};
  }
  host::HostKernel operator()(const op::RmsNorm&) const {
    return columns_kernel<op::RmsNorm, &op::RmsNorm::out, rms_norm<Table>>();
  }
  host::HostKernel operator()(const op::LayerNorm&) const {
    return columns_kernel<op::LayerNorm, &op::LayerNorm::out, layer_norm<Table>>();
  }
  host::HostKernel operator()(const op::Add&) const {
    return columns_kernel<op::Add, &op::Add::out, add<Table>>();
  }
  host::HostKernel operator()(const op::Scale&) const {
    return columns_kernel<op::Scale, &op::Scale::out, scale<Table>>();
  }
  host::HostKernel operator()(const op::Activate&) const {
    return columns_kernel<op::Activate, &op::Activate::out, activate<Table>>();
  }
  host::HostKernel operator()(const op::Gate&) const {
    return columns_kernel<op::Gate, &op::Gate::out, gate<Table>>();
  }
  host::HostKernel operator()(const op::Route&) const { return route_kernel<Table>(); }
  host::HostKernel operator()(const op::ExpertScale&) const {
    return row_kernel<op::ExpertScale, &op::ExpertScale::out, expert_scale<Table>>();
  }
  host::HostKernel operator()(const op::ExpertSum&) const {
    return row_kernel<op::ExpertSum, &op::ExpertSum::x, expert_sum<Table>>();
  }
  host::HostKernel operator()(const op::MixStreams&) const {
    return row_kernel<op::MixStreams, &op::MixStreams::out, mix_streams<Table>>();
  }
  host::HostKernel operator()(const op::GaussianTopk&) const {
    return row_kernel<op::GaussianTopk, &op::GaussianTopk::out, gaussian_topk<Table>>();
  }
  host::HostKernel operator()(const op::Rope&) const {
    return columns_kernel<op::Rope, &op::Rope::x, rope<Table>>();
  }
  host::HostKernel operator()(const op::ScaleByPosition&) const {
    return columns_kernel<op::ScaleByPosition, &op::ScaleByPosition::x, scale_by_position<Table>>();
  }
  host::HostKernel operator()(const op::StoreKv&) const {
    return columns_kernel<op::StoreKv, &op::StoreKv::k, store_kv<Table>>();
  }
  host::HostKernel operator()(const op::Attend&) const { return {.joint = &kAttendKernel<Table>}; }
  host::HostKernel operator()(const op::ShortConv&) const { return short_conv_kernel<Table>(); }
  host::HostKernel operator()(const op::MambaScan&) const { return mamba_kernel<Table>(); }
  host::HostKernel operator()(const op::Mamba2Scan&) const { return mamba2_kernel<Table>(); }
  host::HostKernel operator()(const op::GatedDeltaScan&) const {
    return delta_tasks<GatedDeltaRule<Table>>();
  }
  host::HostKernel operator()(const op::ChannelDeltaScan&) const {
    return delta_tasks<ChannelDeltaRule<Table>>();
  }
};

}  // namespace

host::HostKernel choose_ops_kernel(const Op& op, IsaLevel isa) {
  switch (isa) {
#if defined(__x86_64__)
    case IsaLevel::avx2:
    case IsaLevel::avx2_vnni:
      return std::visit(Choice<avx2::ops_table>{}, op);
    case IsaLevel::amx:
      if (std::holds_alternative<op::Attend>(op)) {
        return {.joint = &kAttendKernel<avx512::attention_beside_tiles>};
      }
      [[fallthrough]];
    case IsaLevel::avx512_vnni:
      return std::visit(Choice<avx512::ops_table>{}, op);
#elif defined(__aarch64__)
    case IsaLevel::neon_dot:
      return std::visit(Choice<neon::ops_table>{}, op);
#endif
    default:  // Scalar, and levels of other machines.
      return {};
  }
}

host::AfterKernel after_kernels([[maybe_unused]] IsaLevel isa) {
#if defined(__x86_64__)
  if (isa == IsaLevel::avx2 || isa == IsaLevel::avx2_vnni)
    return avx2::ops_table.clear_upper_halves;
  if (isa != IsaLevel::scalar) return avx512::ops_table.clear_upper_halves;
#endif
  return nullptr;
}

}  // namespace cairn::cpu
