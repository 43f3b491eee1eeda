// MiniCPM 3: DeepSeek's attention with the widening matrix as it is, and two sets of rotary
// factors.
#include <utility>
#include <vector>

#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace minicpm3 {

constexpr NameRow kNames[] = {
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.kv_b_proj", "attn_kv_b"},
};
constexpr std::string_view kClasses[] = {"MiniCPM3ForCausalLM"};

Status add_minicpm3(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const int64_t turning, config.count("qk_rope_head_dim"));
  CAIRN_TRY(const int64_t still, config.count("qk_nope_head_dim"));
  writer.add_file_type();
  CAIRN_TRY(writer.add_context());
  CAIRN_TRY(writer.add_count("embedding_length", {"hidden_size"}));
  CAIRN_TRY(writer.add_layer_count());
  CAIRN_TRY(writer.add_count("feed_forward_length", {"intermediate_size"}));
  CAIRN_TRY(writer.add_head_counts());
  CAIRN_TRY(writer.add_number("attention.layer_norm_rms_epsilon", {"rms_norm_eps"}));
  CAIRN_TRY(writer.add_count("vocab_size", {"vocab_size"}));
  CAIRN_TRY(writer.add_count_if_set("attention.q_lora_rank", {"q_lora_rank"}));
  CAIRN_TRY(writer.add_count("attention.kv_lora_rank", {"kv_lora_rank"}));
  writer.set("attention.key_length", uint32_t(still + turning));
  writer.set("rope.dimension_count", uint32_t(turning));
  return Ok{};
}

Status add_factors(TensorPlan& plan) {
  const Json& rope = plan.config().rope();
  if (rope.find_set("long_factor") == nullptr && rope.find_set("short_factor") == nullptr) {
    return Ok{};
  }
  CAIRN_TRY(const int64_t dims, plan.config().count("qk_rope_head_dim"));
  CAIRN_TRY(std::vector<float> far, factor_list(rope, "long_factor", dims / 2));
  CAIRN_TRY(std::vector<float> near, factor_list(rope, "short_factor", dims / 2));
  plan.add_numbers("rope_factors_long.weight", std::move(far));
  plan.add_numbers("rope_factors_short.weight", std::move(near));
  return Ok{};
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "minicpm3",
     .names = kNames,
     .parameters = add_minicpm3,
     .extra_tensors = add_factors,
     .vocabulary = VocabularyFile::sentencepiece_first},
};

}  // namespace minicpm3

extern const FamilyGroup families_minicpm3;
constinit const FamilyGroup families_minicpm3 = {minicpm3::kFamilies};

}  // namespace cairn::convert
