// Gemma 1 to 3: norms less one; Gemma 3 trims its embedding to the vocabulary. And EmbeddingGemma,
// which is Gemma 3 without a mask, and maybe two matrices more.
#include "convert/sentence_modules.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace gemma {

constexpr std::string_view kGemmaClasses[] = {"GemmaForCausalLM"};
constexpr std::string_view kEmbeddingClasses[] = {"Gemma3TextModel"};

constexpr NameRow kEmbeddingNames[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
};

constexpr std::string_view kGemma2Classes[] = {"Gemma2ForCausalLM"};
constexpr std::string_view kGemma3Classes[] = {"Gemma3ForCausalLM",
                                               "Gemma3ForConditionalGeneration"};

// Gemma and Gemma 2 have a list of their own, without rotary bases.
Status add_gemma(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_context());
  CAIRN_TRY(writer.add_count("embedding_length", {"hidden_size"}));
  CAIRN_TRY(writer.add_count("block_count", {"num_hidden_layers"}));
  CAIRN_TRY(writer.add_count("feed_forward_length", {"intermediate_size"}));
  CAIRN_TRY(writer.add_head_counts());
  CAIRN_TRY(writer.add_number("attention.layer_norm_rms_epsilon", {"rms_norm_eps"}));
  CAIRN_TRY(writer.add_count("attention.key_length", {"head_dim"}));
  CAIRN_TRY(writer.add_count("attention.value_length", {"head_dim"}));
  writer.add_file_type();
  return Ok{};
}

Status add_gemma2(ParameterWriter& writer) {
  CAIRN_TRY(add_gemma(writer));
  CAIRN_TRY(writer.add_number("attn_logit_softcapping", {"attn_logit_softcapping"}));
  CAIRN_TRY(writer.add_number("final_logit_softcapping", {"final_logit_softcapping"}));
  return writer.add_count("attention.sliding_window", {"sliding_window"});
}

Status add_gemma3(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common());
  if (config.find("attn_logit_softcapping") != nullptr) {
    return fail(ErrorCode::unsupported, "attn_logit_softcapping: expected none, found one");
  }
  CAIRN_TRY(writer.add_multiplier("final_logit_softcapping", "final_logit_softcapping"));
  const Json* pattern = config.find("sliding_window_pattern");
  if (pattern != nullptr && pattern->as_integer() == 1) return Ok{};
  return writer.add_count("attention.sliding_window", {"sliding_window"});
}

Status add_embedding(ParameterWriter& writer) {
  const Json* is_open = writer.config().find("use_bidirectional_attention");
  if (is_open == nullptr || !is_open->as_boolean().value_or(false)) {
    return fail(ErrorCode::unsupported, "use_bidirectional_attention: expected true, found {}",
                is_open == nullptr ? "none" : is_open->describe());
  }
  CAIRN_TRY(add_gemma3(writer));
  CAIRN_TRY(writer.add_count("attention.sliding_window", {"sliding_window"}));
  CAIRN_TRY(add_dense_sizes(writer));
  return add_pooling(writer);
}

constexpr Family kFamilies[] = {
    {.classes = kGemmaClasses,
     .architecture = "gemma",
     .parameters = add_gemma,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::gemma,
     .norms_less_one = true,
     .drops_output = true},
    {.classes = kGemma2Classes,
     .architecture = "gemma2",
     .names = kFourNorms,
     .parameters = add_gemma2,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::gemma2,
     .norms_less_one = true,
     .drops_output = true},
    {.classes = kGemma3Classes,
     .architecture = "gemma3",
     .names = kFourNorms,
     .parameters = add_gemma3,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::gemma2,
     .norms_less_one = true,
     .trims_embedding = true},
    {.classes = kEmbeddingClasses,
     .architecture = "gemma-embedding",
     .names = kEmbeddingNames,
     .parameters = add_embedding,
     .extra_tensors = add_dense_tensors,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::gemma2,
     .norms_less_one = true,
     .trims_embedding = true,
     .has_dense_modules = true},
};

constexpr ConfigDefault kDefaults[] = {
    {"gemma", "head_dim", 256},
    {"gemma", "rms_norm_eps", 1e-6},
    {"gemma2", "head_dim", 256},
    {"gemma2", "rms_norm_eps", 1e-6},
    {"gemma2", "sliding_window", 4096},
    {"gemma2", "attn_logit_softcapping", 50},
    {"gemma2", "final_logit_softcapping", 30},
    {"gemma3_text", "head_dim", 256},
    {"gemma3_text", "rms_norm_eps", 1e-6},
    {"gemma3_text", "sliding_window", 4096},
    {"gemma3_text", "max_position_embeddings", 131072},
    {"gemma3_text", "hidden_size", 2304},
    {"gemma3_text", "intermediate_size", 9216},
    {"gemma3_text", "num_hidden_layers", 26},
    {"gemma3_text", "num_attention_heads", 8},
    {"gemma3_text", "num_key_value_heads", 4},
    {"gemma3_text", "vocab_size", 262208},
    {"gemma3_text", "rope_theta", 1e6},
};

}  // namespace gemma

extern const FamilyGroup families_gemma;
constinit const FamilyGroup families_gemma = {gemma::kFamilies, gemma::kDefaults};

}  // namespace cairn::convert
