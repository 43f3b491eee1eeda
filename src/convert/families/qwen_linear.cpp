// Qwen 3 Next and Qwen 3.5: linear attention in most layers. Next keeps queries, keys, values and
// gates of a key head together, GGUF all queries first; in 3.5 the value heads of one key head
// stand together, in GGUF the first of each, then the second of each. Layers behind the last guess
// further tokens.
#include <algorithm>

#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace qwen_linear {

constexpr std::string_view kNextClasses[] = {"Qwen3NextForCausalLM"};
constexpr std::string_view kDenseClasses[] = {"Qwen3_5ForConditionalGeneration",
                                              "Qwen3_5ForCausalLM"};
constexpr std::string_view kMoeClasses[] = {"Qwen3_5MoeForConditionalGeneration",
                                            "Qwen3_5MoeForCausalLM"};

constexpr NameRow kNames[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"linear_attn.in_proj_ba", "ssm_ba"},
    {"linear_attn.in_proj_qkv", "attn_qkv"},
    {"linear_attn.in_proj_z", "attn_gate"},
    {"linear_attn.in_proj_a", "ssm_alpha"},
    {"linear_attn.in_proj_b", "ssm_beta"},
    {"linear_attn.conv1d", "ssm_conv1d", {}, Edit::squeeze},
    {"linear_attn.dt_bias", "ssm_dt.bias", {}, Edit::none, true},
    {"linear_attn.A_log", "ssm_a", {}, Edit::negative_exp, true},
    {"linear_attn.norm", "ssm_norm", {}, Edit::squeeze},  // Not less one, as the other norms are.
    {"linear_attn.out_proj", "ssm_out"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.experts.*.down_proj", "ffn_down_exps"},
    {"mlp.experts.*.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.*.up_proj", "ffn_up_exps"},
    {"mlp.experts.gate_up_proj", "ffn_gate_exps", "ffn_up_exps"},
    {"mlp.experts.down_proj", "ffn_down_exps"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"eh_proj", "nextn.eh_proj"},
    {"enorm", "nextn.enorm", {}, Edit::add_one},
    {"hnorm", "nextn.hnorm", {}, Edit::add_one},
    {"shared_head.norm", "nextn.shared_head_norm", {}, Edit::add_one},
};

struct Heads {
  int64_t key_count, value_count, key_dim, value_dim;

  int64_t values_per_key() const { return value_count / key_count; }
};

Result<Heads> read_heads(const Config& config) {
  Heads heads{};
  CAIRN_TRY(heads.key_count, config.positive("linear_num_key_heads"));
  CAIRN_TRY(heads.value_count, config.positive("linear_num_value_heads"));
  CAIRN_TRY(heads.key_dim, config.positive("linear_key_head_dim"));
  CAIRN_TRY(heads.value_dim, config.positive("linear_value_head_dim"));
  constexpr int64_t kMax = 1 << 16;
  const bool is_small =
      std::max({heads.key_count, heads.value_count, heads.key_dim, heads.value_dim}) <= kMax;
  if (is_small && heads.value_count % heads.key_count == 0) return heads;
  return fail(ErrorCode::invalid_data,
              "linear_num_value_heads: expected a multiple of {} and all below {}, found {}",
              heads.key_count, kMax, heads.value_count);
}

Status add_linear(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const Heads heads, read_heads(config));
  CAIRN_TRY(const int64_t layers, config.count("num_hidden_layers"));
  CAIRN_TRY(const double part, rope_number(config, "partial_rotary_factor"));
  CAIRN_TRY(const std::optional<int64_t> stated, config.count_if_set({"head_dim"}));
  CAIRN_TRY(const int64_t width, config.count("hidden_size"));
  CAIRN_TRY(const int64_t head_count, config.positive("num_attention_heads"));
  CAIRN_TRY(add_qwen_moe_parameters(writer));
  const int64_t further = std::max<int64_t>(writer.layers_in_file() - layers, 0);
  writer.set("block_count", uint32_t(layers + further));
  if (further > 0) writer.set("nextn_predict_layers", uint32_t(further));
  CAIRN_TRY(writer.add_count("ssm.conv_kernel", {"linear_conv_kernel_dim"}));
  writer.set("ssm.state_size", uint32_t(heads.key_dim));
  writer.set("ssm.group_count", uint32_t(heads.key_count));
  writer.set("ssm.time_step_rank", uint32_t(heads.value_count));
  writer.set("ssm.inner_size", uint32_t(heads.value_dim * heads.value_count));
  if (config.find("layer_types") != nullptr) {
    CAIRN_TRY(std::vector<bool> recurrent, writer.layers_of_type({"linear_attention"}));
    recurrent.resize(size_t(layers + further));
    writer.set("attention.recurrent_layers", std::move(recurrent));
  }
  CAIRN_TRY(writer.add_count("full_attention_interval", {"full_attention_interval"}));
  const int64_t head = stated.value_or(width / head_count);
  writer.set("rope.dimension_count", uint32_t(double(head) * std::clamp(part, 0.0, 1.0)));
  return Ok{};
}

