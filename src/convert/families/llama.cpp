// Llama and what is built like it: Mistral, Mixtral, Ministral 3, Arcee, SmolLM 3,
// Granite. Heads of q and k
// interleave; Llama 3's rotary scaling becomes a tensor.
#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace llama {

using Names = const NameRow[];
using Classes = const std::string_view[];

constexpr Classes kLlamaClasses = {"LlamaForCausalLM", "LLaMAForCausalLM", "MistralForCausalLM",
                                   "MixtralForCausalLM"};
constexpr Classes kArceeClasses = {"ArceeForCausalLM"};
constexpr Classes kMistral3Classes = {"Ministral3ForCausalLM", "Mistral3ForConditionalGeneration"};
constexpr Classes kSmollm3Classes = {"SmolLM3ForCausalLM"};
constexpr Classes kGraniteClasses = {"GraniteForCausalLM"};
constexpr Classes kGraniteMoeClasses = {"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"};

Status add_llama(ParameterWriter& writer) {
  return add_llama_parameters(writer, ParameterWriter::HeadDim::added);
}

Status add_mistral3(ParameterWriter& writer) {
  const Config& config = writer.config();
  if (config.model_type() == "mistral4") {
    return fail(ErrorCode::unsupported,
                "model_type: expected mistral or ministral3, found mistral4");
  }
  CAIRN_TRY(add_llama(writer));
  if (config.model_type() != "ministral3") return Ok{};
  CAIRN_TRY(const double slope, rope_number(config, "mscale_all_dim"));
  writer.set("rope.scaling.yarn_log_multiplier", float(slope));
  CAIRN_TRY(const double scale, rope_number(config, "llama_4_scaling_beta"));
  writer.set("attention.temperature_scale", float(scale));
  return Ok{};
}

constexpr Family kFamilies[] = {
    {.classes = kLlamaClasses,
     .architecture = "llama",
     .names = kMixtralExperts,
     .parameters = add_llama,
     .extra_tensors = add_llama3_factors,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::llama,
     .interleaves_heads = true},
    {.classes = kArceeClasses,
     .architecture = "arcee",
     .parameters = add_llama,
     .extra_tensors = add_llama3_factors,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::llama,
     .interleaves_heads = true},
    {.classes = kMistral3Classes,
     .architecture = "mistral3",
     .names = kMixtralExperts,
     .parameters = add_mistral3,
     .extra_tensors = add_llama3_factors,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::llama,
     .interleaves_heads = true},
    {.classes = kSmollm3Classes,
     .architecture = "smollm3",
     .parameters = add_llama,
     .extra_tensors = add_llama3_factors,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::llama,
     .interleaves_heads = true},
    {.classes = kGraniteClasses,
     .architecture = "granite",
     .parameters = add_granite_parameters,
     .extra_tensors = add_llama3_factors,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::llama,
     .interleaves_heads = true,
     .digits_name = "refact"},
    {.classes = kGraniteMoeClasses,
     .architecture = "granitemoe",
     .names = kGraniteExperts,
     .parameters = add_granite_parameters,
     .extra_tensors = add_llama3_factors,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::llama,
     .interleaves_heads = true,
     .digits_name = "refact"},
};

constexpr ConfigDefault kDefaults[] = {
    {"llama", "rms_norm_eps", 1e-6},           {"mistral", "rms_norm_eps", 1e-6},
    {"mixtral", "rms_norm_eps", 1e-5},         {"mixtral", "rope_theta", 1e6},
    {"mixtral", "num_experts_per_tok", 2},     {"mixtral", "num_local_experts", 8},
    {"granite", "rms_norm_eps", 1e-6},         {"granite", "attention_multiplier", 1},
    {"granite", "embedding_multiplier", 1},    {"granite", "residual_multiplier", 1},
    {"granite", "logits_scaling", 1},          {"granitemoe", "rms_norm_eps", 1e-6},
    {"granitemoe", "attention_multiplier", 1}, {"granitemoe", "embedding_multiplier", 1},
    {"granitemoe", "residual_multiplier", 1},  {"granitemoe", "logits_scaling", 1},
    {"arcee", "rms_norm_eps", 1e-5},           {"ministral3", "rms_norm_eps", 1e-5},
    {"smollm3", "rms_norm_eps", 1e-6},         {"smollm3", "rope_theta", 2e6},
};

}  // namespace llama

extern const FamilyGroup families_llama;
constinit const FamilyGroup families_llama = {llama::kFamilies, llama::kDefaults};

}  // namespace cairn::convert
