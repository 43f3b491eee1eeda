// The common parameters, and for each kind of family what it adds, leaves out or names otherwise.
// The order of the keys is the usual converter's.
#include "convert/parameters.h"

#include <string>
#include <utility>

#include "convert/rope_factors.h"

namespace cairn::convert {
namespace {

constexpr int64_t kLayerCountMax = 1 << 16;

using Keys = std::initializer_list<std::string_view>;

class Writer {
 public:
  Writer(const Config& config, const Family& family, uint32_t file_type, KeyValues& out)
      : config_(config), architecture_(family.architecture), file_type_(file_type), out_(out) {}

  Status add(Parameters parameters);

 private:
  void set(std::string_view name, MetaValue value) {
    out_.set(architecture_ + "." + std::string(name), std::move(value));
  }
  Status add_count(std::string_view name, Keys keys) {
    CAIRN_TRY(const int64_t count, config_.count(keys));
    set(name, uint32_t(count));
    return Ok{};
  }
  Status add_count_if_set(std::string_view name, Keys keys) {
    CAIRN_TRY(const std::optional<int64_t> count, config_.count_if_set(keys));
    if (count) set(name, uint32_t(*count));
    return Ok{};
  }
  Status add_context() {
    return add_count("context_length",
                     {"max_position_embeddings", "n_positions", "max_sequence_length"});
  }
  Status add_number(std::string_view name, std::string_view key) {
    CAIRN_TRY(const double number, config_.number(key));
    set(name, float(number));
    return Ok{};
  }
  Status add_number_if_set(std::string_view name, Keys keys) {
    for (const std::string_view key : keys) {
      if (config_.find(key) != nullptr) return add_number(name, key);
    }
    return Ok{};
  }
  // A multiplier of 0 stands for none.
  Status add_multiplier(std::string_view name, std::string_view key) {
    if (config_.find(key) == nullptr) return Ok{};
    CAIRN_TRY(const double number, config_.number(key));
    if (number != 0) set(name, float(number));
    return Ok{};
  }
  void add_file_type() { out_.set("general.file_type", file_type_); }

  Status add_rope_scaling();
  Status add_experts();
  Status add_common();
  Status add_llama();
  Status add_granite();
  Status add_qwen_moe();
  // Gemma and Gemma 2 have a list of their own, without rotary bases.
  Status add_gemma();
  Status add_gemma2();
  Status add_gemma3();
  Status add_phi2();
  Status add_phi3();
  Status add_olmo2();
  Status add_stablelm();

