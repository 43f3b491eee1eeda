// Granite 4 and Bamba: layers of Mamba 2 and of attention; experts in some models. Those that have
// attention in every layer are Granite 3's architectures.
#include <algorithm>

#include "convert/shared_families.h"
#include "convert/ssm_tensors.h"

namespace cairn::convert {
namespace granite_hybrid {

constexpr std::string_view kClasses[] = {"GraniteMoeHybridForCausalLM", "BambaForCausalLM"};

constexpr NameRow kNames[] = {
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"block_sparse_moe.input_linear", "ffn_gate_exps", "ffn_up_exps"},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
    {"shared_mlp.input_linear", "ffn_gate_shexp", "ffn_up_shexp"},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
    {"model.final_layernorm", "output_norm"},
    {"pre_ff_layernorm", "ffn_norm"},
    {"feed_forward.gate_proj", "ffn_gate"},
    {"feed_forward.up_proj", "ffn_up"},
    {"feed_forward.down_proj", "ffn_down"},
    {"mamba.in_proj", "ssm_in"},
    {"mamba.conv1d", "ssm_conv1d", {}, Edit::squeeze},
    {"mamba.out_proj", "ssm_out"},
};

// A state is as good at any length.
constexpr uint32_t kContext = 1u << 20;

// By type, by a list of numbers, or by a period. Errors: invalid_data.
Result<std::vector<bool>> attention_layers(const Config& config) {
  CAIRN_TRY(const int64_t layers, config.count("num_hidden_layers"));
  if (layers > kLayerCountMax) {
    return fail(ErrorCode::invalid_data, "num_hidden_layers: expected at most {}, found {}",
                kLayerCountMax, layers);
  }
  std::vector<bool> has(size_t(layers), false);
  if (const Json* types = config.find("layer_types"); types && !types->items().empty()) {
    for (size_t layer = 0; layer < std::min(has.size(), types->items().size()); ++layer) {
      const std::string_view type = types->items()[layer].as_text().value_or("");
      has[layer] = type == "attention" || type == "full_attention";
    }
    return has;
  }
  if (const Json* list = config.find("attn_layer_indices"); list && !list->items().empty()) {
    for (const Json& item : list->items()) {
      const int64_t layer = item.as_integer().value_or(-1);
      if (layer < 0 || layer >= layers) {
        return fail(ErrorCode::invalid_data,
                    "attn_layer_indices: expected layers below {}, found {}", layers,
                    item.describe());
      }
      has[size_t(layer)] = true;
    }
    return has;
  }
  CAIRN_TRY(const int64_t period, config.positive("attn_layer_period"));
  CAIRN_TRY(const int64_t offset, config.count("attn_layer_offset"));
  for (int64_t layer = 0; layer < layers; ++layer) has[size_t(layer)] = layer % period == offset;
  return has;
}

bool has_states(const Config& config) {
  Result<std::vector<bool>> layers = attention_layers(config);
  return !layers || std::find(layers->begin(), layers->end(), false) != layers->end();
}

void adapt(const Config& config, Family& family) {
  if (has_states(config)) return;
  const Json* used = config.find({"num_experts_per_tok", "num_experts_per_token"});
  const bool has_experts = used != nullptr && used->as_integer().value_or(0) > 0;
  family.architecture = has_experts ? "granitemoe" : "granite";
  family.vocabulary_multiple = 1;
}

Status add_parameters_of_hybrid(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const std::vector<bool> layers, attention_layers(config));
  CAIRN_TRY(const int64_t width, config.count("hidden_size"));
  CAIRN_TRY(const int64_t expand, config.count("mamba_expand"));
  CAIRN_TRY(const int64_t kv_heads, config.count("num_key_value_heads"));
  CAIRN_TRY(add_granite_parameters(writer));
  CAIRN_TRY(writer.add_count("ssm.conv_kernel", {"mamba_d_conv"}));
  CAIRN_TRY(writer.add_count("ssm.state_size", {"mamba_d_state"}));
  CAIRN_TRY(writer.add_count("ssm.group_count", {"mamba_n_groups"}));
  writer.set("ssm.inner_size", uint32_t(expand * width));
  CAIRN_TRY(writer.add_count("ssm.time_step_rank", {"mamba_n_heads"}));
  CAIRN_TRY(writer.add_count_if_set("rope.dimension_count", {"attn_rotary_emb"}));
  writer.set_where("attention.head_count_kv", layers, kv_heads);
  const bool rotates = config.class_name() == "BambaForCausalLM" || !has_states(config);
  writer.set("rope.scaling.finetuned", rotates);
  if (!rotates) writer.set("context_length", kContext);
  return Ok{};
}

Result<bool> add_tensor(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (plan.expert_count() == 0 && name.rest == "shared_mlp.output_linear") {
    CAIRN_TRY(plan.add_whole(name, "ffn_down", source));
    return true;
  }
  CAIRN_TRY(const int64_t groups, plan.config().count("mamba_n_groups"));
  return add_mamba2_tensor(plan, name, source, "mamba.", groups);
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "granitehybrid",
     .names = kNames,
     .parameters = add_parameters_of_hybrid,
     .tensor = add_tensor,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .interleaves_heads = true,
     .vocabulary_multiple = 8,
     .adapt = adapt,
     .digits_name = "refact"},
};

constexpr ConfigDefault kDefaults[] = {
    {"granitemoehybrid", "rms_norm_eps", 1e-6},
    {"granitemoehybrid", "mamba_expand", 2},
    {"granitemoehybrid", "attention_multiplier", 1},
    {"granitemoehybrid", "mamba_d_conv", 4},
    {"granitemoehybrid", "embedding_multiplier", 1},
    {"granitemoehybrid", "mamba_n_groups", 1},
    {"granitemoehybrid", "residual_multiplier", 1},
    {"granitemoehybrid", "mamba_d_state", 256},
    {"granitemoehybrid", "logits_scaling", 1},
    {"granitemoehybrid", "mamba_n_heads", 128},
    {"bamba", "rms_norm_eps", 1e-5},
    {"bamba", "mamba_expand", 2},
    {"bamba", "mamba_d_conv", 4},
    {"bamba", "mamba_n_groups", 1},
    {"bamba", "mamba_d_state", 256},
    {"bamba", "mamba_n_heads", 128},
};

}  // namespace granite_hybrid

extern const FamilyGroup families_granite_hybrid;
constinit const FamilyGroup families_granite_hybrid = {granite_hybrid::kFamilies,
                                                       granite_hybrid::kDefaults};

}  // namespace cairn::convert
