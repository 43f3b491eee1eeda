// The table. Class names are those of config.json's architectures, target names GGUF's.
#include "convert/family.h"

namespace cairn::convert {
namespace {

using Names = const NameRow[];
using Classes = const std::string_view[];

constexpr Names kCommon = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};
// Experts are written in the order of these rows.
constexpr Names kMixtral = {
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.experts.*.w1", "ffn_gate_exps"},
    {"block_sparse_moe.experts.*.w2", "ffn_down_exps"},
    {"block_sparse_moe.experts.*.w3", "ffn_up_exps"},
};
constexpr Names kQwenExperts = {
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
};
constexpr Names kFourNorms = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
};
constexpr Names kPhi3 = {
    {"self_attn.qkv_proj", "attn_qkv"},
    {"mlp.gate_up_proj", "ffn_up"},
};
constexpr Names kPhi2 = {
    {"self_attn.dense", "attn_output"},
    {"mlp.fc1", "ffn_up"},
    {"mlp.fc2", "ffn_down"},
    {"model.final_layernorm", "output_norm"},
};
constexpr Names kGraniteExperts = {
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"block_sparse_moe.input_linear", "ffn_gate_exps", "ffn_up_exps"},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
    {"shared_mlp.input_linear", "ffn_gate_shexp", "ffn_up_shexp"},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
};
constexpr Names kSeedOss = {
    {"post_attention_layernorm", "post_attention_norm"},
};
constexpr Names kStarcoder2 = {
    {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
};

constexpr Classes kLlamaClasses = {"LlamaForCausalLM", "LLaMAForCausalLM", "MistralForCausalLM",
                                   "MixtralForCausalLM"};
constexpr Classes kSmollm3Classes = {"SmolLM3ForCausalLM"};
constexpr Classes kGraniteClasses = {"GraniteForCausalLM"};
constexpr Classes kGraniteMoeClasses = {"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM"};
constexpr Classes kQwen2Classes = {"Qwen2ForCausalLM"};
constexpr Classes kQwen2MoeClasses = {"Qwen2MoeForCausalLM"};
constexpr Classes kQwen3Classes = {"Qwen3ForCausalLM"};
constexpr Classes kQwen3MoeClasses = {"Qwen3MoeForCausalLM"};
constexpr Classes kGemmaClasses = {"GemmaForCausalLM"};
constexpr Classes kGemma2Classes = {"Gemma2ForCausalLM"};
constexpr Classes kGemma3Classes = {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"};
constexpr Classes kPhi3Classes = {"Phi3ForCausalLM"};
constexpr Classes kPhi2Classes = {"PhiForCausalLM"};
constexpr Classes kOlmoClasses = {"OlmoForCausalLM"};
constexpr Classes kOlmo2Classes = {"Olmo2ForCausalLM", "Olmo3ForCausalLM"};
constexpr Classes kOlmoeClasses = {"OlmoeForCausalLM"};
constexpr Classes kSeedOssClasses = {"SeedOssForCausalLM"};
constexpr Classes kStablelmClasses = {"StableLmForCausalLM", "StableLMEpochForCausalLM"};
constexpr Classes kStarcoder2Classes = {"Starcoder2ForCausalLM"};

constexpr auto kSentencepiece = VocabularyFile::sentencepiece_first;

constexpr Family kFamilies[] = {
    {.classes = kLlamaClasses,
     .architecture = "llama",
     .names = kMixtral,
     .parameters = Parameters::llama,
     .vocabulary = kSentencepiece,
     .interleaves_heads = true},
    {.classes = kSmollm3Classes,
     .architecture = "smollm3",
     .parameters = Parameters::llama,
     .vocabulary = kSentencepiece,
     .interleaves_heads = true},
    {.classes = kGraniteClasses,
     .architecture = "granite",
     .parameters = Parameters::granite,
     .vocabulary = kSentencepiece,
     .interleaves_heads = true,
     .digits_name = "refact"},
    {.classes = kGraniteMoeClasses,
     .architecture = "granitemoe",
     .names = kGraniteExperts,
     .parameters = Parameters::granite,
     .vocabulary = kSentencepiece,
     .interleaves_heads = true,
     .digits_name = "refact"},
    {.classes = kQwen2Classes, .architecture = "qwen2", .vocabulary = kSentencepiece},
    {.classes = kQwen2MoeClasses,
     .architecture = "qwen2moe",
     .names = kQwenExperts,
     .parameters = Parameters::qwen_moe},
    {.classes = kQwen3Classes, .architecture = "qwen3", .vocabulary = kSentencepiece},
    {.classes = kQwen3MoeClasses,
     .architecture = "qwen3moe",
     .names = kQwenExperts,
     .parameters = Parameters::qwen_moe},
    {.classes = kGemmaClasses,
     .architecture = "gemma",
     .parameters = Parameters::gemma,
     .vocabulary = kSentencepiece,
     .norms_less_one = true,
     .drops_output = true},
    {.classes = kGemma2Classes,
     .architecture = "gemma2",
     .names = kFourNorms,
     .parameters = Parameters::gemma2,
     .vocabulary = kSentencepiece,
     .norms_less_one = true,
     .drops_output = true},
    {.classes = kGemma3Classes,
     .architecture = "gemma3",
     .names = kFourNorms,
     .parameters = Parameters::gemma3,
     .vocabulary = kSentencepiece,
     .norms_less_one = true},
    {.classes = kPhi3Classes,
     .architecture = "phi3",
     .names = kPhi3,
     .parameters = Parameters::phi3,
     .vocabulary = kSentencepiece},
    {.classes = kPhi2Classes,
     .architecture = "phi2",
     .names = kPhi2,
     .parameters = Parameters::phi2,
     .gpt2_name = "phi-2"},
    {.classes = kOlmoClasses,
     .architecture = "olmo",
     .parameters = Parameters::olmo,
     .interleaves_heads = true,
     .gpt2_name = "olmo"},
    {.classes = kOlmo2Classes,
     .architecture = "olmo2",
     .names = kFourNorms,
     .parameters = Parameters::olmo2,
     .gpt2_name = "olmo"},
    {.classes = kOlmoeClasses,
     .architecture = "olmoe",
     .names = kQwenExperts,
     .parameters = Parameters::olmoe,
     .gpt2_name = "olmo"},
    {.classes = kSeedOssClasses, .architecture = "seed_oss", .names = kSeedOss},
    {.classes = kStablelmClasses, .architecture = "stablelm", .parameters = Parameters::stablelm},
    {.classes = kStarcoder2Classes,
     .architecture = "starcoder2",
     .names = kStarcoder2,
     .digits_name = "starcoder"},
};

const NameRow* find_row(std::span<const NameRow> rows, std::string_view source) {
  for (const NameRow& row : rows) {
    if (row.source == source) return &row;
  }
  return nullptr;
}

}  // namespace

std::span<const Family> all_families() {
  return kFamilies;
}

const Family* find_family(std::string_view class_name) {
  for (const Family& family : kFamilies) {
    for (const std::string_view known : family.classes) {
      if (known == class_name) return &family;
    }
  }
  return nullptr;
}

const NameRow* find_name(const Family& family, std::string_view source) {
  const NameRow* own = find_row(family.names, source);
  return own != nullptr ? own : find_row(kCommon, source);
}

}  // namespace cairn::convert
