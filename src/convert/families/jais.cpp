// Jais: GPT-2's frame with a gate. Its multipliers go into the matrices at both ends, and the
// slopes that it stores become the one number that they are made from.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace jais {

constexpr std::string_view kClasses[] = {"JAISLMHeadModel"};
constexpr std::string_view kBias = "jais.attention.max_alibi_bias";
constexpr float kUsualBias = 8;

constexpr NameRow kNames[] = {
    {"transformer.wte", "token_embd"},
    {"transformer.ln_f", "output_norm"},
    {"ln_1", "attn_norm"},
    {"ln_2", "ffn_norm"},
    {"attn.c_attn", "attn_qkv", {}, Edit::transpose},
    {"attn.c_proj", "attn_output", {}, Edit::transpose},
    {"mlp.c_fc", "ffn_up", {}, Edit::transpose},
    {"mlp.c_fc2", "ffn_gate", {}, Edit::transpose},
    {"mlp.c_proj", "ffn_down", {}, Edit::transpose},
};

Status expect_text(const Config& config, std::string_view key, std::string_view expected) {
  const Json* value = config.find(key);
  if (value != nullptr && value->as_text() == expected) return Ok{};
  return fail(ErrorCode::unsupported, "{}: expected {}, found {}", key, expected,
              value == nullptr ? "none" : value->describe());
}

Status add_jais(ParameterWriter& writer) {
  CAIRN_TRY(expect_text(writer.config(), "activation_function", "swiglu"));
  CAIRN_TRY(expect_text(writer.config(), "position_embedding_type", "alibi"));
  CAIRN_TRY(writer.add_count("block_count", {"n_layer"}));
  CAIRN_TRY(writer.add_count("context_length", {"n_positions"}));
  CAIRN_TRY(writer.add_count("embedding_length", {"n_embd"}));
  CAIRN_TRY(writer.add_count("feed_forward_length", {"n_inner"}));
  CAIRN_TRY(writer.add_count("attention.head_count", {"n_head"}));
  CAIRN_TRY(writer.add_number("attention.layer_norm_epsilon", {"layer_norm_epsilon"}));
  writer.add_file_type();
  return Ok{};
}

Status say_usual_bias(TensorPlan& plan) {
  plan.out().set(kBias, kUsualBias);
  return Ok{};
}

float first_number(const SourceTensor& source) {
  uint16_t half = 0;
  float number = 0;
  std::memcpy(&half, source.bytes.data(), sizeof half);
  if (source.number == Number::f16) return to_float(Half(half));
  if (source.number == Number::bf16) return to_float(BFloat16(half));
  std::memcpy(&number, source.bytes.data(), sizeof number);
  return number;
}

// The first of the slopes is 2^(-bias / heads), with as many heads as there is a power of two.
Status read_slopes(TensorPlan& plan, const SourceTensor& source) {
  const int64_t heads = plan.head_count();
  const bool is_known =
      source.number == Number::f32 || source.number == Number::f16 || source.number == Number::bf16;
  const float first = is_known ? first_number(source) : 0;
  if (heads < 1 || source.number_count() != heads || !(first > 0 && first < 1)) {
    return fail(ErrorCode::invalid_data,
                "tensor {}: expected {} slopes between 0 and 1, found shape {} of {}, first {}",
                source.name, heads, shape_text(source), source.dtype, first);
  }
  const auto power = double(std::bit_floor(uint64_t(heads)));
  plan.out().set(kBias, float(-std::round(std::log2(double(first)) * power)));
  return Ok{};
}

// Older files have other names for the multipliers.
Result<float> end_factor(const Config& config, bool is_output) {
  if (!is_output) {
    const bool is_newer = config.find("mup_embeddings_scale") != nullptr;
    CAIRN_TRY(const double scale,
              config.number(is_newer ? "mup_embeddings_scale" : "embeddings_scale"));
    return float(scale);
  }
  if (config.find("mup_output_alpha") == nullptr) {
    CAIRN_TRY(const double scale, config.number("width_scale"));
    return float(scale);
  }
  CAIRN_TRY(const double alpha, config.number("mup_output_alpha"));
  CAIRN_TRY(const double scale, config.number("mup_width_scale"));
  return float(alpha * scale);
}

Result<bool> add_tensor(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (name.layer && name.rest == "attn" && name.ending == ".bias") return true;  // The mask.
  if (name.rest.ends_with("relative_pe.slopes")) {
    CAIRN_TRY(read_slopes(plan, source));
    return true;
  }
  const bool is_output = name.rest == "lm_head";
  if (!is_output && name.rest != "transformer.wte") return false;
  CAIRN_TRY(const float factor, end_factor(plan.config(), is_output));
  PlannedTensor tensor =
      plan.start(TensorPlan::target_name(name, is_output ? "output" : "token_embd"),
                 {source.shape.rbegin(), source.shape.rend()});
  tensor.runs.push_back({.source = &source,
                         .first = 0,
                         .row_count = tensor.row_count(),
                         .row_stride = tensor.row_numbers,
                         .factor = factor});
  CAIRN_TRY(plan.add(std::move(tensor)));
  return true;
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "jais",
     .names = kNames,
     .parameters = add_jais,
     .extra_tensors = say_usual_bias,
     .tensor = add_tensor,
     .gpt2_name = "jais"},
};

}  // namespace jais

extern const FamilyGroup families_jais;
constinit const FamilyGroup families_jais = {jais::kFamilies};

}  // namespace cairn::convert
