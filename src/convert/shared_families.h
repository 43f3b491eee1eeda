// What several families have in common: lists of names, hyperparameters, tensors made here.
// Pure; any thread.
#pragma once

#include "convert/parameters.h"
#include "convert/tensor_plan.h"

namespace cairn::convert {

// Experts as Qwen names them, written in the order of these rows.
inline constexpr NameRow kQwenExperts[] = {
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

// Granite's, two matrices in one; without experts the shared one is all that a layer has.
inline constexpr NameRow kGraniteExperts[] = {
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"block_sparse_moe.input_linear", "ffn_gate_exps", "ffn_up_exps"},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
    {"shared_mlp.input_linear", "ffn_gate_shexp", "ffn_up_shexp"},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
};

// Experts as Mixtral names them.
inline constexpr NameRow kMixtralExperts[] = {
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.e_score_correction", "exp_probs_b"},
    {"block_sparse_moe.experts.*.w1", "ffn_gate_exps"},
    {"block_sparse_moe.experts.*.w2", "ffn_down_exps"},
    {"block_sparse_moe.experts.*.w3", "ffn_up_exps"},
};

// Norms before and behind both halves of a layer.
inline constexpr NameRow kFourNorms[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
};

// The common list, the size of the vocabulary, and how much of a head rotates: all of it.
Status add_llama_parameters(ParameterWriter& writer, ParameterWriter::HeadDim head_dim);

// Llama's list, without a head's width, and Granite's multipliers.
Status add_granite_parameters(ParameterWriter& writer);

// The common list and the widths of Qwen's experts.
Status add_qwen_moe_parameters(ParameterWriter& writer);

// The end of the list of DeepSeek's relatives: layers without experts at the front,
// experts for every token, and how the chosen ones' weights are scaled.
Status add_shared_expert_parameters(ParameterWriter& writer);

// rope_freqs, where the model has Llama 3's rotary scaling.
Status add_llama3_factors(TensorPlan& plan);

// rope_factors_long and rope_factors_short, and the factor of attention, where it has long ones.
Status add_long_factors(TensorPlan& plan);

// [experts, columns, 2 rows]: gate and up of each expert side by side, transposed.
Status add_transposed_halves(TensorPlan& plan, const TensorName& name, const SourceTensor& source);

// True for the output matrix where config.json says that it is the embedding: it is left out.
bool is_tied_output(const TensorPlan& plan, const TensorName& name);

}  // namespace cairn::convert
