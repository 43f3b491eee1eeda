// ERNIE 4.5, with and without experts. Older files have q, k and v in one matrix.
#include "convert/shared_families.h"
#include "convert/special_tokens.h"

namespace cairn::convert {
namespace ernie {

constexpr NameRow kErnie[] = {
    {"mlp.up_gate_proj", "ffn_gate", "ffn_up"},
};
constexpr NameRow kErnieMoe[] = {
    {"mlp.up_gate_proj", "ffn_gate", "ffn_up"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.moe_statics.e_score_correction", "exp_probs_b"},
    {"mlp.experts.*.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.*.up_proj", "ffn_up_exps"},
    {"mlp.experts.*.down_proj", "ffn_down_exps"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
};
constexpr std::string_view kErnieClasses[] = {"Ernie4_5ForCausalLM", "Ernie4_5_ForCausalLM"};
constexpr std::string_view kErnieMoeClasses[] = {"Ernie4_5_MoeForCausalLM"};

Status add_ernie_moe(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(writer.add_count("expert_count", {"moe_num_experts"}));
  CAIRN_TRY(writer.add_count("expert_used_count", {"moe_k"}));
  CAIRN_TRY(writer.add_count("interleave_moe_layer_step", {"moe_layer_interval"}));
  CAIRN_TRY(writer.add_count("leading_dense_block_count", {"moe_layer_start_index"}));
  CAIRN_TRY(writer.add_count_if_set("expert_feed_forward_length", {"moe_intermediate_size"}));
  CAIRN_TRY(const std::optional<int64_t> shared, config.count_if_set({"moe_num_shared_experts"}));
  if (!shared) return Ok{};
  writer.set("expert_shared_count", uint32_t(*shared));
  if (*shared == 0) return Ok{};
  // The usual converter writes the dense layers' width by the heads of keys, which is the same in
  // every published model.
  CAIRN_TRY(const int64_t width, config.count("moe_intermediate_size"));
  if (width * *shared > INT32_MAX) {
    return fail(ErrorCode::invalid_data, "moe_intermediate_size: expected less, found {}", width);
  }
  writer.set("expert_shared_feed_forward_length", uint32_t(width * *shared));
  return Ok{};
}

Result<bool> split_heads(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (name.rest.starts_with("model.mtp_")) return true;
  if (name.rest != "self_attn.qkv_proj") return false;
  const int64_t heads = plan.head_count(), kv_heads = plan.kv_head_count();
  const int64_t row_count = source.shape[0], parts = heads + 2 * kv_heads;
  if (parts < 1 || row_count % parts != 0) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected rows of {} heads, found shape {}",
                source.name, parts, shape_text(source));
  }
  const int64_t dim = row_count / parts;
  const TensorPlan::Rows q[] = {{0, heads * dim}}, k[] = {{heads * dim, kv_heads * dim}};
  const TensorPlan::Rows v[] = {{(heads + kv_heads) * dim, kv_heads * dim}};
  CAIRN_TRY(plan.add_rows(name, "attn_q", source, q));
  CAIRN_TRY(plan.add_rows(name, "attn_k", source, k));
  CAIRN_TRY(plan.add_rows(name, "attn_v", source, v));
  return true;
}

void add_tokens(const Config&, const TokenizerFiles& files, KeyValues& out) {
  const Json* prefix = files.tokenizer_config.find_set("add_prefix_space");
  if (prefix != nullptr && prefix->as_boolean()) {
    out.set("tokenizer.ggml.add_space_prefix", *prefix->as_boolean());
  }
}

constexpr Family kFamilies[] = {
    {.classes = kErnieClasses,
     .architecture = "ernie4_5",
     .names = kErnie,
     .tensor = split_heads,
     .tokens = add_tokens,
     .vocabulary = VocabularyFile::sentencepiece_first},
    {.classes = kErnieMoeClasses,
     .architecture = "ernie4_5-moe",
     .names = kErnieMoe,
     .parameters = add_ernie_moe,
     .tensor = split_heads,
     .tokens = add_tokens,
     .vocabulary = VocabularyFile::sentencepiece_first},
};

constexpr ConfigDefault kDefaults[] = {
    {"ernie4_5", "num_key_value_heads", 2},
    {"ernie4_5", "rms_norm_eps", 1e-5},
    {"ernie4_5", "rope_theta", 5e5},
    {"ernie4_5", "head_dim", 128},
    {"ernie4_5_moe", "rms_norm_eps", 1e-5},
    {"ernie4_5_moe", "rope_theta", 5e5},
    {"ernie4_5_moe", "moe_k", 6},
    {"ernie4_5_moe", "moe_num_experts", 64},
    {"ernie4_5_moe", "moe_layer_interval", 1},
    {"ernie4_5_moe", "moe_layer_start_index", 1},
};

}  // namespace ernie

extern const FamilyGroup families_ernie;
constinit const FamilyGroup families_ernie = {ernie::kFamilies, ernie::kDefaults};

}  // namespace cairn::convert
