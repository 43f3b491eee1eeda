// DBRX. Its experts are one matrix of rows for each part; its configuration is nested.
#include <utility>

#include "convert/shared_families.h"

namespace cairn::convert {
namespace dbrx {

constexpr NameRow kNames[] = {
    {"transformer.wte", "token_embd"},        {"transformer.norm_f", "output_norm"},
    {"norm_attn_norm.norm_1", "attn_norm"},   {"norm_attn_norm.norm_2", "attn_output_norm"},
    {"norm_attn_norm.attn.Wqkv", "attn_qkv"}, {"norm_attn_norm.attn.out_proj", "attn_output"},
};
constexpr std::string_view kClasses[] = {"DbrxForCausalLM"};

Result<double> nested(const Config& config, std::string_view part, std::string_view key) {
  const Json* inside = config.find(part);
  const Json* value = inside == nullptr ? nullptr : inside->find_set(key);
  if (value != nullptr && value->as_real()) return *value->as_real();
  return fail(ErrorCode::invalid_data, "{}.{}: expected a number, found {}", part, key,
              value == nullptr ? "none" : value->describe());
}

Result<uint32_t> nested_count(const Config& config, std::string_view part, std::string_view key) {
  CAIRN_TRY(const double number, nested(config, part, key));
  if (number >= 0 && number < double(INT32_MAX)) return uint32_t(number);
  return fail(ErrorCode::invalid_data, "{}.{}: expected a count, found {}", part, key, number);
}

Status add_dbrx(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const uint32_t inner, nested_count(config, "ffn_config", "ffn_hidden_size"));
  CAIRN_TRY(const uint32_t kv_heads, nested_count(config, "attn_config", "kv_n_heads"));
  CAIRN_TRY(const double base, nested(config, "attn_config", "rope_theta"));
  CAIRN_TRY(const double clip, nested(config, "attn_config", "clip_qkv"));
  CAIRN_TRY(const uint32_t experts, nested_count(config, "ffn_config", "moe_num_experts"));
  CAIRN_TRY(const uint32_t used, nested_count(config, "ffn_config", "moe_top_k"));
  CAIRN_TRY(writer.add_layer_count());
  CAIRN_TRY(writer.add_count("context_length", {"max_seq_len"}));
  CAIRN_TRY(writer.add_count("embedding_length", {"d_model"}));
  writer.set("feed_forward_length", inner);
  CAIRN_TRY(writer.add_count("attention.head_count", {"n_heads"}));
  writer.set("attention.head_count_kv", kv_heads);
  writer.set("rope.freq_base", float(base));
  writer.set("attention.clamp_kqv", float(clip));
  writer.set("expert_count", experts);
  writer.set("expert_used_count", used);
  writer.set("attention.layer_norm_epsilon", 1e-5f);
  writer.add_file_type();
  return Ok{};
}

// [experts * inner, width]: w1 and v1 as they are, w2 transposed.
Result<bool> add_tensor(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  // The usual converter keeps this family's router in the type of the other matrices.
  if (name.rest == "ffn.router.layer") {
    CAIRN_TRY(plan.add_whole(name, "ffn_gate_inp", source, TensorPlan::Width::of_matrices));
    return true;
  }
  static constexpr std::string_view kExperts = "ffn.experts.mlp.";
  if (!name.rest.starts_with(kExperts)) return false;
  const std::string_view part = std::string_view(name.rest).substr(kExperts.size());
  const std::string_view target = part == "w1"   ? "ffn_gate_exps"
                                  : part == "v1" ? "ffn_up_exps"
                                  : part == "w2" ? "ffn_down_exps"
                                                 : "";
  CAIRN_TRY(const uint32_t experts, nested_count(plan.config(), "ffn_config", "moe_num_experts"));
  if (target.empty() || source.shape.size() != 2 || experts == 0 ||
      source.shape[0] % experts != 0) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected a part of {} experts, found shape {}",
                source.name, experts, shape_text(source));
  }
  const int64_t inner = source.shape[0] / experts, width = source.shape[1];
  const bool is_down = part == "w2";
  PlannedTensor tensor = plan.start(TensorPlan::target_name(name, target),
                                    {is_down ? inner : width, is_down ? width : inner, experts});
  if (!is_down) {
    tensor.runs.push_back({&source, 0, source.shape[0], width});
    CAIRN_TRY(plan.add(std::move(tensor)));
    return true;
  }
  for (int64_t expert = 0; expert < experts; ++expert) {
    tensor.runs.push_back({&source, expert * inner * width, width, 1, width});
  }
  CAIRN_TRY(plan.add(std::move(tensor)));
  return true;
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "dbrx",
     .names = kNames,
     .parameters = add_dbrx,
     .tensor = add_tensor},
};

}  // namespace dbrx

extern const FamilyGroup families_dbrx;
constinit const FamilyGroup families_dbrx = {dbrx::kFamilies};

}  // namespace cairn::convert
