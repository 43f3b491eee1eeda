// Fills the table of kernels for one instruction set: the last file that ops_<isa>.cpp includes.
#pragma once

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/attention/kv_store.h"
#include "backends/cpu/norm.h"
#include "backends/cpu/recurrent/channel_delta.h"
#include "backends/cpu/recurrent/delta_rule.h"
#include "backends/cpu/recurrent/recurrence.h"
#include "backends/cpu/rope.h"
#include "backends/cpu/route.h"
#include "backends/cpu/streams.h"

namespace cairn {
namespace {

template <class L>
constexpr cpu::OpsTable make_ops_table(int32_t queries_on_pages = 4 * kBlock<L>) {
  return {
      .clear_upper_halves = &L::clear_upper_halves,
      .rms_norm = rms_norm_row<L>,
      .layer_norm = layer_norm_row<L>,
      .add = add_row<L>,
      .scale = scale_row<L>,
      .activate = {activate_row<L, Silu>, activate_row<L, GeluErf>, activate_row<L, GeluTanh>,
                   activate_row<L, Relu>, activate_row<L, Sigmoid>, activate_row<L, Tanh>,
                   activate_row<L, Softplus>, activate_row<L, ClampedSwiglu>,
                   activate_row<L, Identity>},
      .gate = {gate_row<L, Silu>, gate_row<L, GeluErf>, gate_row<L, GeluTanh>, gate_row<L, Relu>,
               gate_row<L, Sigmoid>, gate_row<L, Tanh>, gate_row<L, Softplus>,
               gate_row<L, ClampedSwiglu>, gate_row<L, Identity>},
      .expert_sum = expert_sum_row<L>,
      .route = {.softmax = softmax_scores<L>,
                .sigmoid = sigmoid_scores<L>,
                .exp_minus = exp_minus_scores<L>,
                .take_best = take_best_scores<L>},
      .mix_streams = mix_streams_row<L>,
      .gaussian_topk = gaussian_topk_row<L>,
      .rope_adjacent = rope_adjacent_row<L>,
      .rope_halves = rope_halves_row<L>,
      .store_keys = {store_keys<L, F32Bits>, store_keys<L, F16Bits>, store_keys<L, BF16Bits>,
                     store_coded_keys<L, Q8Block>, store_coded_keys<L, Q4Block>},
      .store_values = {store_values<L, F32Bits>, store_values<L, F16Bits>,
                       store_values<L, BF16Bits>, store_coded_values<L, Q8Block>,
                       store_coded_values<L, Q4Block>},
      .queries_on_pages = queries_on_pages,
      .attend = attend_queries<L>,
      .finish_attention = finish_attention<L>,
      .short_conv = short_conv_rows<L>,
      .channel_scan = channel_scan_rows<L>,
      .scan_steps = scan_step_sizes<L>,
      .scan = scan_rows<L>,
      .delta_steps = delta_step_sizes<L>,
      .delta = delta_rows<L>,
      .channel_delta_steps = channel_delta_step_sizes<L>,
      .channel_delta = channel_delta_rows<L>,
  };
}

}  // namespace
}  // namespace cairn
