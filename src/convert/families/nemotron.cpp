// Nemotron and Minitron: norms kept less one, half of a head rotates.
#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace nemotron {

constexpr std::string_view kClasses[] = {"NemotronForCausalLM"};

Status add_nemotron(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(writer.add_count("vocab_size", {"vocab_size"}));
  CAIRN_TRY(
      writer.add_number("attention.layer_norm_epsilon",
                        {"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"}));
  CAIRN_TRY(const int64_t dims, rotated_dims(config));
  writer.set("rope.dimension_count", uint32_t(dims));
  if (config.rope().find_set("factor") == nullptr) {
    writer.set("rope.scaling.type", std::string("none"));
    return Ok{};
  }
  CAIRN_TRY(const double factor, rope_number(config, "factor"));
  writer.set("rope.scaling.type", std::string("linear"));
  writer.set("rope.scaling.factor", float(factor));
  return Ok{};
}

// The vocabulary has them where its file does not say so.
void add_tokens(const Config&, const TokenizerFiles&, KeyValues& out) {
  out.set("tokenizer.ggml.padding_token_id", uint32_t(0));
  out.set("tokenizer.ggml.unknown_token_id", uint32_t(1));
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "nemotron",
     .parameters = add_nemotron,
     .tokens = add_tokens,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .norms_less_one = true},
};

constexpr ConfigDefault kDefaults[] = {
    {"nemotron", "norm_eps", 1e-5},
    {"nemotron", "partial_rotary_factor", 0.5},
};

}  // namespace nemotron

extern const FamilyGroup families_nemotron;
constinit const FamilyGroup families_nemotron = {nemotron::kFamilies, nemotron::kDefaults};

}  // namespace cairn::convert
