// The text side of Qwen's models that see: 2, 2.5, 3, 3 with experts.
#include "convert/shared_families.h"

namespace cairn::convert {
namespace qwen_vl {

constexpr std::string_view kQwen2Classes[] = {"Qwen2VLForConditionalGeneration",
                                              "Qwen2_5_VLForConditionalGeneration"};
constexpr std::string_view kQwen3Classes[] = {"Qwen3VLForConditionalGeneration"};
constexpr std::string_view kQwen3MoeClasses[] = {"Qwen3VLMoeForConditionalGeneration"};

// How many of the first layers are given pictures too.
Status add_picture_layers(ParameterWriter& writer) {
  const Json* vision = writer.config().find("vision_config");
  const Json* list = vision == nullptr ? nullptr : vision->find("deepstack_visual_indexes");
  writer.set("n_deepstack_layers", uint32_t(list == nullptr ? 0 : list->items().size()));
  return Ok{};
}

Status add_qwen3(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_common());
  return add_picture_layers(writer);
}

Status add_qwen3_moe(ParameterWriter& writer) {
  CAIRN_TRY(add_qwen_moe_parameters(writer));
  return add_picture_layers(writer);
}

// Experts that were published lie transposed; a library that saves them again may turn them.
Result<bool> add_experts(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  const bool is_down = name.rest == "mlp.experts.down_proj";
  if (!is_down && name.rest != "mlp.experts.gate_up_proj") return false;
  CAIRN_TRY(const int64_t width, plan.config().count("hidden_size"));
  CAIRN_TRY(const int64_t inner, plan.config().count("moe_intermediate_size"));
  if (source.shape.size() != 3) return false;
  const bool is_published = is_down ? source.shape[1] == inner && source.shape[2] == width
                                    : source.shape[1] == width && source.shape[2] == 2 * inner;
  if (!is_published) return false;
  if (!is_down) {
    CAIRN_TRY(add_transposed_halves(plan, name, source));
    return true;
  }
  CAIRN_TRY(plan.add_row(name, {"", "ffn_down_exps", {}, Edit::transpose}, source));
  return true;
}

constexpr Family kFamilies[] = {
    {.classes = kQwen2Classes,
     .architecture = "qwen2vl",
     .vocabulary = VocabularyFile::sentencepiece_first},
    {.classes = kQwen3Classes,
     .architecture = "qwen3vl",
     .parameters = add_qwen3,
     .vocabulary = VocabularyFile::sentencepiece_first},
    {.classes = kQwen3MoeClasses,
     .architecture = "qwen3vlmoe",
     .names = kQwenExperts,
     .parameters = add_qwen3_moe,
     .tensor = add_experts},
};

constexpr ConfigDefault kDefaults[] = {
    {"qwen2_vl_text", "rms_norm_eps", 1e-5},     {"qwen2_vl", "rms_norm_eps", 1e-5},
    {"qwen2_5_vl_text", "rms_norm_eps", 1e-5},   {"qwen2_5_vl", "rms_norm_eps", 1e-5},
    {"qwen3_vl_text", "rms_norm_eps", 1e-6},     {"qwen3_vl_text", "head_dim", 128},
    {"qwen3_vl_moe_text", "rms_norm_eps", 1e-6},
};

}  // namespace qwen_vl

extern const FamilyGroup families_qwen_vl;
constinit const FamilyGroup families_qwen_vl = {qwen_vl::kFamilies, qwen_vl::kDefaults};

}  // namespace cairn::convert
