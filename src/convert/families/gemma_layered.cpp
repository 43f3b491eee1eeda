// Gemma 3n and Gemma 4: an embedding for each layer, layers that share keys and values; 3n has
// AltUp and LAuReL besides, 4 heads of two widths and, in some models, experts.
#include <cmath>

#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace gemma_layered {

constexpr std::string_view kNanoClasses[] = {"Gemma3nForCausalLM",
                                             "Gemma3nForConditionalGeneration"};
constexpr std::string_view kFourClasses[] = {"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration"};

constexpr NameRow kNames[] = {
    {"model.embed_tokens_per_layer", "per_layer_token_embd"},
    {"model.per_layer_model_projection", "per_layer_model_proj"},
    {"model.per_layer_projection_norm", "per_layer_proj_norm"},
    {"per_layer_input_gate", "inp_gate"},
    {"per_layer_projection", "proj"},
    {"post_per_layer_input_norm", "post_norm"},
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    // 3n's.
    {"altup.correct_output_scale", "altup_correct_scale"},
    {"altup.correction_coefs", "altup_correct_coef"},
    {"altup.prediction_coefs", "altup_predict_coef"},
    {"altup.modality_router", "altup_router"},
    {"altup.router_norm", "altup_router_norm"},
    {"laurel.linear_left", "laurel_l"},
    {"laurel.linear_right", "laurel_r"},
    {"laurel.post_laurel_norm", "laurel_post_norm"},
    // 4's.
    {"layer_scalar", "layer_output_scale"},
    {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
    {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
    {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
    {"router.proj", "ffn_gate_inp"},
    {"router.scale", "ffn_gate_inp.scale", {}, Edit::none, true},
    {"router.per_expert_scale", "ffn_down_exps.scale", {}, Edit::none, true},
    {"experts.gate_up_proj", "ffn_gate_up_exps"},
    {"experts.down_proj", "ffn_down_exps"},
};

constexpr int64_t kAltupMatrices = 3;  // Beside the first of the four streams.

Status add_window(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(writer.add_multiplier("final_logit_softcapping", "final_logit_softcapping"));
  return writer.add_count("attention.sliding_window", {"sliding_window"});
}

// How many deviations from the mean a share of a normal distribution lies below; in f32 steps, as
// the usual converter computes it.
float deviations_below(double share) {
  const float wanted = 2 * float(share) - 1;
  if (wanted <= -1) return -INFINITY;
  if (wanted >= 1) return INFINITY;
  double low = -6, high = 6;  // Where erf is -1 and 1 to all digits.
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    (std::erf(middle) < double(wanted) ? low : high) = middle;
  }
  return float((low + high) / 2) * float(std::sqrt(2.0));
}

Status add_nano(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(add_window(writer));
  CAIRN_TRY(writer.add_count("altup.active_idx", {"altup_active_idx"}));
  CAIRN_TRY(const int64_t streams, config.count("altup_num_inputs"));
  if (streams != kAltupMatrices + 1) {
    return fail(ErrorCode::unsupported, "altup_num_inputs: expected {}, found {}",
                kAltupMatrices + 1, streams);
  }
  writer.set("altup.num_inputs", uint32_t(streams));
  CAIRN_TRY(writer.add_count("embedding_length_per_layer_input", {"hidden_size_per_layer_input"}));
  CAIRN_TRY(writer.add_count("attention.shared_kv_layers", {"num_kv_shared_layers"}));
  std::vector<float> scales;
  const Json* pattern = config.find("activation_sparsity_pattern");
  for (size_t i = 0; pattern != nullptr && i < pattern->items().size(); ++i) {
    scales.push_back(deviations_below(pattern->items()[i].as_real().value_or(0)));
  }
  if (scales.empty()) {
    return fail(ErrorCode::not_found,
                "expected activation_sparsity_pattern in config.json, found none");
  }
  writer.set("activation_sparsity_scale", std::move(scales));
  CAIRN_TRY(std::vector<bool> layers, writer.sliding_layers());
  writer.set("attention.sliding_window_pattern", std::move(layers));
  return Ok{};
}

// What layers that see everything have otherwise: under a key of its own, or in per_layer_config.
Result<std::optional<int64_t>> count_of_full_layers(const Config& config, std::string_view key,
                                                    std::string_view layer_key) {
  CAIRN_TRY(const std::optional<int64_t> own, config.count_if_set({key}));
  const Json* by_layer = config.find("per_layer_config");
  const Json* types = config.find("layer_types");
  if (own || by_layer == nullptr || types == nullptr) return own;
  for (const auto& [number, values] : by_layer->members()) {
    size_t layer = 0;
    for (const char digit : number) layer = layer * 10 + size_t(digit - '0') % 10;
    const Json* count = values.find_set(layer_key);
    if (layer >= types->items().size() || count == nullptr) continue;
    if (types->items()[layer].as_text() != "full_attention") continue;
    if (const auto value = count->as_integer(); value && *value > 0 && *value < INT32_MAX) {
      return value;
    }
  }
  return own;
}

Result<int64_t> full_head_dim(const Config& config) {
  CAIRN_TRY(const std::optional<int64_t> dim,
            count_of_full_layers(config, "global_head_dim", "head_dim"));
  constexpr int64_t kMax = 1 << 20;
  if (dim && *dim > 0 && *dim <= kMax) return *dim;
  return fail(ErrorCode::not_found, "expected global_head_dim in config.json, found {}",
              dim.value_or(0));
}

// Layers that share keys and values may have blocks of twice the width.
Status add_widths(ParameterWriter& writer, size_t layer_count) {
  const Config& config = writer.config();
  const Json* is_double = config.find("use_double_wide_mlp");
  if (is_double == nullptr || !is_double->as_boolean().value_or(false)) return Ok{};
  CAIRN_TRY(const int64_t width, config.count("intermediate_size"));
  CAIRN_TRY(const int64_t shared, config.count("num_kv_shared_layers"));
  std::vector<int32_t> widths;
  for (size_t layer = 0; layer < layer_count; ++layer) {
    const bool is_shared = int64_t(layer) + shared >= int64_t(layer_count);
    widths.push_back(int32_t(uint32_t(is_shared ? 2 * width : width)));
  }
  writer.set("feed_forward_length", std::move(widths));
  return Ok{};
}

Status add_four(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(add_window(writer));
  CAIRN_TRY(writer.add_count("attention.shared_kv_layers", {"num_kv_shared_layers"}));
  CAIRN_TRY(const std::optional<int64_t> width,
            config.count_if_set({"hidden_size_per_layer_input"}));
  writer.set("embedding_length_per_layer_input", uint32_t(width.value_or(0)));
  CAIRN_TRY(const std::vector<bool> sliding, writer.sliding_layers());
  writer.set("attention.sliding_window_pattern", sliding);
  CAIRN_TRY(const int64_t full_dim, full_head_dim(config));
  CAIRN_TRY(const int64_t sliding_dim, config.count("head_dim"));
  writer.set("attention.key_length", uint32_t(full_dim));
  writer.set("attention.value_length", uint32_t(full_dim));
  writer.set("attention.key_length_swa", uint32_t(sliding_dim));
  writer.set("attention.value_length_swa", uint32_t(sliding_dim));
  CAIRN_TRY(writer.add_count_if_set("expert_feed_forward_length",
                                    {"expert_intermediate_size", "moe_intermediate_size"}));
  CAIRN_TRY(add_widths(writer, sliding.size()));
  CAIRN_TRY(const std::optional<int64_t> full_heads,
            count_of_full_layers(config, "num_global_key_value_heads", "num_key_value_heads"));
  CAIRN_TRY(const int64_t heads, config.count("num_key_value_heads"));
  if (full_heads) {
    std::vector<int32_t> counts;
    for (const bool is_sliding : sliding)
      counts.push_back(int32_t(is_sliding ? heads : *full_heads));
    writer.set("attention.head_count_kv", std::move(counts));
  }
  writer.set("rope.dimension_count", uint32_t(full_dim));
  writer.set("rope.dimension_count_swa", uint32_t(sliding_dim));
  return Ok{};
}

// Pairs of a head that do not turn in layers that see everything have an endless period.
Status add_frequencies(TensorPlan& plan) {
  constexpr float kNeverTurns = 1e30f;
  CAIRN_TRY(const int64_t dim, full_head_dim(plan.config()));
  CAIRN_TRY(const double part, rope_number(plan.config(), "partial_rotary_factor"));
  const auto turning = int64_t(double(dim) * std::min(std::max(part, 0.0), 1.0) / 2);
  std::vector<float> factors(size_t(dim / 2), kNeverTurns);
  for (int64_t i = 0; i < std::min(turning, dim / 2); ++i) factors[size_t(i)] = 1;
  plan.add_numbers("rope_freqs.weight", std::move(factors));
  return Ok{};
}

// Three matrices as one tensor, when the last of them has come.
Result<bool> add_stacked(TensorPlan& plan, std::string_view prefix, std::string_view target,
                         const SourceTensor& source) {
  const SourceTensor* parts[kAltupMatrices] = {};
  const SourceTensor* last = nullptr;
  for (const SourceTensor& other : plan.checkpoint().tensors()) {
    for (int64_t i = 0; i < kAltupMatrices; ++i) {
      if (!other.name.ends_with(fmt::format("{}.{}.weight", prefix, i))) continue;
      parts[i] = last = &other;
    }
  }
  if (last == nullptr) return false;
  if (last != &source) return true;
  for (const SourceTensor* part : parts) {
    if (part == nullptr || part->shape.size() != 2 || part->shape != source.shape) {
      return fail(ErrorCode::invalid_data, "tensor {}: expected {} of one shape, found {}",
                  source.name, kAltupMatrices, shape_text(source));
    }
  }
  PlannedTensor tensor = plan.start(fmt::format("{}.weight", target),
                                    {source.shape[1], source.shape[0], kAltupMatrices});
  for (const SourceTensor* part : parts) {
    tensor.runs.push_back({part, 0, source.shape[0], source.shape[1]});
  }
  CAIRN_TRY(plan.add(std::move(tensor)));
  return true;
}

// Rows for what is no text are missing in some files.
Status add_padded(TensorPlan& plan, std::string_view target, const SourceTensor& source) {
  CAIRN_TRY(const int64_t tokens, plan.config().count("vocab_size"));
  constexpr int64_t kMissingMax = 1 << 16;  // Honest folders lack some hundreds.
  if (source.shape.size() != 2 || tokens > source.shape[0] + kMissingMax) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected a matrix of {} rows, found shape {}",
                source.name, tokens, shape_text(source));
  }
  const int64_t width = source.shape[1], rows = source.shape[0];
  PlannedTensor tensor =
      plan.start(fmt::format("{}.weight", target), {width, std::max(rows, tokens)});
  tensor.runs.push_back({&source, 0, rows, width});
  if (rows < tokens) {
    tensor.runs.push_back(
        {.source = &source, .first = 0, .row_count = tokens - rows, .row_stride = 0, .factor = 0});
  }
  return plan.add(std::move(tensor));
}