// Pairs that turn with time, height and width, where a file does not say.
Status add_sections(ParameterWriter& writer) {
  CAIRN_TRY(add_linear(writer));
  if (writer.config().rope().find_set("mrope_section") == nullptr) {
    writer.set("rope.dimension_sections", std::vector<int32_t>{11, 11, 10, 0});
  }
  return Ok{};
}

// "mtp.layers.0.x" is x of the first layer behind the others, and so are the names beside it.
Result<bool> add_further(TensorPlan& plan, TensorName name, const SourceTensor& source) {
  constexpr std::string_view kLayers = "mtp.layers.";
  constexpr std::pair<std::string_view, std::string_view> kBeside[] = {
      {"mtp.fc", "eh_proj"},
      {"mtp.pre_fc_norm_embedding", "enorm"},
      {"mtp.pre_fc_norm_hidden", "hnorm"},
      {"mtp.norm", "shared_head.norm"}};
  name.layer = plan.layer_count();
  for (const auto& [from, to] : kBeside) {
    if (name.rest == from) name.rest = to;
  }
  if (name.rest.starts_with(kLayers)) {
    const size_t dot = name.rest.find('.', kLayers.size());
    const size_t digits = dot == name.rest.npos ? 0 : dot - kLayers.size();
    if (digits != 1 || name.rest[kLayers.size()] < '0' || name.rest[kLayers.size()] > '9') {
      return false;
    }
    *name.layer += name.rest[kLayers.size()] - '0';
    name.rest.erase(0, dot + 1);
  }
  const NameRow* row = find_name(plan.family(), name.rest);
  if (row == nullptr) return false;
  CAIRN_TRY(plan.add_row(name, *row, source));
  return true;
}

// Of each key head's rows the parts [begin, begin + count).
std::vector<TensorPlan::Rows> head_rows(const Heads& heads, int64_t rows_per_head, int64_t begin,
                                        int64_t count) {
  std::vector<TensorPlan::Rows> rows;
  for (int64_t head = 0; head < heads.key_count; ++head) {
    rows.push_back({head * rows_per_head + begin, count});
  }
  return rows;
}

Result<bool> add_next(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (name.rest.starts_with("mtp.")) return add_further(plan, name, source);
  if (name.rest != "linear_attn.in_proj_qkvz") return false;
  CAIRN_TRY(const Heads heads, read_heads(plan.config()));
  const int64_t key = heads.key_dim, value = heads.values_per_key() * heads.value_dim;
  const int64_t rows_per_head = 2 * key + 2 * value;
  std::vector<TensorPlan::Rows> all;
  for (const auto& [begin, count] :
       {std::pair(int64_t(0), key), std::pair(key, key), std::pair(2 * key, value)}) {
    for (const TensorPlan::Rows& rows : head_rows(heads, rows_per_head, begin, count)) {
      all.push_back(rows);
    }
  }
  CAIRN_TRY(plan.add_rows(name, "attn_qkv", source, all));
  CAIRN_TRY(plan.add_rows(name, "attn_gate", source,
                          head_rows(heads, rows_per_head, 2 * key + value, value)));
  return true;
}

// Rows of value heads in their new order, `height` to a head, behind `first` others.
std::vector<TensorPlan::Rows> value_rows(const Heads& heads, int64_t height, int64_t first) {
  std::vector<TensorPlan::Rows> rows;
  if (first > 0) rows.push_back({0, first});
  for (int64_t value = 0; value < heads.values_per_key(); ++value) {
    for (int64_t key = 0; key < heads.key_count; ++key) {
      rows.push_back({first + (key * heads.values_per_key() + value) * height, height});
    }
  }
  return rows;
}

