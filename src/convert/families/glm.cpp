// GLM 4 and GLM 4.5 (with experts). Layers behind the last, which predict a token further on, stay.
#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace glm {

constexpr uint32_t kSigmoidGate = 2;

constexpr NameRow kGlm4[] = {
    {"post_self_attn_layernorm", "post_attention_norm"},
    {"post_mlp_layernorm", "post_ffw_norm"},
    {"mlp.gate_up_proj", "ffn_up"},
};
constexpr NameRow kGlm4Moe[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.gate.e_score_correction", "exp_probs_b"},
    {"mlp.experts.*.down_proj", "ffn_down_exps"},
    {"mlp.experts.*.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.*.up_proj", "ffn_up_exps"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"eh_proj", "nextn.eh_proj"},
    {"embed_tokens", "nextn.embed_tokens"},
    {"enorm", "nextn.enorm"},
    {"hnorm", "nextn.hnorm"},
    {"shared_head.head", "nextn.shared_head_head"},
    {"shared_head.norm", "nextn.shared_head_norm"},
};
constexpr std::string_view kGlm4Classes[] = {"Glm4ForCausalLM"};
constexpr std::string_view kGlm4MoeClasses[] = {"Glm4MoeForCausalLM"};
constexpr PretokenizerAlias kNames[] = {{"llama-bpe", "glm4"}, {"dbrx", "glm4"}};
constexpr TokenRole kGlm4Roles[] = {{"eos", "<|endoftext|>"},
                                    {"eot", "<|user|>"},
                                    {"unk", "<|endoftext|>"},
                                    {"bos", "<|endoftext|>"}};
constexpr TokenRole kGlm4MoeRoles[] = {
    {"bos", "[gMASK]"}, {"eot", "<|user|>"}, {"unk", "<|endoftext|>"}, {"eom", "<|observation|>"}};

Status add_rotated(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(std::optional<int64_t> dims, config.count_if_set({"head_dim"}));
  if (!dims) {
    CAIRN_TRY(const int64_t width, config.count("hidden_size"));
    CAIRN_TRY(const int64_t heads, config.positive("num_attention_heads"));
    dims = width / heads;
  }
  CAIRN_TRY(const double part, rotated_part(config));
  writer.set("rope.dimension_count", uint32_t(part * double(*dims)));
  return Ok{};
}

Status add_glm4(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_common());
  return add_rotated(writer);
}

Status add_glm4moe(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(const int64_t layers, config.count("num_hidden_layers"));
  CAIRN_TRY(const std::optional<int64_t> more, config.count_if_set({"num_nextn_predict_layers"}));
  writer.set("block_count", uint32_t(layers + more.value_or(0)));
  CAIRN_TRY(add_rotated(writer));
  CAIRN_TRY(writer.add_count_if_set("expert_feed_forward_length", {"moe_intermediate_size"}));
  CAIRN_TRY(writer.add_count_if_set("expert_shared_count", {"n_shared_experts"}));
  CAIRN_TRY(writer.add_count_if_set("leading_dense_block_count", {"first_k_dense_replace"}));
  writer.set("expert_gating_func", kSigmoidGate);
  CAIRN_TRY(writer.add_number_if_set("expert_weights_scale", {"routed_scaling_factor"}));
  writer.add_flag_if_set("expert_weights_norm", "norm_topk_prob");
  return writer.add_count_if_set("nextn_predict_layers", {"num_nextn_predict_layers"});
}

constexpr Family kFamilies[] = {
    {.classes = kGlm4Classes,
     .architecture = "glm4",
     .names = kGlm4,
     .parameters = add_glm4,
     .roles = kGlm4Roles,
     .pretokenizers = kNames},
    {.classes = kGlm4MoeClasses,
     .architecture = "glm4moe",
     .names = kGlm4Moe,
     .parameters = add_glm4moe,
     .roles = kGlm4MoeRoles,
     .pretokenizers = kNames},
};

constexpr ConfigDefault kDefaults[] = {
    {"glm4", "num_key_value_heads", 2},
    {"glm4_moe", "n_shared_experts", 1},
    {"glm4_moe", "first_k_dense_replace", 1},
    {"glm4_moe", "norm_topk_prob", 1, true},
    {"glm4", "partial_rotary_factor", 0.5},
    {"glm4", "head_dim", 128},
    {"glm4", "rms_norm_eps", 1.5625e-07},
    {"glm4_moe", "partial_rotary_factor", 0.5},
    {"glm4_moe", "rms_norm_eps", 1e-5},
    {"glm4_moe", "n_group", 1},
    {"glm4_moe", "topk_group", 1},
    {"glm4_moe", "routed_scaling_factor", 1},
    {"glm4_moe", "num_nextn_predict_layers", 1},
};

}  // namespace glm

extern const FamilyGroup families_glm;
constinit const FamilyGroup families_glm = {glm::kFamilies, glm::kDefaults};

}  // namespace cairn::convert
