// StableLM. The larger ones have a norm for each head.
#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace stablelm {

constexpr PretokenizerAlias kPretokenizers[] = {{"qwen2", "stablelm2"}};
constexpr std::string_view kClasses[] = {"StableLmForCausalLM", "StableLMEpochForCausalLM"};

Status add_stablelm(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const int64_t width, config.count("hidden_size"));
  CAIRN_TRY(const int64_t heads, config.positive("num_attention_heads"));
  CAIRN_TRY(const double part, rotated_part(config));
  CAIRN_TRY(writer.add_context());
  writer.set("embedding_length", uint32_t(width));
  CAIRN_TRY(writer.add_count("block_count", {"num_hidden_layers"}));
  CAIRN_TRY(writer.add_count("feed_forward_length", {"intermediate_size"}));
  writer.set("rope.dimension_count", uint32_t(part * double(width / heads)));
  writer.set("attention.head_count", uint32_t(heads));
  CAIRN_TRY(writer.add_count("attention.head_count_kv", {"num_key_value_heads"}));
  writer.add_flag("use_parallel_residual", "use_parallel_residual");
  CAIRN_TRY(writer.add_number("attention.layer_norm_epsilon", {"layer_norm_eps"}));
  writer.add_file_type();
  return Ok{};
}

// A norm for each head is one matrix, once the last of the layer has come.
Result<bool> stack_norms(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  const bool is_q = name.rest.starts_with("self_attn.q_layernorm.norms.");
  if (!is_q && !name.rest.starts_with("self_attn.k_layernorm.norms.")) return false;
  const int64_t heads = is_q ? plan.head_count() : plan.kv_head_count();
  const int64_t dim = source.number_count();
  const std::string_view stem =
      std::string_view(source.name).substr(0, source.name.find(".norms.") + 7);
  PlannedTensor tensor =
      plan.start(TensorPlan::target_name(name, is_q ? "attn_q_norm" : "attn_k_norm"), {dim, heads});
  const SourceTensor* last = nullptr;
  for (int64_t head = 0; head < heads; ++head) {
    const SourceTensor* norm = plan.checkpoint().find(fmt::format("{}{}.weight", stem, head));
    if (norm == nullptr || norm->number_count() != dim) {
      return fail(ErrorCode::invalid_data, "tensor {}{}.weight: expected {} numbers, found {}",
                  stem, head, dim, norm == nullptr ? 0 : norm->number_count());
    }
    tensor.runs.push_back({norm, 0, 1, dim});
    last = std::max(last, norm, std::less<>());
  }
  if (last == &source) CAIRN_TRY(plan.add(std::move(tensor)));
  return true;
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "stablelm",
     .parameters = add_stablelm,
     .tensor = stack_norms,
     .pretokenizers = kPretokenizers},
};
constexpr ConfigDefault kDefaults[] = {
    {"stablelm", "partial_rotary_factor", 0.25},
    {"stablelm", "layer_norm_eps", 1e-5},
};

}  // namespace stablelm

extern const FamilyGroup families_stablelm;
constinit const FamilyGroup families_stablelm = {stablelm::kFamilies, stablelm::kDefaults};

}  // namespace cairn::convert
