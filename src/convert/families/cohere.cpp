// Command R and its successor: norms without a bias, logits that are scaled.
#include <algorithm>

#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace cohere {

constexpr std::string_view kCommandRClasses[] = {"CohereForCausalLM"};
constexpr std::string_view kCohere2Classes[] = {"Cohere2ForCausalLM"};

Status add_command_r(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_common());
  // The first of them say less than they were trained for.
  CAIRN_TRY(writer.add_count("context_length", {"model_max_length", "max_position_embeddings"}));
  CAIRN_TRY(writer.add_number("logit_scale", {"logit_scale"}));
  writer.set("rope.scaling.type", std::string("none"));
  return Ok{};
}

Status add_cohere2(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(writer.add_number("logit_scale", {"logit_scale"}));
  CAIRN_TRY(writer.add_count("attention.sliding_window", {"sliding_window"}));
  CAIRN_TRY(writer.add_count("vocab_size", {"vocab_size"}));
  CAIRN_TRY(const int64_t width, config.count("hidden_size"));
  CAIRN_TRY(const int64_t heads, config.positive("num_attention_heads"));
  CAIRN_TRY(const double part, config.number("rotary_pct"));
  if (!(part >= 0 && part <= 1)) {
    return fail(ErrorCode::invalid_data, "rotary_pct: expected 0 to 1, found {}", part);
  }
  writer.set("rope.dimension_count", uint32_t(part * double(width / heads)));
  writer.set("rope.scaling.type", std::string("none"));
  return Ok{};
}

// Biases are there, and are nothing.
Result<bool> skip_zero_biases(TensorPlan&, const TensorName& name, const SourceTensor& source) {
  if (name.ending != ".bias") return false;
  const bool is_zero = std::all_of(source.bytes.begin(), source.bytes.end(),
                                   [](std::byte byte) { return byte == std::byte(0); });
  if (is_zero) return true;
  return fail(ErrorCode::unsupported, "tensor {}: expected a bias of zeros, found others",
              source.name);
}

constexpr Family kFamilies[] = {
    {.classes = kCommandRClasses,
     .architecture = "command-r",
     .parameters = add_command_r,
     .digits_name = "command-r"},
    {.classes = kCohere2Classes,
     .architecture = "cohere2",
     .parameters = add_cohere2,
     .tensor = skip_zero_biases,
     .digits_name = "command-r"},
};

constexpr ConfigDefault kDefaults[] = {
    {"cohere", "rope_theta", 5e5},      {"cohere", "layer_norm_eps", 1e-5},
    {"cohere", "logit_scale", 0.0625},  {"cohere2", "layer_norm_eps", 1e-5},
    {"cohere2", "logit_scale", 0.0625}, {"cohere2", "sliding_window", 4096},
    {"cohere2", "rotary_pct", 1},
};

}  // namespace cohere

extern const FamilyGroup families_cohere;
constinit const FamilyGroup families_cohere = {cohere::kFamilies, cohere::kDefaults};

}  // namespace cairn::convert
