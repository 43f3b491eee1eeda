// The tasks of recurrent ops: which rows and states a task updates, and where it stores the
// captures. A state before a slice is only read; the running state is kept in the next capture's
// memory, so nothing is copied.
#pragma once

#include <algorithm>
#include <cstring>
#include <variant>

#include "backends/cpu/ops_kernels.h"
#include "backends/cpu/recurrent/state_streams.h"
#include "backends/cpu/slice_blocks.h"
#include "backends/host/host.h"
#include "backends/reference/recurrence.h"

namespace cairn::cpu {

// Rows of a convolution's task: enough to use a channel's weights several times.
inline constexpr int32_t kConvRows = 16;
// Channels of a task, about: of many rows so few that a row's inputs are still in the first cache
// when the next three rows need them; of one row enough to be worth a task.
inline constexpr int32_t kConvChannels = 512, kConvChannelsAlone = 1024;
// Rows of a head whose step sizes are computed at once.
inline constexpr int32_t kScanRows = 32;

// How the channels of a convolution are divided: pieces of about the same size, whole vectors
// each but the last. A row alone is cut for pairs of threads.
struct ConvPieces {
  int32_t count, channels;

  ConvPieces(const op::ShortConv& op, const Step& step) {
    const bool is_alone = step.tokens.size() == 1;
    const int32_t width = op.x.width;
    const int32_t most = is_alone ? kConvChannelsAlone : kConvChannels;
    count = (width + most - 1) / most;
    if (is_alone) count = (count + 1) / 2 * 2;
    channels = ((width + count - 1) / count + 15) / 16 * 16;
    count = (width + channels - 1) / channels;
  }
};

// The last kernel - 1 inputs before row `row_count` of a slice, oldest first.
inline void capture_tail(const ConvArgs& args, int32_t row_count, float* tail) {
  const size_t bytes = size_t(args.channels) * sizeof(float);
  for (int32_t entry = 0; entry < args.kernel - 1; ++entry, tail += args.tail_stride) {
    const int32_t row = row_count - (args.kernel - 1) + entry;
    if (row >= 0) {
      std::memcpy(tail, args.x + int64_t(row) * args.x_stride, bytes);
    } else if (args.tail != nullptr) {
      std::memcpy(tail, args.tail + int64_t(args.kernel - 1 + row) * args.tail_stride, bytes);
    } else {
      std::memset(tail, 0, bytes);
    }
  }
}

// The channels [first, first + channels) of some rows of a slice.
template <const OpsTable& Table>
void conv_block(const op::ShortConv& op, const Step& step, const SliceBlock& block, int32_t first,
                int32_t channels, std::byte* scratch) {
  const Slice& slice = *block.slice;
  const StateTensor& tensor = step.state_tensors[size_t(op.state)];
  const float* tail = reference::state_before(slice, tensor);
  const ConvArgs args{.x = step.row(op.x, slice.first_row) + first,
                      .tail = tail == nullptr ? nullptr : tail + first,
                      .weight = op.weight.from(int64_t(first) * op.kernel),
                      .bias = op.bias.from(first),
                      .out = step.row(op.out, slice.first_row) + first,
                      .x_stride = op.x.stride,
                      .tail_stride = op.x.width,
                      .out_stride = op.out.stride,
                      .first_row = block.first_row - slice.first_row,
                      .row_count = block.row_count,
                      .channels = channels,
                      .kernel = op.kernel,
                      .silu = op.silu,
                      .turned = reinterpret_cast<float*>(scratch)};
  Table.short_conv(args);
  for (const Capture& capture : slice.captures) {
    const int32_t last_row = capture.row_count - 1;
    if (last_row < args.first_row || last_row >= args.first_row + args.row_count) continue;
    capture_tail(args, capture.row_count, reference::captured_state(capture, tensor) + first);
  }
}

template <const OpsTable& Table>
void short_conv(const Op& any, const Step& step, int64_t task, std::byte* scratch) {
  const auto& op = std::get<op::ShortConv>(any);
  const ConvPieces pieces(op, step);
  const int32_t first = int32_t(task % pieces.count) * pieces.channels;
  const SliceBlock block = find_block(step, kConvRows, int32_t(task / pieces.count));
  conv_block<Table>(op, step, block, first, std::min(pieces.channels, op.x.width - first), scratch);
}

template <const OpsTable& Table>
void short_conv_piece(const Op& any, const Step& step, const host::Piece& piece,
                      std::byte* scratch) {
  const auto& op = std::get<op::ShortConv>(any);
  for (const Slice& slice : step.slices) {
    const SliceBlock all{&slice, slice.first_row, slice.row_count};
    for (int32_t first = piece.first_column; first < piece.end_column; first += kConvChannels) {
      conv_block<Table>(op, step, all, first, std::min(kConvChannels, piece.end_column - first),
                        scratch);
    }
  }
}

template <const OpsTable& Table>
host::HostKernel short_conv_kernel() {
  return {.task_count = [](const Op& any, const Step& step) -> int64_t {
            const ConvPieces pieces(std::get<op::ShortConv>(any), step);
            return int64_t(block_count(step, kConvRows)) * pieces.count;
          },
          .run = short_conv<Table>,
          .scratch_bytes = [](const Op& any) -> size_t {
            const size_t kernel = size_t(std::get<op::ShortConv>(any).kernel);
            return kernel * size_t(kConvChannels + 16) * sizeof(float);
          },
          .run_piece = short_conv_piece<Table>,
          .piece_columns = [](const Op&, const Step&) { return kConvChannelsAlone; }};
}

// Moves a head's state from `before` to `after` over the rows [first, end) of the slice; `streams`:
// of ScanArgs, for the last of them.
template <const OpsTable& Table>
void scan_head_rows(const op::Mamba2Scan& op, const Step& step, int32_t head, int32_t first,
                    int32_t end, const float* before, float* after, bool streams, float* scratch) {
  const int64_t group = head / (op.head_count / op.group_count);
  if (streams) fetch_first(before);
  float* dt = scratch;
  float* decay = scratch + kScanRows;
  for (int32_t row = first; row < end; row += kScanRows) {
    const int32_t count = std::min(kScanRows, end - row);
    Table.scan_steps({.raw = step.row(op.dt, row) + head,
                      .dt = dt,
                      .decay = decay,
                      .raw_stride = op.dt.stride,
                      .count = count,
                      .bias = op.dt_bias[head],
                      .a = op.a[head]});
    Table.scan({.x = step.row(op.x, row) + int64_t(head) * op.head_dim,
                .b = step.row(op.b, row) + group * op.state_size,
                .c = step.row(op.c, row) + group * op.state_size,
                .dt = dt,
                .decay = decay,
                .out = step.row(op.out, row) + int64_t(head) * op.head_dim,
                .x_stride = op.x.stride,
                .b_stride = op.b.stride,
                .c_stride = op.c.stride,
                .out_stride = op.out.stride,
                .row_count = count,
                .head_dim = op.head_dim,
                .state_size = op.state_size,
                .before = before,
                .after = after,
                .d = op.d[head],
                .streams = streams && row + count == end,
                .room = scratch + 2 * kScanRows});
    before = after;
  }
}

template <const OpsTable& Table>
void scan_head(const op::Mamba2Scan& op, const Step& step, const Slice& slice, int32_t head,
               float* scratch) {
  const StateTensor& tensor = step.state_tensors[size_t(op.state)];
  const size_t head_floats = size_t(op.state_size) * size_t(op.head_dim);
  const float* before = reference::state_before(slice, tensor);
  if (before != nullptr) before += size_t(head) * head_floats;
  int32_t row = 0;
  for (const Capture& capture : slice.captures) {
    float* after = reference::captured_state(capture, tensor) + size_t(head) * head_floats;
    if (before == nullptr) {
      std::memset(after, 0, head_floats * sizeof(float));
      before = after;
    }
    CHECK(capture.row_count > row);
    scan_head_rows<Table>(op, step, head, slice.first_row + row,
                          slice.first_row + capture.row_count, before, after,
                          goes_past_caches(slice, capture, after, op.head_dim), scratch);
    before = after;
    row = capture.row_count;
  }
  CHECK(row == slice.row_count);
}

// Small heads share a task: 16384 states are a microsecond or two to read for a row alone, and for
// many rows the arithmetic is more than that.
struct HeadTasks {
  int32_t heads, count;  // Of a task; of a slice.

