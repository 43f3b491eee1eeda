// Falcon-H1: attention and Mamba 2 side by side. Its many multipliers are put into the weights.
#include "convert/rope_factors.h"
#include "convert/shared_families.h"
#include "convert/ssm_tensors.h"

namespace cairn::convert {
namespace falcon_h1 {

constexpr std::string_view kClasses[] = {"FalconH1ForCausalLM"};

constexpr NameRow kNames[] = {
    {"model.final_layernorm", "output_norm"},
    {"pre_ff_layernorm", "ffn_norm", {}, Edit::none, true},
    {"feed_forward.gate_proj", "ffn_gate"},
    {"feed_forward.up_proj", "ffn_up"},
    {"feed_forward.down_proj", "ffn_down"},
    {"mamba.in_proj", "ssm_in"},
    {"mamba.conv1d", "ssm_conv1d", {}, Edit::squeeze},
    {"mamba.out_proj", "ssm_out"},
};

Status add_falcon(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const int64_t inner, config.count("mamba_d_ssm"));
  CAIRN_TRY(const int64_t head, config.positive("mamba_d_head"));
  if (inner % head != 0) {
    return fail(ErrorCode::invalid_data, "mamba_d_ssm: expected a multiple of {}, found {}", head,
                inner);
  }
  CAIRN_TRY(writer.add_count("context_length", {"max_position_embeddings"}));
  CAIRN_TRY(writer.add_count("embedding_length", {"hidden_size"}));
  CAIRN_TRY(writer.add_count("feed_forward_length", {"intermediate_size"}));
  CAIRN_TRY(writer.add_count("attention.head_count", {"num_attention_heads"}));
  CAIRN_TRY(writer.add_count("block_count", {"num_hidden_layers"}));
  CAIRN_TRY(writer.add_count("ssm.conv_kernel", {"mamba_d_conv"}));
  writer.set("ssm.inner_size", uint32_t(inner));
  CAIRN_TRY(writer.add_count("ssm.state_size", {"mamba_d_state"}));
  writer.set("ssm.time_step_rank", uint32_t(inner / head));
  CAIRN_TRY(writer.add_count("ssm.group_count", {"mamba_n_groups"}));
  CAIRN_TRY(writer.add_number("attention.layer_norm_rms_epsilon", {"rms_norm_eps"}));
  writer.add_file_type();
  CAIRN_TRY(writer.add_count("vocab_size", {"vocab_size"}));
  CAIRN_TRY(writer.add_count("attention.head_count_kv", {"num_key_value_heads"}));
  CAIRN_TRY(writer.add_count("attention.key_length", {"head_dim"}));
  CAIRN_TRY(writer.add_count("attention.value_length", {"head_dim"}));
  CAIRN_TRY(const double base, rope_number(config, "rope_theta"));
  writer.set("rope.freq_base", float(base));
  return Ok{};
}

// One of a list of multipliers. Errors: invalid_data.
Result<float> number_of(const Config& config, std::string_view key, size_t index) {
  const Json* list = config.find(key);
  if (list == nullptr || list->items().size() <= index || !list->items()[index].as_real()) {
    return fail(ErrorCode::invalid_data, "{}: expected {} numbers or more, found {}", key,
                index + 1, list == nullptr ? "none" : list->describe());
  }
  return float(*list->items()[index].as_real());
}

// The rows of the gate, the input, B, C and the steps have a multiplier each.
Status add_in_proj(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  const Config& config = plan.config();
  CAIRN_TRY(const double whole, config.number("ssm_in_multiplier"));
  CAIRN_TRY(const int64_t inner, config.count("mamba_d_ssm"));
  CAIRN_TRY(const int64_t groups, config.count("mamba_n_groups"));
  CAIRN_TRY(const int64_t state, config.count("mamba_d_state"));
  if (source.shape.size() != 2 || source.shape[0] < 2 * (inner + groups * state)) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected {} rows or more, found shape {}",
                source.name, 2 * (inner + groups * state), shape_text(source));
  }
  const int64_t width = source.shape[1];
  const int64_t ends[] = {inner, 2 * inner, 2 * inner + groups * state,
                          2 * inner + 2 * groups * state, source.shape[0]};
  PlannedTensor tensor =
      plan.start(TensorPlan::target_name(name, "ssm_in"), {width, source.shape[0]});
  int64_t begin = 0;
  for (size_t part = 0; part < std::size(ends); ++part) {
    CAIRN_TRY(const float factor, number_of(config, "ssm_multipliers", part));
    tensor.runs.push_back({.source = &source,
                           .first = begin * width,
                           .row_count = ends[part] - begin,
                           .row_stride = width,
                           .factor = float(whole),
                           .second_factor = factor});
    begin = ends[part];
  }
  return plan.add(std::move(tensor));
}

