// Jamba: layers of Mamba and of attention in turns, experts in every second.
#include "convert/shared_families.h"

namespace cairn::convert {
namespace jamba {

constexpr std::string_view kClasses[] = {"JambaForCausalLM"};

constexpr NameRow kNames[] = {
    {"model.final_layernorm", "output_norm"},
    {"pre_ff_layernorm", "ffn_norm"},
    {"feed_forward.router", "ffn_gate_inp"},
    {"feed_forward.experts.*.down_proj", "ffn_down_exps"},
    {"feed_forward.experts.*.gate_proj", "ffn_gate_exps"},
    {"feed_forward.experts.*.up_proj", "ffn_up_exps"},
    {"feed_forward.down_proj", "ffn_down"},
    {"feed_forward.gate_proj", "ffn_gate"},
    {"feed_forward.up_proj", "ffn_up"},
    {"mamba.in_proj", "ssm_in"},
    {"mamba.conv1d", "ssm_conv1d", {}, Edit::squeeze},
    {"mamba.x_proj", "ssm_x"},
    {"mamba.dt_proj", "ssm_dt"},
    {"mamba.dt_layernorm", "ssm_dt_norm"},
    {"mamba.b_layernorm", "ssm_b_norm"},
    {"mamba.c_layernorm", "ssm_c_norm"},
    {"mamba.A_log", "ssm_a", {}, Edit::negative_exp, true},
    {"mamba.D", "ssm_d", {}, Edit::none, true},
    {"mamba.out_proj", "ssm_out"},
};

// Of a layer with attention the number of key and value heads; 0 of one with a state.
Status add_kv_heads(ParameterWriter& writer, int64_t layers) {
  const Config& config = writer.config();
  CAIRN_TRY(const int64_t heads, config.count("num_key_value_heads"));
  CAIRN_TRY(const int64_t offset, config.count("attn_layer_offset"));
  CAIRN_TRY(const int64_t period, config.positive("attn_layer_period"));
  std::vector<bool> has_attention;
  for (int64_t layer = 0; layer < layers; ++layer) {
    has_attention.push_back(layer >= offset && (layer - offset) % period == 0);
  }
  writer.set_where("attention.head_count_kv", has_attention, heads);
  return Ok{};
}

Status add_jamba(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const int64_t width, config.count({"hidden_size", "mamba_d_model"}));
  CAIRN_TRY(const int64_t expand, config.count("mamba_expand"));
  CAIRN_TRY(const int64_t layers, config.count("num_hidden_layers"));
  if (layers > kLayerCountMax) {
    return fail(ErrorCode::invalid_data, "num_hidden_layers: expected at most {}, found {}",
                kLayerCountMax, layers);
  }
  writer.set("block_count", uint32_t(layers));
  CAIRN_TRY(writer.add_context());
  writer.set("embedding_length", uint32_t(width));
  CAIRN_TRY(writer.add_count("feed_forward_length", {"intermediate_size"}));
  CAIRN_TRY(writer.add_count("attention.head_count", {"num_attention_heads"}));
  CAIRN_TRY(add_kv_heads(writer, layers));
  CAIRN_TRY(writer.add_count("ssm.conv_kernel", {"mamba_d_conv"}));
  writer.set("ssm.inner_size", uint32_t(expand * width));
  CAIRN_TRY(writer.add_count("ssm.state_size", {"mamba_d_state"}));
  CAIRN_TRY(writer.add_count("ssm.time_step_rank", {"mamba_dt_rank"}));
  CAIRN_TRY(writer.add_number("attention.layer_norm_rms_epsilon", {"rms_norm_eps"}));
  CAIRN_TRY(writer.add_count("expert_count", {"num_local_experts", "num_experts"}));
  CAIRN_TRY(writer.add_count("expert_used_count", {"num_experts_per_tok"}));
  writer.add_file_type();
  return Ok{};
}

// In layers without experts some files call the only one expert 0.
Result<bool> add_only_expert(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (name.expert != 0 || !name.layer) return false;
  const Config& config = plan.config();
  CAIRN_TRY(const int64_t offset, config.count("expert_layer_offset"));
  CAIRN_TRY(const int64_t period, config.positive("expert_layer_period"));
  if (*name.layer >= offset && (*name.layer - offset) % period == 0) return false;
  const std::string_view part = std::string_view(name.rest).substr(name.rest.rfind('.') + 1);
  for (const std::string_view kind : {"down", "gate", "up"}) {
    if (part != std::string(kind) + "_proj") continue;
    CAIRN_TRY(plan.add_whole(name, "ffn_" + std::string(kind), source));
    return true;
  }
  return false;
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "jamba",
     .names = kNames,
     .parameters = add_jamba,
     .tensor = add_only_expert,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .never_adds_space = true},
};

constexpr ConfigDefault kDefaults[] = {
    {"jamba", "rms_norm_eps", 1e-6},     {"jamba", "mamba_d_state", 16},
    {"jamba", "mamba_d_conv", 4},        {"jamba", "mamba_expand", 2},
    {"jamba", "attn_layer_period", 8},   {"jamba", "attn_layer_offset", 4},
    {"jamba", "expert_layer_period", 2}, {"jamba", "expert_layer_offset", 1},
};

}  // namespace jamba

extern const FamilyGroup families_jamba;
constinit const FamilyGroup families_jamba = {jamba::kFamilies, jamba::kDefaults};

}  // namespace cairn::convert