  HeadTasks(const op::Mamba2Scan& op, const Step& step) {
    const int32_t states = step.tokens.size() == step.slices.size() ? 16384 : 8192;
    heads = std::max(1, states / std::max(1, op.head_dim * op.state_size));
    count = (op.head_count + heads - 1) / heads;
  }
};

template <const OpsTable& Table>
void mamba2_scan(const Op& any, const Step& step, int64_t task, std::byte* scratch) {
  const auto& op = std::get<op::Mamba2Scan>(any);
  const HeadTasks tasks(op, step);
  const Slice& slice = step.slices[size_t(task / tasks.count)];
  const int32_t first = int32_t(task % tasks.count) * tasks.heads;
  const int32_t end = std::min(op.head_count, first + tasks.heads);
  for (int32_t head = first; head < end; ++head) {
    scan_head<Table>(op, step, slice, head, reinterpret_cast<float*>(scratch));
  }
}

template <const OpsTable& Table>
void mamba2_piece(const Op& any, const Step& step, const host::Piece& piece, std::byte* scratch) {
  const auto& op = std::get<op::Mamba2Scan>(any);
  for (const Slice& slice : step.slices) {
    for (int32_t head = piece.first_column / op.head_dim; head < piece.end_column / op.head_dim;
         ++head) {
      scan_head<Table>(op, step, slice, head, reinterpret_cast<float*>(scratch));
    }
  }
}

template <const OpsTable& Table>
host::HostKernel mamba2_kernel() {
  return {.task_count = [](const Op& any, const Step& step) -> int64_t {
            const HeadTasks tasks(std::get<op::Mamba2Scan>(any), step);
            return int64_t(step.slices.size()) * tasks.count;
          },
          .run = mamba2_scan<Table>,
          .scratch_bytes = [](const Op&) -> size_t {
            return (2 + kScanSumFloats) * kScanRows * sizeof(float);
          },
          .run_piece = mamba2_piece<Table>,
          .piece_columns =
              [](const Op& any, const Step& step) {
                const auto& op = std::get<op::Mamba2Scan>(any);
                return HeadTasks(op, step).heads * op.head_dim;
              }};
}

// States of a Mamba-1 task: a microsecond or two a row, most of it exponentials.
inline constexpr int32_t kScanStates = 2048;

// Whole vectors of either width, so that only the last task of a slice has a rest.
inline int32_t channels_per_task(const op::MambaScan& op) {
  return std::max(16, kScanStates / op.state_size / 16 * 16);
}

inline int32_t channel_tasks(const op::MambaScan& op) {
  return (op.x.width + channels_per_task(op) - 1) / channels_per_task(op);
}

// At most channels_per_task() channels, from `first` on.
template <const OpsTable& Table>
void scan_channels(const op::MambaScan& op, const Step& step, const Slice& slice, int32_t first,
                   int32_t channels, std::byte* scratch) {
  ChannelScanArgs args{};
  args.x_stride = op.x.stride;
  args.dt_stride = op.dt.stride;
  args.b_stride = op.b.stride;
  args.c_stride = op.c.stride;
  args.out_stride = op.out.stride;
  args.channels = channels;
  args.state_size = op.state_size;
  args.state_stride = op.x.width;
  args.d = op.d.from(first);
  args.a = op.a.from(int64_t(first) * op.state_size);
  args.decays = reinterpret_cast<float*>(scratch);
  args.states = args.decays + size_t(channels_per_task(op)) * size_t(op.state_size);

  const StateTensor& tensor = step.state_tensors[size_t(op.state)];
  args.before = reference::state_before(slice, tensor);
  if (args.before != nullptr) args.before += first;
  int32_t row = 0;
  for (const Capture& capture : slice.captures) {
    CHECK(capture.row_count > row);
    args.after = reference::captured_state(capture, tensor) + first;
    args.x = step.row(op.x, slice.first_row + row) + first;
    args.dt = step.row(op.dt, slice.first_row + row) + first;
    args.b = step.row(op.b, slice.first_row + row);
    args.c = step.row(op.c, slice.first_row + row);
    args.out = step.row(op.out, slice.first_row + row) + first;
    args.row_count = capture.row_count - row;
    args.streams = goes_past_caches(slice, capture, args.after, args.state_stride);
    Table.channel_scan(args);
    args.before = args.after;
    row = capture.row_count;
  }
  CHECK(row == slice.row_count);
}

template <const OpsTable& Table>
void mamba_scan(const Op& any, const Step& step, int64_t task, std::byte* scratch) {
  const auto& op = std::get<op::MambaScan>(any);
  const Slice& slice = step.slices[size_t(task / channel_tasks(op))];
  const int32_t first = int32_t(task % channel_tasks(op)) * channels_per_task(op);
  scan_channels<Table>(op, step, slice, first, std::min(channels_per_task(op), op.x.width - first),
                       scratch);
}

template <const OpsTable& Table>
void mamba_piece(const Op& any, const Step& step, const host::Piece& piece, std::byte* scratch) {
  const auto& op = std::get<op::MambaScan>(any);
  const int32_t most = channels_per_task(op);
  for (const Slice& slice : step.slices) {
    for (int32_t first = piece.first_column; first < piece.end_column; first += most) {
      scan_channels<Table>(op, step, slice, first, std::min(most, piece.end_column - first),
                           scratch);
    }
  }
}

template <const OpsTable& Table>
host::HostKernel mamba_kernel() {
  return {
      .task_count = [](const Op& any, const Step& step) -> int64_t {
        return int64_t(step.slices.size()) * channel_tasks(std::get<op::MambaScan>(any));
      },
      .run = mamba_scan<Table>,
      .scratch_bytes = [](const Op& any) -> size_t {
        const auto& op = std::get<op::MambaScan>(any);
        return 2 * size_t(channels_per_task(op)) * size_t(op.state_size) * sizeof(float);
      },
      .run_piece = mamba_piece<Table>,
      .piece_columns = [](const Op& any,
                          const Step&) { return channels_per_task(std::get<op::MambaScan>(any)); }};
}

}  // namespace cairn::cpu
