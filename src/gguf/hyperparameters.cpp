// The ranges. They are wide: an honest model of ten times today's size passes; a file that asks for
// a head of three billion dimensions does not. Sizes derived from them (width * layers * …) stay
// far below 2^63.
#include "gguf/hyperparameters.h"

#include <limits>

namespace cairn::gguf {
namespace {

constexpr int32_t kWidth = 65536;
constexpr int32_t kHeads = 1024;
constexpr int32_t kHeadWidth = 1024;
constexpr int32_t kContext = 1 << 24;
constexpr int32_t kVocabulary = 1 << 21;
constexpr int32_t kExperts = 4096;
// Inner widths grow faster than the model's: 8 times today's largest.
constexpr int32_t kInnerWidth = 1 << 20;

constexpr CountRange kCounts[] = {
    {"altup.active_idx", 0, 63, 0},
    {"altup.num_inputs", 1, 64, 1},
    {"attention.decay_lora_rank", 1, kWidth, 1},
    {"attention.gate_lora_rank", 1, kWidth, 1},
    {"attention.head_count", 1, kHeads, 0},
    {"attention.head_count_kv", 1, kHeads, 0},
    {"attention.iclr_lora_rank", 1, kWidth, 1},
    {"attention.key_length", 1, kHeadWidth, 1},
    {"attention.key_length_mla", 1, kHeadWidth, 1},
    {"attention.key_length_swa", 1, kHeadWidth, 1},
    {"attention.kv_lora_rank", 1, kWidth, 1},
    {"attention.q_lora_rank", 1, kWidth, 1},
    {"attention.recurrent_layers", 0, 1, 0},
    {"attention.shared_kv_layers", 0, 1024, 0},
    {"attention.sliding_window", 0, kContext, 0},
    {"attention.sliding_window_pattern", 0, 1024, 0},
    {"attention.value_length", 1, kHeadWidth, 1},
    {"attention.value_length_mla", 1, kHeadWidth, 1},
    {"attention.value_length_swa", 1, kHeadWidth, 1},
    {"attention.value_residual_mix_lora_rank", 1, kWidth, 1},
    {"block_count", 1, 1024, 1},
    {"context_length", 1, kContext, 1},
    {"dense_2_feat_out", 0, kInnerWidth, 0},
    {"embedding_length", 1, kWidth, 1},
    {"embedding_length_per_layer_input", 0, kWidth, 0},
    {"expert_count", 0, kExperts, 0},
    {"expert_feed_forward_length", 0, kInnerWidth, 0},
    {"expert_gating_func", 0, 16, 0},
    {"expert_group_count", 0, kExperts, 0},
    {"expert_group_used_count", 0, kExperts, 0},
    {"expert_shared_count", 0, kExperts, 0},
    {"expert_shared_feed_forward_length", 0, kInnerWidth, 0},
    {"expert_used_count", 0, kExperts, 0},
    {"feed_forward_length", 0, kInnerWidth, 0},
    {"full_attention_interval", 1, 1024, 1},
    {"interleave_moe_layer_step", 0, 1024, 0},
    {"kda.head_dim", 1, kHeadWidth, 1},
    {"leading_dense_block_count", 0, 1024, 0},
    {"moe_latent_size", 0, kWidth, 0},
    {"nextn_predict_layers", 0, 64, 0},
    {"rope.dimension_count", 0, kHeadWidth, 0},
    {"rope.dimension_count_swa", 0, kHeadWidth, 0},
    {"rope.dimension_sections", 0, kHeadWidth, 0},
    {"rope.scaling.original_context_length", 1, kContext, 1},
    {"shortconv.l_cache", 2, 64, 2},  // With one tap a layer would keep nothing.
    {"ssm.conv_kernel", 1, 64, 1},
    {"ssm.group_count", 1, kHeads, 1},
    {"ssm.inner_size", 1, kInnerWidth, 1},
    {"ssm.state_size", 1, 4096, 1},
    {"ssm.time_step_rank", 1, kWidth, 1},
    {"token_type_count", 0, kVocabulary, 0},
    {"vocab_size", 1, kVocabulary, 1},
    {"wkv.head_size", 1, kHeadWidth, 1},
};

constexpr RealRange kReals[] = {
    {"attention.clamp_kqv", 0.0f, 1e6f},
    {"attention.layer_norm_epsilon", 0.0f, 0.1f},
    {"attention.layer_norm_rms_epsilon", 0.0f, 0.1f},
    {"attention.scale", 1e-6f, 1e6f},
    {"attention.temperature_scale", 0.0f, 1e6f},
    {"attn_logit_softcapping", 0.0f, 1e6f},
    {"embedding_scale", 1e-6f, 1e6f},
    {"expert_weights_scale", 0.0f, 1e6f},
    {"final_logit_softcapping", 0.0f, 1e6f},
    {"logit_scale", 1e-6f, 1e6f},
    {"residual_scale", 1e-6f, 1e6f},
    {"rope.freq_base", 1.0f, 1e15f},
    {"rope.freq_base_swa", 1.0f, 1e15f},
    {"rope.scaling.attn_factor", 1e-6f, 1e6f},
    {"rope.scaling.factor", 1e-6f, 1e6f},
    {"rope.scaling.yarn_attn_factor", 1e-6f, 1e6f},
    {"rope.scaling.yarn_beta_fast", 1e-6f, 1e6f},
    {"rope.scaling.yarn_beta_slow", 1e-6f, 1e6f},
    {"rope.scaling.yarn_ext_factor", -1.0f, 1e6f},
    {"rope.scaling.yarn_log_multiplier", -1e6f, 1e6f},
};

}  // namespace

std::span<const CountRange> count_ranges() {
  return kCounts;
}

std::span<const RealRange> real_ranges() {
  return kReals;
}

CountRange count_range(std::string_view name) {
  for (const CountRange& range : kCounts) {
    if (range.name == name) return range;
  }
  return {name, 0, std::numeric_limits<int32_t>::max(), 0};
}

RealRange real_range(std::string_view name) {
  for (const RealRange& range : kReals) {
    if (range.name == name) return range;
  }
  return {name, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()};
}

}  // namespace cairn::gguf
