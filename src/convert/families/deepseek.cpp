// DeepSeek 2 and 3: keys and values from one small vector. The matrix that widens it is kept as
// two, the keys' transposed, so that queries can be taken into the small space. And dots.llm1,
// which has their experts and usual attention. Layers that predict a token further on are left out.
#include <utility>

#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace deepseek {

constexpr NameRow kNames[] = {
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.gate.e_score_correction", "exp_probs_b"},
    {"mlp.experts.*.down_proj", "ffn_down_exps"},
    {"mlp.experts.*.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.*.up_proj", "ffn_up_exps"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
};
constexpr std::string_view kDeepseekClasses[] = {"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM"};
constexpr std::string_view kDots1Classes[] = {"Dots1ForCausalLM"};

Status add_deepseek(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common());
  writer.set("attention.head_count_kv", uint32_t(1));  // The small vector serves all heads.
  CAIRN_TRY(const std::optional<int64_t> experts, config.count_if_set({"n_routed_experts"}));
  CAIRN_TRY(const int64_t layers, config.count("num_hidden_layers"));
  CAIRN_TRY(const std::optional<int64_t> dense, config.count_if_set({"first_k_dense_replace"}));
  writer.set("leading_dense_block_count", uint32_t(dense.value_or(experts ? 0 : layers)));
  CAIRN_TRY(writer.add_count("vocab_size", {"vocab_size"}));
  CAIRN_TRY(writer.add_count_if_set("attention.q_lora_rank", {"q_lora_rank"}));
  CAIRN_TRY(const int64_t rank, config.count("kv_lora_rank"));
  CAIRN_TRY(const int64_t turning, config.count("qk_rope_head_dim"));
  CAIRN_TRY(const int64_t still, config.count("qk_nope_head_dim"));
  writer.set("attention.kv_lora_rank", uint32_t(rank));
  writer.set("attention.key_length", uint32_t(rank + turning));
  writer.set("attention.value_length", uint32_t(rank));
  writer.set("attention.key_length_mla", uint32_t(still + turning));
  CAIRN_TRY(writer.add_count("attention.value_length_mla", {"v_head_dim"}));
  CAIRN_TRY(writer.add_count("expert_feed_forward_length",
                             {"moe_intermediate_size", "intermediate_size"}));
  CAIRN_TRY(const std::optional<int64_t> shared, config.count_if_set({"n_shared_experts"}));
  writer.set("expert_shared_count", uint32_t(shared.value_or(0)));
  CAIRN_TRY(writer.add_number_if_set("expert_weights_scale", {"routed_scaling_factor"}));
  const Json* sums_to_one = config.find("norm_topk_prob");
  if (sums_to_one != nullptr && sums_to_one->as_boolean().value_or(false)) {
    writer.set("expert_weights_norm", true);
  }
  writer.set("rope.dimension_count", uint32_t(turning));
  if (config.rope().find_set("mscale_all_dim") != nullptr) {
    CAIRN_TRY(const double scale, rope_number(config, "mscale_all_dim"));
    // Of this family alone, GGUF keeps a tenth.
    writer.set("rope.scaling.yarn_log_multiplier", float(0.1 * scale));
  }
  return Ok{};
}

// Rows [heads, still + value, rank]: of each head the first ones transposed, and the last.
Status split_widening(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  CAIRN_TRY(const int64_t still, plan.config().count("qk_nope_head_dim"));
  CAIRN_TRY(const int64_t value, plan.config().count("v_head_dim"));
  const int64_t heads = plan.kv_head_count(), height = still + value;
  const bool fits = source.shape.size() == 2 && heads > 0 && still > 0 && value > 0 &&
                    source.shape[0] % height == 0 && source.shape[0] / height == heads;
  if (!fits) {
    return fail(ErrorCode::invalid_data,
                "tensor {}: expected {} heads of {} and {} rows, found shape {}", source.name,
                heads, still, value, shape_text(source));
  }
  const int64_t rank = source.shape[1];
  PlannedTensor keys = plan.start(TensorPlan::target_name(name, "attn_k_b"), {still, rank, heads});
  PlannedTensor values =
      plan.start(TensorPlan::target_name(name, "attn_v_b"), {rank, value, heads});
  for (int64_t head = 0; head < heads; ++head) {
    const int64_t first = head * height * rank;
    keys.runs.push_back({&source, first, rank, 1, rank});
    values.runs.push_back({&source, first + still * rank, value, rank});
  }
  CAIRN_TRY(plan.add(std::move(keys)));
  return plan.add(std::move(values));
}

Result<bool> add_tensor(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (is_tied_output(plan, name)) return true;
  if (name.layer && *name.layer >= plan.layer_count()) return true;
  if (name.rest != "self_attn.kv_b_proj" || name.ending != ".weight") return false;
  CAIRN_TRY(split_widening(plan, name, source));
  return true;
}

Status add_dots1(ParameterWriter& writer) {
  CAIRN_TRY(add_qwen_moe_parameters(writer));
  return add_shared_expert_parameters(writer);
}

constexpr Family kFamilies[] = {
    {.classes = kDeepseekClasses,
     .architecture = "deepseek2",
     .names = kNames,
     .parameters = add_deepseek,
     .tensor = add_tensor},
    {.classes = kDots1Classes, .architecture = "dots1", .names = kNames, .parameters = add_dots1},
};

constexpr ConfigDefault kDefaults[] = {
    {"deepseek_v2", "rms_norm_eps", 1e-6},
    {"deepseek_v2", "kv_lora_rank", 512},
    {"deepseek_v2", "qk_rope_head_dim", 64},
    {"deepseek_v2", "qk_nope_head_dim", 128},
    {"deepseek_v2", "v_head_dim", 128},
    {"deepseek_v2", "routed_scaling_factor", 1},
    {"deepseek_v3", "rms_norm_eps", 1e-6},
    {"deepseek_v3", "kv_lora_rank", 512},
    {"deepseek_v3", "qk_rope_head_dim", 64},
    {"deepseek_v3", "qk_nope_head_dim", 128},
    {"deepseek_v3", "v_head_dim", 128},
    {"deepseek_v3", "routed_scaling_factor", 2.5},
    {"deepseek_v3", "n_shared_experts", 1},
    {"deepseek_v3", "norm_topk_prob", 1, true},
    {"dots1", "n_group", 1},
    {"dots1", "topk_group", 1},
    {"dots1", "norm_topk_prob", 0, true},
    {"dots1", "rms_norm_eps", 1e-6},
    {"dots1", "routed_scaling_factor", 1},
};

}  // namespace deepseek

extern const FamilyGroup families_deepseek;
constinit const FamilyGroup families_deepseek = {deepseek::kFamilies, deepseek::kDefaults};

}  // namespace cairn::convert