Result<bool> add_nano_tensor(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  constexpr std::string_view kIn = "altup_projections", kOut = "altup_unembed_projections";
  if (name.rest.find(kIn) != name.rest.npos) return add_stacked(plan, kIn, "altup_proj", source);
  if (name.rest.find(kOut) != name.rest.npos) {
    return add_stacked(plan, kOut, "altup_unembd_proj", source);
  }
  const bool is_table = name.rest == "model.embed_tokens";
  if (!is_table && name.rest != "model.embed_tokens_per_layer") return false;
  CAIRN_TRY(add_padded(plan, is_table ? "token_embd" : "per_layer_token_embd", source));
  return true;
}

void say_spaces(const Config&, const TokenizerFiles&, KeyValues& out) {
  out.set("tokenizer.ggml.add_space_prefix", false);
  out.set("tokenizer.ggml.add_bos_token", true);
}

constexpr Family kFamilies[] = {
    {.classes = kNanoClasses,
     .architecture = "gemma3n",
     .names = kNames,
     .parameters = add_nano,
     .tensor = add_nano_tensor,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::gemma2},
    {.classes = kFourClasses,
     .architecture = "gemma4",
     .names = kNames,
     .parameters = add_four,
     .extra_tensors = add_frequencies,
     .tokens = say_spaces,
     .vocabulary = VocabularyFile::gemma4,
     .trims_embedding = true},
};

