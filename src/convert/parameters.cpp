// A key that is set again keeps its place, so a family may write the common list and then what it
// says otherwise.
#include "convert/parameters.h"

#include <algorithm>

#include "convert/rope_factors.h"
#include "gguf/hyperparameters.h"

namespace cairn::convert {
namespace {

constexpr uint32_t kSoftmaxGate = 1, kSigmoidGate = 2;

// Whether a parameter is in the range of its name; strings, flags and lists of them have none.
struct RangeCheck {
  std::string_view key;   // As it stands in the file.
  std::string_view name;  // Without the architecture.

  Status count(int64_t found) const {
    const gguf::CountRange range = gguf::count_range(name);
    if (found >= range.per_layer_min && found <= range.max) return Ok{};
    return fail(ErrorCode::invalid_data, "{}: expected {} to {}, found {}", key,
                range.per_layer_min, range.max, found);
  }
  Status real(float found) const {
    const gguf::RealRange range = gguf::real_range(name);
    if (found >= range.min && found <= range.max) return Ok{};
    return fail(ErrorCode::invalid_data, "{}: expected {} to {}, found {}", key, range.min,
                range.max, found);
  }

  Status operator()(uint32_t value) const { return count(value); }
  Status operator()(int32_t value) const { return count(value); }
  Status operator()(float value) const { return real(value); }
  Status operator()(const std::vector<int32_t>& values) const {
    for (const int32_t value : values) CAIRN_TRY(count(value));
    return Ok{};
  }
  template <class T>
  Status operator()(const T& /*value*/) const {
    return Ok{};
  }
};

}  // namespace

Status check_parameters(const KeyValues& values, std::string_view architecture,
                        int64_t layers_in_file) {
  const std::string prefix = fmt::format("{}.", architecture);
  for (const auto& [key, value] : values.all()) {
    if (!key.starts_with(prefix)) continue;
    CAIRN_TRY(std::visit(RangeCheck{key, std::string_view(key).substr(prefix.size())}, value));
  }
  const std::string name = prefix + "block_count";
  const MetaValue* stated = values.find(name);
  const auto* layers = stated == nullptr ? nullptr : std::get_if<uint32_t>(stated);
  if (layers == nullptr || int64_t(*layers) <= layers_in_file) return Ok{};
  return fail(ErrorCode::invalid_data,
              "{}: expected at most the {} layers of the tensors, found {}", name, layers_in_file,
              *layers);
}

Status ParameterWriter::add_count(std::string_view name, Keys keys) {
  CAIRN_TRY(const int64_t count, config_.count(keys));
  set(name, uint32_t(count));
  return Ok{};
}

Status ParameterWriter::add_count_if_set(std::string_view name, Keys keys) {
  CAIRN_TRY(const std::optional<int64_t> count, config_.count_if_set(keys));
  if (count) set(name, uint32_t(*count));
  return Ok{};
}

Status ParameterWriter::add_counts_if_set(std::string_view name, Keys keys) {
  const Json* list = config_.find(keys);
  if (list == nullptr || !list->is_array()) return add_count_if_set(name, keys);
  std::vector<int32_t> counts;
  for (const Json& item : list->items()) {
    const int64_t count = item.as_integer().value_or(-1);
    if (count < 0 || count > INT32_MAX) {
      return fail(ErrorCode::invalid_data, "{}: expected counts below 2^31, found {}",
                  *keys.begin(), item.describe());
    }
    counts.push_back(int32_t(count));
  }
  if (counts.empty()) return Ok{};
  set(name, std::move(counts));
  return Ok{};
}

Status ParameterWriter::add_number(std::string_view name, Keys keys) {
  std::string_view key = *keys.begin();
  for (const std::string_view known : keys) {
    if (config_.find(known) == nullptr) continue;
    key = known;
    break;
  }
  CAIRN_TRY(const double number, config_.number(key));
  set(name, float(number));
  return Ok{};
}

Status ParameterWriter::add_number_if_set(std::string_view name, Keys keys) {
  return config_.find(keys) == nullptr ? Status(Ok{}) : add_number(name, keys);
}

Status ParameterWriter::add_multiplier(std::string_view name, std::string_view key) {
  if (config_.find(key) == nullptr) return Ok{};
  CAIRN_TRY(const double number, config_.number(key));
  if (number != 0) set(name, float(number));
  return Ok{};
}

void ParameterWriter::add_flag(std::string_view name, std::string_view key) {
  const Json* value = config_.find(key);
  set(name, value != nullptr && value->as_boolean().value_or(false));
}

void ParameterWriter::add_flag_if_set(std::string_view name, std::string_view key) {
  if (config_.find(key) != nullptr) add_flag(name, key);
}

Status ParameterWriter::add_layer_count() {
  return add_count("block_count", {"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
}

Status ParameterWriter::add_context() {
  return add_count("context_length",
                   {"max_position_embeddings", "n_ctx", "n_positions", "max_sequence_length"});
}

Status ParameterWriter::add_head_counts() {
  CAIRN_TRY(add_count("attention.head_count", {"num_attention_heads"}));
  return add_count("attention.head_count_kv", {"num_key_value_heads"});
}

Result<uint32_t> rope_count(const Config& config, std::string_view key) {
  const Json* value = config.rope().find_set(key);
  const auto count = value == nullptr ? std::nullopt : value->as_integer();
  if (count && *count >= 0 && *count <= int64_t(UINT32_MAX)) return uint32_t(*count);
  return fail(ErrorCode::invalid_data, "rotary parameters: {}: expected a count, found {}", key,
              value == nullptr ? "none" : value->describe());
}

Status ParameterWriter::add_rope_scaling() {
  const Json& rope = config_.rope();
  const std::string_view type = rope.text_at("rope_type").value_or("default");
  if (type == "linear" || type == "yarn") {
    set("rope.scaling.type", std::string(type));
    CAIRN_TRY(const double factor, rope_number(config_, "factor"));
    set("rope.scaling.factor", float(factor));
  }
  if (type == "yarn") {
    CAIRN_TRY(const uint32_t original, rope_count(config_, "original_max_position_embeddings"));
    set("rope.scaling.original_context_length", original);
    const auto add_if_set = [&](std::string_view name, Keys keys) -> Status {
      for (const std::string_view key : keys) {
        if (rope.find_set(key) == nullptr) continue;
        CAIRN_TRY(const double number, rope_number(config_, key));
        set(name, float(number));
        break;
      }
      return Ok{};
    };
    CAIRN_TRY(add_if_set("rope.scaling.yarn_ext_factor", {"extrapolation_factor"}));
    CAIRN_TRY(add_if_set("rope.scaling.yarn_attn_factor", {"attention_factor", "attn_factor"}));
    CAIRN_TRY(add_if_set("rope.scaling.yarn_beta_fast", {"beta_fast"}));
    CAIRN_TRY(add_if_set("rope.scaling.yarn_beta_slow", {"beta_slow"}));
  } else if (type == "longrope" || type == "su") {
    set("rope.scaling.type", std::string("longrope"));
  } else if (type != "default" && type != "linear" && type != "llama3" && type != "mrope" &&
             type != "dynamic" && type != "xdrope" && type != "proportional") {
    return fail(ErrorCode::unsupported,
                "rotary scaling: expected linear, yarn, longrope or llama3, found {}", type);
  }
  return Ok{};
}

// Pairs that turn with time, height and width, and those left over.
Status ParameterWriter::add_rope_sections() {
  const Json* stated = config_.rope().find_set("mrope_section");
  if (stated == nullptr) return Ok{};
  std::vector<int32_t> sections;
  for (const Json& item : stated->items()) {
    const int64_t count = item.as_integer().value_or(-1);
    if (count < 0 || count > INT32_MAX || sections.size() == 4) {
      return fail(ErrorCode::invalid_data, "mrope_section: expected up to 4 counts, found {}",
                  stated->describe());
    }
    sections.push_back(int32_t(count));
  }
  sections.resize(4);
  set("rope.dimension_sections", std::move(sections));
  return Ok{};
}

Status ParameterWriter::add_experts() {
  CAIRN_TRY(
      add_count_if_set("expert_count", {"num_local_experts", "num_experts", "n_routed_experts"}));
  CAIRN_TRY(add_count_if_set("expert_used_count",
                             {"num_experts_per_tok", "num_experts_per_token", "top_k_experts"}));
  CAIRN_TRY(add_count_if_set("expert_group_count", {"n_group"}));
  CAIRN_TRY(add_count_if_set("expert_group_used_count", {"topk_group"}));
  const Json* gate = config_.find({"score_function", "scoring_func", "score_func"});
  if (gate == nullptr) return Ok{};
  const std::string_view name = gate->as_text().value_or("");
  if (name != "softmax" && name != "sigmoid") {
    return fail(ErrorCode::unsupported, "experts' scores: expected softmax or sigmoid, found {}",
                gate->describe());
  }
  set("expert_gating_func", name == "softmax" ? kSoftmaxGate : kSigmoidGate);
  return Ok{};
}

Status ParameterWriter::add_common(HeadDim head_dim) {
  CAIRN_TRY(add_layer_count());
  CAIRN_TRY(add_context());
  CAIRN_TRY(add_count("embedding_length", {"hidden_size", "n_embd"}));
  CAIRN_TRY(add_counts_if_set("feed_forward_length", {"intermediate_size", "n_inner"}));
  CAIRN_TRY(add_count("attention.head_count", {"num_attention_heads", "n_head"}));
  CAIRN_TRY(add_count_if_set("attention.head_count_kv", {"num_key_value_heads"}));
  // Encoders made of decoders: tokens see those behind them too.
  const Json* is_causal = config_.find("is_causal");
  if (is_causal != nullptr && is_causal->as_boolean() == false) set("attention.causal", false);
  CAIRN_TRY(add_rope_scaling());
  CAIRN_TRY(add_rope_sections());
  if (config_.rope().find_set("rope_theta") != nullptr) {
    CAIRN_TRY(const double base, rope_number(config_, "rope_theta"));
    set("rope.freq_base", float(base));
  }
  if (config_.sliding_rope_base()) set("rope.freq_base_swa", float(*config_.sliding_rope_base()));
  CAIRN_TRY(add_number_if_set("attention.layer_norm_rms_epsilon", {"rms_norm_eps", "norm_eps"}));
  CAIRN_TRY(add_number_if_set("attention.layer_norm_epsilon",
                              {"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"}));
  CAIRN_TRY(add_experts());
  if (head_dim == HeadDim::added) {
    CAIRN_TRY(add_count_if_set("attention.key_length", {"head_dim"}));
    CAIRN_TRY(add_count_if_set("attention.value_length", {"head_dim"}));
  }
  add_file_type();
  return Ok{};
}

Result<std::vector<bool>> ParameterWriter::sliding_layers() const {
  return layers_of_type({"sliding_attention"});
}

Result<std::vector<bool>> ParameterWriter::layers_of_type(Keys names) const {
  CAIRN_TRY(const int64_t layer_count, config_.count("num_hidden_layers"));
  std::vector<bool> pattern;
  if (const Json* types = config_.find("layer_types")) {
    for (const Json& type : types->items()) {
      const std::string_view text = type.as_text().value_or("");
      pattern.push_back(std::find(names.begin(), names.end(), text) != names.end());
    }
  }
  if (int64_t(pattern.size()) == layer_count) return pattern;
  return fail(ErrorCode::invalid_data, "layer_types: expected {} layers, found {}", layer_count,
              pattern.size());
}

void ParameterWriter::set_where(std::string_view name, const std::vector<bool>& layers,
                                int64_t count) {
  std::vector<int32_t> counts;
  for (const bool has : layers) counts.push_back(has ? int32_t(count) : 0);
  set(name, std::move(counts));
}

Status add_parameters(const Config& config, const Family& family, uint32_t file_type,
                      int64_t layers_in_file, KeyValues& out) {
  ParameterWriter writer(config, family, file_type, layers_in_file, out);
  return family.parameters == nullptr ? writer.add_common() : family.parameters(writer);
}

}  // namespace cairn::convert
