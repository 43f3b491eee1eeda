// Qwen 2, 2 MoE, 3, 3 MoE, and Seed-OSS, which is built like Qwen 2 with another norm's name.
#include "convert/shared_families.h"

namespace cairn::convert {
namespace qwen {

constexpr NameRow kSeedOss[] = {
    {"post_attention_layernorm", "post_attention_norm"},
};

constexpr std::string_view kQwen2Classes[] = {"Qwen2ForCausalLM"};
constexpr std::string_view kQwen2MoeClasses[] = {"Qwen2MoeForCausalLM"};
constexpr std::string_view kQwen3Classes[] = {"Qwen3ForCausalLM"};
constexpr std::string_view kQwen3MoeClasses[] = {"Qwen3MoeForCausalLM"};
constexpr std::string_view kSeedOssClasses[] = {"SeedOssForCausalLM"};

constexpr Family kFamilies[] = {
    {.classes = kQwen2Classes,
     .architecture = "qwen2",
     .vocabulary = VocabularyFile::sentencepiece_first},
    {.classes = kQwen2MoeClasses,
     .architecture = "qwen2moe",
     .names = kQwenExperts,
     .parameters = add_qwen_moe_parameters},
    {.classes = kQwen3Classes,
     .architecture = "qwen3",
     .vocabulary = VocabularyFile::sentencepiece_first},
    {.classes = kQwen3MoeClasses,
     .architecture = "qwen3moe",
     .names = kQwenExperts,
     .parameters = add_qwen_moe_parameters},
    {.classes = kSeedOssClasses, .architecture = "seed_oss", .names = kSeedOss},
};

constexpr ConfigDefault kDefaults[] = {
    {"qwen2", "rms_norm_eps", 1e-6},     {"qwen2_moe", "rms_norm_eps", 1e-6},
    {"qwen3", "rms_norm_eps", 1e-6},     {"qwen3", "head_dim", 128},
    {"qwen3_moe", "rms_norm_eps", 1e-6}, {"seed_oss", "rms_norm_eps", 1e-6},
    {"seed_oss", "head_dim", 128},
};

}  // namespace qwen

extern const FamilyGroup families_qwen;
constinit const FamilyGroup families_qwen = {qwen::kFamilies, qwen::kDefaults};

}  // namespace cairn::convert