constexpr ConfigDefault kDefaults[] = {
    {"gemma3n_text", "head_dim", 256},
    {"gemma3n_text", "rms_norm_eps", 1e-6},
    {"gemma3n_text", "sliding_window", 512},
    {"gemma3n_text", "rope_theta", 1e6},
    {"gemma3n_text", "max_position_embeddings", 32768},
    {"gemma3n_text", "altup_active_idx", 0},
    {"gemma3n_text", "altup_num_inputs", 4},
    {"gemma3n_text", "final_logit_softcapping", 30},
    {"gemma3n_text", "hidden_size_per_layer_input", 256},
    {"gemma3n_text", "num_kv_shared_layers", 15},
    {"gemma4_text", "head_dim", 256},
    {"gemma4_text", "rms_norm_eps", 1e-6},
    {"gemma4_text", "sliding_window", 512},
    {"gemma4_text", "hidden_size_per_layer_input", 256},
    {"gemma4_text", "num_kv_shared_layers", 0},
    {"gemma4_text", "max_position_embeddings", 131072},
};

}  // namespace gemma_layered

extern const FamilyGroup families_gemma_layered;
constinit const FamilyGroup families_gemma_layered = {gemma_layered::kFamilies,
                                                      gemma_layered::kDefaults};

}  // namespace cairn::convert
