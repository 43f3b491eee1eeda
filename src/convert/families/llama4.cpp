// Llama 4's text: experts in every so many layers, their matrices transposed.
#include <algorithm>
#include <string>
#include <utility>

#include "convert/shared_families.h"

namespace cairn::convert {
namespace llama4 {

constexpr NameRow kNames[] = {
    {"feed_forward.gate_proj", "ffn_gate"},
    {"feed_forward.up_proj", "ffn_up"},
    {"feed_forward.down_proj", "ffn_down"},
    {"feed_forward.router", "ffn_gate_inp"},
    {"feed_forward.experts.down_proj", "ffn_down_exps", {}, Edit::transpose},
    {"feed_forward.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"feed_forward.shared_expert.up_proj", "ffn_up_shexp"},
    {"feed_forward.shared_expert.down_proj", "ffn_down_shexp"},
};
constexpr PretokenizerAlias kPretokenizers[] = {{"gpt-4o", "llama4"}};
constexpr std::string_view kClasses[] = {"Llama4ForCausalLM", "Llama4ForConditionalGeneration"};

Status add_llama4(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(add_llama_parameters(writer, ParameterWriter::HeadDim::added));
  CAIRN_TRY(writer.add_count("feed_forward_length", {"intermediate_size_mlp"}));
  CAIRN_TRY(writer.add_count("interleave_moe_layer_step", {"interleave_moe_layer_step"}));
  CAIRN_TRY(writer.add_count("expert_feed_forward_length", {"intermediate_size"}));
  const Json* types = config.find("layer_types");
  if (types == nullptr) return Ok{};
  const bool sees_everything =
      std::all_of(types->items().begin(), types->items().end(),
                  [](const Json& type) { return type.as_text() == "full_attention"; });
  if (sees_everything) writer.set("attention.sliding_window", uint32_t(0));
  return Ok{};
}

Result<bool> split_experts(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (name.rest != "feed_forward.experts.gate_up_proj") return false;
  CAIRN_TRY(add_transposed_halves(plan, name, source));
  return true;
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "llama4",
     .names = kNames,
     .parameters = add_llama4,
     .extra_tensors = add_llama3_factors,
     .tensor = split_experts,
     .pretokenizers = kPretokenizers},
};

constexpr ConfigDefault kDefaults[] = {
    {"llama4_text", "rms_norm_eps", 1e-5},    {"llama4_text", "rope_theta", 5e5},
    {"llama4_text", "head_dim", 128},         {"llama4_text", "interleave_moe_layer_step", 1},
    {"llama4_text", "num_local_experts", 16}, {"llama4_text", "num_experts_per_tok", 1},
    {"llama4_text", "vocab_size", 202048},
};

}  // namespace llama4

extern const FamilyGroup families_llama4;
constinit const FamilyGroup families_llama4 = {llama4::kFamilies, llama4::kDefaults};

}  // namespace cairn::convert