struct Multiplied {
  std::string_view rest, target, key;
  int index = -1;  // In a list.
  std::string_view second_key = {};
};

constexpr Multiplied kMultiplied[] = {
    {"feed_forward.down_proj", "ffn_down", "mlp_multipliers", 1},
    {"feed_forward.gate_proj", "ffn_gate", "mlp_multipliers", 0},
    {"self_attn.k_proj", "attn_k", "key_multiplier", -1, "attention_in_multiplier"},
    {"self_attn.q_proj", "attn_q", "attention_in_multiplier"},
    {"self_attn.v_proj", "attn_v", "attention_in_multiplier"},
    {"self_attn.o_proj", "attn_output", "attention_out_multiplier"},
    {"mamba.out_proj", "ssm_out", "ssm_out_multiplier"},
    {"lm_head", "output", "lm_head_multiplier"},
    {"model.embed_tokens", "token_embd", "embedding_multiplier"},
};

Status add_multiplied(TensorPlan& plan, const TensorName& name, const Multiplied& row,
                      const SourceTensor& source) {
  const Config& config = plan.config();
  float factor = 1, second_factor = 1;
  if (row.index >= 0) {
    CAIRN_TRY(factor, number_of(config, row.key, size_t(row.index)));
  } else {
    CAIRN_TRY(const double number, config.number(row.key));
    factor = float(number);
  }
  if (!row.second_key.empty()) {
    CAIRN_TRY(const double number, config.number(row.second_key));
    second_factor = float(number);
  }
  PlannedTensor tensor = plan.start(TensorPlan::target_name(name, row.target),
                                    {source.shape.rbegin(), source.shape.rend()});
  tensor.runs.push_back({.source = &source,
                         .first = 0,
                         .row_count = tensor.row_count(),
                         .row_stride = tensor.row_numbers,
                         .factor = factor,
                         .second_factor = second_factor});
  return plan.add(std::move(tensor));
}

Result<bool> add_tensor(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (name.rest == "mamba.in_proj" && name.ending == ".weight") {
    CAIRN_TRY(add_in_proj(plan, name, source));
    return true;
  }
  for (const Multiplied& row : kMultiplied) {
    if (name.rest != row.rest) continue;
    CAIRN_TRY(add_multiplied(plan, name, row, source));
    return true;
  }
  CAIRN_TRY(const int64_t groups, plan.config().count("mamba_n_groups"));
  return add_mamba2_tensor(plan, name, source, "mamba.", groups);
}

constexpr PretokenizerAlias kPretokenizers[] = {{"llama-bpe", "falcon-h1"}, {"dbrx", "falcon-h1"}};

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "falcon-h1",
     .names = kNames,
     .parameters = add_falcon,
     .tensor = add_tensor,
     .pretokenizers = kPretokenizers},
};

constexpr ConfigDefault kDefaults[] = {
    {"falcon_h1", "rms_norm_eps", 1e-5},         {"falcon_h1", "mamba_d_conv", 4},
    {"falcon_h1", "mamba_n_groups", 1},          {"falcon_h1", "lm_head_multiplier", 1},
    {"falcon_h1", "embedding_multiplier", 1},    {"falcon_h1", "key_multiplier", 1},
    {"falcon_h1", "attention_in_multiplier", 1}, {"falcon_h1", "attention_out_multiplier", 1},
    {"falcon_h1", "ssm_in_multiplier", 1},       {"falcon_h1", "ssm_out_multiplier", 1},
};

}  // namespace falcon_h1

extern const FamilyGroup families_falcon_h1;
constinit const FamilyGroup families_falcon_h1 = {falcon_h1::kFamilies, falcon_h1::kDefaults};

}  // namespace cairn::convert
