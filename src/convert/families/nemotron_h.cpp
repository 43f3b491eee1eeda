// Nemotron-H: each layer is one thing only: a Mamba 2 mixer, attention, a feed-forward block or
// experts.
#include "convert/shared_families.h"
#include "convert/ssm_tensors.h"

namespace cairn::convert {
namespace nemotron_h {

constexpr std::string_view kClasses[] = {"NemotronHForCausalLM"};

constexpr NameRow kNames[] = {
    {"backbone.embeddings", "token_embd"},
    {"backbone.norm_f", "output_norm"},
    {"norm", "attn_norm"},
    {"mixer.in_proj", "ssm_in"},
    {"mixer.conv1d", "ssm_conv1d", {}, Edit::squeeze},
    {"mixer.out_proj", "ssm_out"},
    {"mixer.q_proj", "attn_q"},
    {"mixer.k_proj", "attn_k"},
    {"mixer.v_proj", "attn_v"},
    {"mixer.o_proj", "attn_output"},
    {"mixer.up_proj", "ffn_up"},
    {"mixer.down_proj", "ffn_down"},
    {"mixer.gate", "ffn_gate_inp"},
    {"mixer.gate.e_score_correction", "exp_probs_b"},
    {"mixer.experts.*.down_proj", "ffn_down_exps"},
    {"mixer.experts.*.up_proj", "ffn_up_exps"},
    {"mixer.shared_experts.down_proj", "ffn_down_shexp"},
    {"mixer.shared_experts.up_proj", "ffn_up_shexp"},
    {"mixer.fc1_latent_proj", "ffn_latent_down"},
    {"mixer.fc2_latent_proj", "ffn_latent_up"},
};

constexpr uint32_t kContext = 1u << 20;  // A state is as good at any length.

// "M-M*" or "ME*", a letter for a layer; or a list of words.
struct Pattern {
  std::vector<bool> has_attention, has_feed_forward;
};

Result<Pattern> read_pattern(const Config& config) {
  Pattern pattern;
  const Json* stated = config.find({"hybrid_override_pattern", "layers_block_type"});
  if (stated == nullptr) {
    return fail(ErrorCode::not_found,
                "expected hybrid_override_pattern in config.json, found none");
  }
  for (const char kind : stated->as_text().value_or("")) {
    pattern.has_attention.push_back(kind == '*');
    pattern.has_feed_forward.push_back(kind == '-' || kind == 'E');
  }
  for (const Json& item : stated->items()) {
    const std::string_view kind = item.as_text().value_or("");
    pattern.has_attention.push_back(kind == "attention" || kind == "full_attention");
    pattern.has_feed_forward.push_back(kind == "mlp" || kind == "moe");
  }
  CAIRN_TRY(const std::optional<int64_t> layers, config.count_if_set({"num_hidden_layers"}));
  const auto count = int64_t(pattern.has_attention.size());
  if (count == 0 || layers.value_or(count) != count) {
    return fail(ErrorCode::invalid_data, "hybrid_override_pattern: expected {} layers, found {}",
                layers.value_or(1), count);
  }
  return pattern;
}

bool has_experts(const Config& config) {
  return config.find("num_experts_per_tok") != nullptr;
}

void adapt(const Config& config, Family& family) {
  if (has_experts(config)) family.architecture = "nemotron_h_moe";
}

Status add_experts(ParameterWriter& writer, const Pattern& pattern) {
  CAIRN_TRY(const int64_t width, writer.config().count("moe_intermediate_size"));
  writer.set_where("feed_forward_length", pattern.has_feed_forward, width);
  CAIRN_TRY(writer.add_count("expert_used_count", {"num_experts_per_tok"}));
  writer.set("expert_feed_forward_length", uint32_t(width));
  CAIRN_TRY(writer.add_count("expert_shared_feed_forward_length",
                             {"moe_shared_expert_intermediate_size"}));
  CAIRN_TRY(writer.add_count("expert_count", {"n_routed_experts"}));
  CAIRN_TRY(writer.add_count("expert_shared_count", {"n_shared_experts"}));
  writer.add_flag("expert_weights_norm", "norm_topk_prob");
  CAIRN_TRY(writer.add_number("expert_weights_scale", {"routed_scaling_factor"}));
  CAIRN_TRY(writer.add_count("expert_group_count", {"n_group"}));
  return writer.add_count_if_set("moe_latent_size", {"moe_latent_size"});
}

Status add_nemotron(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const Pattern pattern, read_pattern(config));
  CAIRN_TRY(const int64_t heads, config.count("mamba_num_heads"));
  CAIRN_TRY(const int64_t head, config.count("mamba_head_dim"));
  CAIRN_TRY(const int64_t kv_heads, config.count("num_key_value_heads"));
  writer.set("block_count", uint32_t(pattern.has_attention.size()));
  CAIRN_TRY(add_granite_parameters(writer));
  if (!config.states_rope_base()) writer.erase("rope.freq_base");
  CAIRN_TRY(writer.add_count("ssm.conv_kernel", {"conv_kernel"}));
  CAIRN_TRY(writer.add_count("ssm.state_size", {"ssm_state_size"}));
  CAIRN_TRY(writer.add_count("ssm.group_count", {"n_groups"}));
  writer.set("ssm.inner_size", uint32_t(heads * head));
  writer.set("ssm.time_step_rank", uint32_t(heads));
  writer.set_where("attention.head_count_kv", pattern.has_attention, kv_heads);
  writer.set("rope.scaling.finetuned", false);
  writer.set("context_length", kContext);
  CAIRN_TRY(writer.add_count("attention.key_length", {"head_dim", "attention_head_dim"}));
  CAIRN_TRY(writer.add_count("attention.value_length", {"head_dim", "attention_head_dim"}));
  if (has_experts(config)) return add_experts(writer, pattern);
  CAIRN_TRY(const int64_t width, config.count("intermediate_size"));
  writer.set_where("feed_forward_length", pattern.has_feed_forward, width);
  return Ok{};
}

// Layers that guess further tokens are left out.
Result<bool> add_tensor(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (name.rest.starts_with("mtp.")) return true;
  CAIRN_TRY(const int64_t groups, plan.config().count("n_groups"));
  return add_mamba2_tensor(plan, name, source, "mixer.", groups);
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "nemotron_h",
     .names = kNames,
     .parameters = add_nemotron,
     .tensor = add_tensor,
     .interleaves_heads = true,
     .vocabulary_multiple = 8,
     .adapt = adapt},
};

constexpr ConfigDefault kDefaults[] = {
    {"nemotron_h", "conv_kernel", 4},       {"nemotron_h", "n_groups", 8},
    {"nemotron_h", "ssm_state_size", 128},  {"nemotron_h", "mamba_head_dim", 64},
    {"nemotron_h", "mamba_num_heads", 128}, {"nemotron_h", "layer_norm_epsilon", 1e-5},
};

}  // namespace nemotron_h

extern const FamilyGroup families_nemotron_h;
constinit const FamilyGroup families_nemotron_h = {nemotron_h::kFamilies, nemotron_h::kDefaults};

}  // namespace cairn::convert