  const Config& config_;
  std::string architecture_;
  uint32_t file_type_;
  KeyValues& out_;
  bool has_head_dim_ = true;
};

// A rotary parameter that counts something.
Result<uint32_t> rope_count(const Config& config, std::string_view key) {
  const Json* value = config.rope().find_set(key);
  const auto count = value == nullptr ? std::nullopt : value->as_integer();
  if (count && *count >= 0 && *count <= int64_t(UINT32_MAX)) return uint32_t(*count);
  return fail(ErrorCode::invalid_data, "rotary parameters: {}: expected a count, found {}", key,
              value == nullptr ? "none" : value->describe());
}

Status Writer::add_rope_scaling() {
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
  } else if (type != "default" && type != "linear" && type != "llama3") {
    return fail(ErrorCode::unsupported,
                "rotary scaling: expected linear, yarn, longrope or llama3, found {}", type);
  }
  return Ok{};
}

Status Writer::add_experts() {
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
  set("expert_gating_func", uint32_t(name == "softmax" ? 1 : 2));
  return Ok{};
}

Status Writer::add_common() {
  CAIRN_TRY(add_count("block_count", {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}));
  CAIRN_TRY(add_context());
  CAIRN_TRY(add_count("embedding_length", {"hidden_size", "n_embd"}));
  CAIRN_TRY(add_count_if_set("feed_forward_length", {"intermediate_size", "n_inner"}));
  CAIRN_TRY(add_count("attention.head_count", {"num_attention_heads", "n_head"}));
  CAIRN_TRY(add_count_if_set("attention.head_count_kv", {"num_key_value_heads"}));
  CAIRN_TRY(add_rope_scaling());
  CAIRN_TRY(const double base, rope_number(config_, "rope_theta"));
  set("rope.freq_base", float(base));
  if (config_.sliding_rope_base()) set("rope.freq_base_swa", float(*config_.sliding_rope_base()));
  CAIRN_TRY(add_number_if_set("attention.layer_norm_rms_epsilon", {"rms_norm_eps", "norm_eps"}));
  CAIRN_TRY(add_number_if_set("attention.layer_norm_epsilon",
                              {"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"}));
  CAIRN_TRY(add_experts());
  if (has_head_dim_) {
    CAIRN_TRY(add_count_if_set("attention.key_length", {"head_dim"}));
    CAIRN_TRY(add_count_if_set("attention.value_length", {"head_dim"}));
  }
  add_file_type();
  return Ok{};
}

Status Writer::add_llama() {
  CAIRN_TRY(add_common());
  CAIRN_TRY(add_count("vocab_size", {"vocab_size"}));
  CAIRN_TRY(const int64_t heads, config_.positive("num_attention_heads"));
  CAIRN_TRY(const int64_t width, config_.count("hidden_size"));
  CAIRN_TRY(const std::optional<int64_t> stated, config_.count_if_set({"head_dim"}));
  set("rope.dimension_count", uint32_t(has_head_dim_ && stated ? *stated : width / heads));
  return Ok{};
}

Status Writer::add_granite() {
  has_head_dim_ = false;
  CAIRN_TRY(add_llama());
  CAIRN_TRY(add_multiplier("attention.scale", "attention_multiplier"));
  CAIRN_TRY(add_multiplier("embedding_scale", "embedding_multiplier"));
  CAIRN_TRY(add_multiplier("residual_scale", "residual_multiplier"));
  CAIRN_TRY(add_multiplier("logit_scale", "logits_scaling"));
  return add_count_if_set("expert_shared_feed_forward_length", {"shared_intermediate_size"});
}

Status Writer::add_qwen_moe() {
  CAIRN_TRY(add_common());
  CAIRN_TRY(add_count_if_set("expert_feed_forward_length", {"moe_intermediate_size"}));
  return add_count_if_set("expert_shared_feed_forward_length", {"shared_expert_intermediate_size"});
}

Status Writer::add_gemma() {
  CAIRN_TRY(add_context());
  CAIRN_TRY(add_count("embedding_length", {"hidden_size"}));
  CAIRN_TRY(add_count("block_count", {"num_hidden_layers"}));
  CAIRN_TRY(add_count("feed_forward_length", {"intermediate_size"}));
  CAIRN_TRY(add_count("attention.head_count", {"num_attention_heads"}));
  CAIRN_TRY(add_count("attention.head_count_kv", {"num_key_value_heads"}));
  CAIRN_TRY(add_number("attention.layer_norm_rms_epsilon", "rms_norm_eps"));
  CAIRN_TRY(add_count("attention.key_length", {"head_dim"}));
  CAIRN_TRY(add_count("attention.value_length", {"head_dim"}));
  add_file_type();
  return Ok{};
}

Status Writer::add_gemma2() {
  CAIRN_TRY(add_gemma());
  CAIRN_TRY(add_number("attn_logit_softcapping", "attn_logit_softcapping"));
  CAIRN_TRY(add_number("final_logit_softcapping", "final_logit_softcapping"));
  return add_count("attention.sliding_window", {"sliding_window"});
}

Status Writer::add_gemma3() {
  CAIRN_TRY(add_common());
  if (config_.find("attn_logit_softcapping") != nullptr) {
    return fail(ErrorCode::unsupported, "attn_logit_softcapping: expected none, found one");
  }
  CAIRN_TRY(add_multiplier("final_logit_softcapping", "final_logit_softcapping"));
  const Json* pattern = config_.find("sliding_window_pattern");
  if (pattern != nullptr && pattern->as_integer() == 1) return Ok{};
  return add_count("attention.sliding_window", {"sliding_window"});
}

Status Writer::add_phi2() {
  CAIRN_TRY(const int64_t width, config_.count("hidden_size"));
  CAIRN_TRY(const int64_t dims, rotated_dims(config_));
  CAIRN_TRY(add_context());
  set("embedding_length", uint32_t(width));
  set("feed_forward_length", uint32_t(4 * width));
  CAIRN_TRY(add_count("block_count", {"num_hidden_layers"}));
  CAIRN_TRY(add_count("attention.head_count", {"num_attention_heads"}));
  CAIRN_TRY(add_count("attention.head_count_kv", {"num_attention_heads"}));
  CAIRN_TRY(add_number("attention.layer_norm_epsilon", "layer_norm_eps"));
  set("rope.dimension_count", uint32_t(dims));
  add_file_type();
  out_.set("tokenizer.ggml.add_bos_token", false);
  return Ok{};
}

Status Writer::add_phi3() {
  CAIRN_TRY(const uint32_t original, rope_count(config_, "original_max_position_embeddings"));
  CAIRN_TRY(const int64_t dims, rotated_dims(config_));
  CAIRN_TRY(const double base, rope_number(config_, "rope_theta"));
  CAIRN_TRY(add_context());
  set("rope.scaling.original_context_length", original);
  CAIRN_TRY(add_count("embedding_length", {"hidden_size"}));
  CAIRN_TRY(add_count("feed_forward_length", {"intermediate_size"}));
  CAIRN_TRY(add_count("block_count", {"num_hidden_layers"}));
  CAIRN_TRY(add_count("attention.head_count", {"num_attention_heads"}));
  CAIRN_TRY(add_count("attention.head_count_kv", {"num_key_value_heads"}));
  CAIRN_TRY(add_number("attention.layer_norm_rms_epsilon", "rms_norm_eps"));
  set("rope.dimension_count", uint32_t(dims));
  set("rope.freq_base", float(base));
  add_file_type();
  // 0 says that there is none; files without the key are read as Phi 3's first.
  CAIRN_TRY(const std::optional<int64_t> window, config_.count_if_set({"sliding_window"}));
  set("attention.sliding_window", uint32_t(window.value_or(0)));
  return Ok{};
}

Status Writer::add_olmo2() {
  CAIRN_TRY(add_common());
  CAIRN_TRY(const std::optional<int64_t> window, config_.count_if_set({"sliding_window"}));
  if (!window) return Ok{};
  set("attention.sliding_window", uint32_t(*window));
  CAIRN_TRY(const int64_t layer_count, config_.count("num_hidden_layers"));
  if (layer_count > kLayerCountMax) {
    return fail(ErrorCode::invalid_data, "num_hidden_layers: expected at most {}, found {}",
                kLayerCountMax, layer_count);
  }
  std::vector<bool> pattern;
  if (const Json* types = config_.find("layer_types")) {
    for (const Json& type : types->items()) {
      pattern.push_back(type.as_text() == "sliding_attention");
    }
  } else {
    // Every fourth layer sees everything.
    for (int64_t layer = 1; layer <= layer_count; ++layer) pattern.push_back(layer % 4 != 0);
  }
  if (int64_t(pattern.size()) != layer_count) {
    return fail(ErrorCode::invalid_data, "layer_types: expected {} layers, found {}", layer_count,
                pattern.size());
  }
  set("attention.sliding_window_pattern", std::move(pattern));
  return Ok{};
}

Status Writer::add_stablelm() {
  CAIRN_TRY(const int64_t width, config_.count("hidden_size"));
  CAIRN_TRY(const int64_t heads, config_.positive("num_attention_heads"));
  CAIRN_TRY(const double part, rotated_part(config_));
  CAIRN_TRY(add_context());
  set("embedding_length", uint32_t(width));
  CAIRN_TRY(add_count("block_count", {"num_hidden_layers"}));
  CAIRN_TRY(add_count("feed_forward_length", {"intermediate_size"}));
  set("rope.dimension_count", uint32_t(part * double(width / heads)));
  set("attention.head_count", uint32_t(heads));
  CAIRN_TRY(add_count("attention.head_count_kv", {"num_key_value_heads"}));
  const Json* parallel = config_.find("use_parallel_residual");
  set("use_parallel_residual", parallel != nullptr && parallel->as_boolean().value_or(false));
  CAIRN_TRY(add_number("attention.layer_norm_epsilon", "layer_norm_eps"));
  add_file_type();
  return Ok{};
}

Status Writer::add(Parameters parameters) {
  switch (parameters) {
    case Parameters::common:
      return add_common();
    case Parameters::llama:
      return add_llama();
    case Parameters::granite:
      return add_granite();
    case Parameters::qwen_moe:
      return add_qwen_moe();
    case Parameters::gemma:
      return add_gemma();
    case Parameters::gemma2:
      return add_gemma2();
    case Parameters::gemma3:
      return add_gemma3();
    case Parameters::phi2:
      return add_phi2();
    case Parameters::phi3:
      return add_phi3();
    case Parameters::olmo:
      CAIRN_TRY(add_common());
      set("attention.layer_norm_epsilon", 1e-5f);
      return add_number_if_set("attention.clamp_kqv", {"clip_qkv"});
    case Parameters::olmo2:
      return add_olmo2();
    case Parameters::olmoe:
      CAIRN_TRY(add_common());
      set("attention.layer_norm_rms_epsilon", 1e-5f);
      return Ok{};
    case Parameters::stablelm:
      return add_stablelm();
  }
  return Ok{};
}

}  // namespace

Status add_parameters(const Config& config, const Family& family, uint32_t file_type,
                      KeyValues& out) {
  return Writer(config, family, file_type, out).add(family.parameters);
}

}  // namespace cairn::convert
