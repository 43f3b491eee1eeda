// Phi 2, Phi 3 and its relative with experts, each with a list of hyperparameters of its own.
#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace phi {

constexpr NameRow kPhi3[] = {
    {"self_attn.qkv_proj", "attn_qkv"},
    {"mlp.gate_up_proj", "ffn_up"},
};
constexpr NameRow kPhi2[] = {
    {"self_attn.dense", "attn_output"},
    {"mlp.fc1", "ffn_up"},
    {"mlp.fc2", "ffn_down"},
    {"model.final_layernorm", "output_norm"},
};
constexpr std::string_view kPhimoeClasses[] = {"PhiMoEForCausalLM", "PhimoeForCausalLM"};
constexpr std::string_view kPhi3Classes[] = {"Phi3ForCausalLM"};
constexpr std::string_view kPhi2Classes[] = {"PhiForCausalLM"};

Status add_phi2(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const int64_t width, config.count("hidden_size"));
  CAIRN_TRY(const int64_t dims, rotated_dims(config));
  CAIRN_TRY(writer.add_context());
  writer.set("embedding_length", uint32_t(width));
  writer.set("feed_forward_length", uint32_t(4 * width));
  CAIRN_TRY(writer.add_count("block_count", {"num_hidden_layers"}));
  CAIRN_TRY(writer.add_count("attention.head_count", {"num_attention_heads"}));
  CAIRN_TRY(writer.add_count("attention.head_count_kv", {"num_attention_heads"}));
  CAIRN_TRY(writer.add_number("attention.layer_norm_epsilon", {"layer_norm_eps"}));
  writer.set("rope.dimension_count", uint32_t(dims));
  writer.add_file_type();
  writer.out().set("tokenizer.ggml.add_bos_token", false);
  return Ok{};
}

Status add_phi3(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const uint32_t original, rope_count(config, "original_max_position_embeddings"));
  CAIRN_TRY(const int64_t dims, rotated_dims(config));
  CAIRN_TRY(const double base, rope_number(config, "rope_theta"));
  CAIRN_TRY(writer.add_context());
  writer.set("rope.scaling.original_context_length", original);
  CAIRN_TRY(writer.add_count("embedding_length", {"hidden_size"}));
  CAIRN_TRY(writer.add_count("feed_forward_length", {"intermediate_size"}));
  CAIRN_TRY(writer.add_count("block_count", {"num_hidden_layers"}));
  CAIRN_TRY(writer.add_head_counts());
  CAIRN_TRY(writer.add_number("attention.layer_norm_rms_epsilon", {"rms_norm_eps"}));
  writer.set("rope.dimension_count", uint32_t(dims));
  writer.set("rope.freq_base", float(base));
  writer.add_file_type();
  // 0 says that there is none; files without the key are read as Phi 3's first.
  CAIRN_TRY(const std::optional<int64_t> window, config.count_if_set({"sliding_window"}));
  writer.set("attention.sliding_window", uint32_t(window.value_or(0)));
  return Ok{};
}

Status add_phimoe(ParameterWriter& writer) {
  CAIRN_TRY(add_phi3(writer));
  CAIRN_TRY(writer.add_count("expert_used_count", {"num_experts_per_tok"}));
  return writer.add_count("expert_count", {"num_local_experts"});
}

constexpr Family kFamilies[] = {
    {.classes = kPhi3Classes,
     .architecture = "phi3",
     .names = kPhi3,
     .parameters = add_phi3,
     .extra_tensors = add_long_factors,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::phi3},
    {.classes = kPhimoeClasses,
     .architecture = "phimoe",
     .names = kMixtralExperts,
     .parameters = add_phimoe,
     .extra_tensors = add_long_factors,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .token_rules = SpecialTokenRules::phi3},
    {.classes = kPhi2Classes,
     .architecture = "phi2",
     .names = kPhi2,
     .parameters = add_phi2,
     .gpt2_name = "phi-2"},
};

constexpr ConfigDefault kDefaults[] = {
    {"phi3", "rms_norm_eps", 1e-5},
    {"phi3", "partial_rotary_factor", 1},
    {"phi3", "original_max_position_embeddings", 4096},
    {"phimoe", "num_experts_per_tok", 2},
    {"phimoe", "num_local_experts", 16},
    {"phimoe", "rms_norm_eps", 1e-5},
    {"phimoe", "partial_rotary_factor", 1},
    {"phimoe", "original_max_position_embeddings", 4096},
    {"phimoe", "rope_theta", 1e6},
    {"phi", "partial_rotary_factor", 0.5},
    {"phi", "layer_norm_eps", 1e-5},
};

}  // namespace phi

extern const FamilyGroup families_phi;
constinit const FamilyGroup families_phi = {phi::kFamilies, phi::kDefaults};

}  // namespace cairn::convert
