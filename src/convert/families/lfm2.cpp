// LFM 2 and LFM 2 MoE: short convolutions, and attention in some layers.
#include "convert/shared_families.h"

namespace cairn::convert {
namespace lfm2 {

constexpr std::string_view kDenseClasses[] = {"Lfm2ForCausalLM", "LFM2ForCausalLM"};
constexpr std::string_view kMoeClasses[] = {"Lfm2MoeForCausalLM"};

constexpr NameRow kNames[] = {
    {"model.embedding_norm", "token_embd_norm"},
    {"operator_norm", "attn_norm"},
    {"ffn_norm", "ffn_norm"},
    {"self_attn.out_proj", "attn_output"},
    {"self_attn.q_layernorm", "attn_q_norm"},
    {"self_attn.k_layernorm", "attn_k_norm"},
    {"conv.in_proj", "shortconv.in_proj"},
    {"conv.conv", "shortconv.conv", {}, Edit::squeeze},
    {"conv.out_proj", "shortconv.out_proj"},
    {"feed_forward.w1", "ffn_gate"},
    {"feed_forward.w2", "ffn_down"},
    {"feed_forward.w3", "ffn_up"},
    {"feed_forward.gate", "ffn_gate_inp"},
    {"feed_forward.experts.*.w1", "ffn_gate_exps"},
    {"feed_forward.experts.*.w2", "ffn_down_exps"},
    {"feed_forward.experts.*.w3", "ffn_up_exps"},
    {"feed_forward.experts.gate_up_proj", "ffn_gate_exps", "ffn_up_exps"},
    {"feed_forward.experts.down_proj", "ffn_down_exps"},
    {"feed_forward.expert_bias", "exp_probs_b.bias", {}, Edit::none, true},
};

// Layers of other kinds have no keys and values.
Status add_kv_heads(ParameterWriter& writer) {
  CAIRN_TRY(const std::vector<bool> layers, writer.layers_of_type({"full_attention"}));
  CAIRN_TRY(const int64_t heads, writer.config().count("num_key_value_heads"));
  writer.set_where("attention.head_count_kv", layers, heads);
  return Ok{};
}

// The width that files state may be one before it is made smaller and rounded up.
Result<int64_t> feed_forward_width(const Config& config) {
  CAIRN_TRY(int64_t width, config.count({"block_ff_dim", "intermediate_size"}));
  const Json* adjusts = config.find("block_auto_adjust_ff_dim");
  if (adjusts == nullptr || !adjusts->as_boolean().value_or(false)) return width;
  width = 2 * width / 3;
  if (config.find("block_ffn_dim_multiplier") != nullptr) {
    CAIRN_TRY(const double factor, config.number("block_ffn_dim_multiplier"));
    if (!(factor > 0 && factor * double(width) < double(INT32_MAX))) {
      return fail(ErrorCode::invalid_data, "block_ffn_dim_multiplier: expected a factor, found {}",
                  factor);
    }
    width = int64_t(factor * double(width));
  }
  CAIRN_TRY(const int64_t multiple, config.positive("block_multiple_of"));
  return multiple * ((width + multiple - 1) / multiple);
}

Status add_dense(ParameterWriter& writer) {
  CAIRN_TRY(const int64_t width, feed_forward_width(writer.config()));
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(add_kv_heads(writer));
  CAIRN_TRY(writer.add_count("vocab_size", {"vocab_size"}));
  CAIRN_TRY(writer.add_count("shortconv.l_cache", {"conv_L_cache"}));
  CAIRN_TRY(writer.add_number("attention.layer_norm_rms_epsilon", {"norm_eps"}));
  writer.set("feed_forward_length", uint32_t(width));
  return Ok{};
}

Status add_moe(ParameterWriter& writer) {
  constexpr uint32_t kSigmoidGate = 2;
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(add_kv_heads(writer));
  CAIRN_TRY(writer.add_count("expert_feed_forward_length", {"moe_intermediate_size"}));
  CAIRN_TRY(writer.add_count("leading_dense_block_count", {"num_dense_layers"}));
  writer.set("expert_gating_func", kSigmoidGate);
  CAIRN_TRY(writer.add_count("vocab_size", {"vocab_size"}));
  return writer.add_count("shortconv.l_cache", {"conv_L_cache"});
}

constexpr PretokenizerAlias kPretokenizers[] = {{"llama-bpe", "lfm2"}, {"dbrx", "lfm2"}};

constexpr Family kFamilies[] = {
    {.classes = kDenseClasses,
     .architecture = "lfm2",
     .names = kNames,
     .parameters = add_dense,
     .pretokenizers = kPretokenizers},
    {.classes = kMoeClasses,
     .architecture = "lfm2moe",
     .names = kNames,
     .parameters = add_moe,
     .pretokenizers = kPretokenizers},
};

constexpr ConfigDefault kDefaults[] = {
    {"lfm2", "norm_eps", 1e-5},      {"lfm2", "rope_theta", 1e6},
    {"lfm2", "conv_L_cache", 3},     {"lfm2", "block_multiple_of", 256},
    {"lfm2_moe", "norm_eps", 1e-5},  {"lfm2_moe", "rope_theta", 1e6},
    {"lfm2_moe", "conv_L_cache", 3}, {"lfm2_moe", "num_dense_layers", 2},
};

}  // namespace lfm2

extern const FamilyGroup families_lfm2;
constinit const FamilyGroup families_lfm2 = {lfm2::kFamilies, lfm2::kDefaults};

}  // namespace cairn::convert