// The columns of value heads in their new order: a run of each row for the n-th of all key heads.
Status add_columns(TensorPlan& plan, const TensorName& name, const Heads& heads,
                   const SourceTensor& source) {
  const int64_t width = heads.value_count * heads.value_dim;
  if (source.shape.size() != 2 || source.shape[1] != width) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected rows of {}, found shape {}",
                source.name, width, shape_text(source));
  }
  PlannedTensor tensor =
      plan.start(TensorPlan::target_name(name, "ssm_out"), {width, source.shape[0]});
  tensor.row_numbers = heads.value_dim;
  for (int64_t row = 0; row < source.shape[0]; ++row) {
    for (int64_t value = 0; value < heads.values_per_key(); ++value) {
      tensor.runs.push_back({.source = &source,
                             .first = row * width + value * heads.value_dim,
                             .row_count = heads.key_count,
                             .row_stride = heads.values_per_key() * heads.value_dim});
    }
  }
  return plan.add(std::move(tensor));
}

// One number for each value head.
Status add_numbers(TensorPlan& plan, const TensorName& name, std::string_view target, Edit edit,
                   const Heads& heads, const SourceTensor& source) {
  PlannedTensor tensor =
      plan.start(fmt::format("blk.{}.{}", name.layer.value_or(0), target), {heads.value_count});
  tensor.row_numbers = 1;
  tensor.edit = edit;
  for (const TensorPlan::Rows& rows : value_rows(heads, 1, 0)) {
    tensor.runs.push_back({&source, rows.first, 1, 1});
  }
  return plan.add(std::move(tensor));
}

Result<bool> add_tiled(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (name.rest.starts_with("mtp.")) return add_further(plan, name, source);
  if (!name.rest.starts_with("linear_attn.")) return false;
  CAIRN_TRY(const Heads heads, read_heads(plan.config()));
  if (heads.key_count == heads.value_count) return false;
  const std::string_view part = std::string_view(name.rest).substr(name.rest.find('.') + 1);
  const int64_t others = 2 * heads.key_count * heads.key_dim;
  const auto add = [&](std::string_view target, int64_t height, int64_t first) -> Result<bool> {
    CAIRN_TRY(plan.add_rows(name, target, source, value_rows(heads, height, first)));
    return true;
  };
  if (part == "in_proj_qkv") return add("attn_qkv", heads.value_dim, others);
  if (part == "conv1d") return add("ssm_conv1d", heads.value_dim, others);
  if (part == "in_proj_z") return add("attn_gate", heads.value_dim, 0);
  if (part == "in_proj_a") return add("ssm_alpha", 1, 0);
  if (part == "in_proj_b") return add("ssm_beta", 1, 0);
  if (part == "A_log") {
    CAIRN_TRY(add_numbers(plan, name, "ssm_a", Edit::negative_exp, heads, source));
  } else if (part == "dt_bias") {
    CAIRN_TRY(add_numbers(plan, name, "ssm_dt.bias", Edit::none, heads, source));
  } else if (part == "out_proj") {
    CAIRN_TRY(add_columns(plan, name, heads, source));
  } else {
    return false;
  }
  return true;
}

constexpr Family kFamilies[] = {
    {.classes = kNextClasses,
     .architecture = "qwen3next",
     .names = kNames,
     .parameters = add_linear,
     .tensor = add_next,
     .norms_less_one = true},
    {.classes = kDenseClasses,
     .architecture = "qwen35",
     .names = kNames,
     .parameters = add_sections,
     .tensor = add_tiled,
     .norms_less_one = true},
    {.classes = kMoeClasses,
     .architecture = "qwen35moe",
     .names = kNames,
     .parameters = add_sections,
     .tensor = add_tiled,
     .norms_less_one = true},
};

constexpr ConfigDefault kDefaults[] = {
    {"qwen3_next", "rms_norm_eps", 1e-6},
    {"qwen3_next", "partial_rotary_factor", 0.25},
    {"qwen3_next", "full_attention_interval", 4},
    {"qwen3_next", "linear_conv_kernel_dim", 4},
    {"qwen3_5_text", "rms_norm_eps", 1e-6},
    {"qwen3_5_text", "partial_rotary_factor", 0.25},
    {"qwen3_5_text", "full_attention_interval", 4},
    {"qwen3_5_text", "linear_conv_kernel_dim", 4},
    {"qwen3_5_moe_text", "rms_norm_eps", 1e-6},
    {"qwen3_5_moe_text", "partial_rotary_factor", 0.25},
    {"qwen3_5_moe_text", "full_attention_interval", 4},
    {"qwen3_5_moe_text", "linear_conv_kernel_dim", 4},
};

}  // namespace qwen_linear

extern const FamilyGroup families_qwen_linear;
constinit const FamilyGroup families_qwen_linear = {qwen_linear::kFamilies, qwen_linear::kDefaults};

}  // namespace cairn::convert
