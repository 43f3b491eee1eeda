// Each is used by at least two files of families/.
#include "convert/shared_families.h"

#include <utility>

#include "convert/rope_factors.h"

namespace cairn::convert {

Status add_llama_parameters(ParameterWriter& writer, ParameterWriter::HeadDim head_dim) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common(head_dim));
  CAIRN_TRY(writer.add_count("vocab_size", {"vocab_size"}));
  CAIRN_TRY(const int64_t heads, config.positive("num_attention_heads"));
  CAIRN_TRY(const int64_t width, config.count("hidden_size"));
  CAIRN_TRY(const std::optional<int64_t> stated, config.count_if_set({"head_dim"}));
  const bool counts = head_dim == ParameterWriter::HeadDim::added && stated.has_value();
  writer.set("rope.dimension_count", uint32_t(counts ? *stated : width / heads));
  return Ok{};
}

Status add_granite_parameters(ParameterWriter& writer) {
  CAIRN_TRY(add_llama_parameters(writer, ParameterWriter::HeadDim::left_out));
  CAIRN_TRY(writer.add_multiplier("attention.scale", "attention_multiplier"));
  CAIRN_TRY(writer.add_multiplier("embedding_scale", "embedding_multiplier"));
  CAIRN_TRY(writer.add_multiplier("residual_scale", "residual_multiplier"));
  CAIRN_TRY(writer.add_multiplier("logit_scale", "logits_scaling"));
  return writer.add_count_if_set("expert_shared_feed_forward_length", {"shared_intermediate_size"});
}

Status add_qwen_moe_parameters(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(writer.add_count_if_set("expert_feed_forward_length", {"moe_intermediate_size"}));
  return writer.add_count_if_set("expert_shared_feed_forward_length",
                                 {"shared_expert_intermediate_size"});
}

Status add_shared_expert_parameters(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_count_if_set("leading_dense_block_count", {"first_k_dense_replace"}));
  CAIRN_TRY(writer.add_count_if_set("expert_shared_count", {"n_shared_experts"}));
  CAIRN_TRY(writer.add_number_if_set("expert_weights_scale", {"routed_scaling_factor"}));
  writer.add_flag_if_set("expert_weights_norm", "norm_topk_prob");
  return Ok{};
}

bool is_tied_output(const TensorPlan& plan, const TensorName& name) {
  const Json* tied = plan.config().find("tie_word_embeddings");
  return name.rest == "lm_head" && tied != nullptr && tied->as_boolean().value_or(false);
}

Status add_transposed_halves(TensorPlan& plan, const TensorName& name, const SourceTensor& source) {
  if (source.shape.size() != 3 || source.shape[2] % 2 != 0) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected two matrices in one, found shape {}",
                source.name, shape_text(source));
  }
  const int64_t experts = source.shape[0], columns = source.shape[1], both = source.shape[2];
  static constexpr std::string_view kTargets[] = {"ffn_gate_exps", "ffn_up_exps"};
  for (int64_t part = 0; part < 2; ++part) {
    PlannedTensor tensor =
        plan.start(TensorPlan::target_name(name, kTargets[part]), {columns, both / 2, experts});
    for (int64_t expert = 0; expert < experts; ++expert) {
      const int64_t first = expert * columns * both + part * (both / 2);
      tensor.runs.push_back({&source, first, both / 2, 1, both});
    }
    CAIRN_TRY(plan.add(std::move(tensor)));
  }
  return Ok{};
}

Status add_llama3_factors(TensorPlan& plan) {
  CAIRN_TRY(std::vector<float> factors, llama3_factors(plan.config()));
  if (!factors.empty()) plan.add_numbers("rope_freqs.weight", std::move(factors));
  return Ok{};
}

Status add_long_factors(TensorPlan& plan) {
  CAIRN_TRY(LongFactors factors, long_rope_factors(plan.config()));
  if (factors.long_factors.empty()) return Ok{};
  plan.out().set(std::string(plan.family().architecture) + ".rope.scaling.attn_factor",
                 factors.attention_factor);
  plan.add_numbers("rope_factors_long.weight", std::move(factors.long_factors));
  plan.add_numbers("rope_factors_short.weight", std::move(factors.short_factors));
  return Ok{};
}

}  // namespace cairn::convert
