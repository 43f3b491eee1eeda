// Mamba, Falcon Mamba (which norms steps and inputs too) and Mamba 2.
#include <algorithm>

#include "convert/shared_families.h"
#include "convert/ssm_tensors.h"

namespace cairn::convert {
namespace mamba {

constexpr std::string_view kMambaClasses[] = {"MambaForCausalLM", "MambaLMHeadModel",
                                              "FalconMambaForCausalLM"};
constexpr std::string_view kMamba2Classes[] = {"Mamba2ForCausalLM"};

constexpr NameRow kMamba[] = {
    {"backbone.embeddings", "token_embd"},
    {"backbone.embedding", "token_embd"},
    {"backbone.norm_f", "output_norm"},
    {"norm", "attn_norm"},
    {"mixer.in_proj", "ssm_in"},
    {"mixer.conv1d", "ssm_conv1d", {}, Edit::squeeze},
    {"mixer.x_proj", "ssm_x"},
    {"mixer.dt_proj", "ssm_dt"},
    {"mixer.A_log", "ssm_a", {}, Edit::negative_exp, true},
    {"mixer.D", "ssm_d", {}, Edit::none, true},
    {"mixer.out_proj", "ssm_out"},
};
constexpr NameRow kMamba2[] = {
    {"backbone.embeddings", "token_embd"},
    {"backbone.norm_f", "output_norm"},
    {"norm", "attn_norm"},
    {"mixer.in_proj", "ssm_in"},
    {"mixer.conv1d", "ssm_conv1d", {}, Edit::squeeze},
    {"mixer.out_proj", "ssm_out"},
};

// A state is as good at any length; for those who ask for the model's own.
constexpr uint32_t kContext = 1u << 20;
// How much wider a layer is than the model, and what a step has of its width.
constexpr int64_t kExpand = 2, kStepPart = 16;

// What is missing or 0 has a default.
Result<int64_t> count_or(const Config& config, ParameterWriter::Keys keys, int64_t otherwise) {
  CAIRN_TRY(const std::optional<int64_t> count, config.count_if_set(keys));
  return count.value_or(0) != 0 ? *count : otherwise;
}

Status add_start(ParameterWriter& writer, int64_t width) {
  writer.set("context_length", kContext);
  writer.set("embedding_length", uint32_t(width));
  // There is neither, but readers ask for them.
  writer.set("feed_forward_length", uint32_t(0));
  writer.set("attention.head_count", uint32_t(0));
  return writer.add_count("block_count", {"num_hidden_layers", "n_layer", "n_layers"});
}

Status add_epsilon(ParameterWriter& writer) {
  if (writer.config().find({"layer_norm_epsilon", "rms_norm_eps"}) == nullptr) {
    writer.set("attention.layer_norm_rms_epsilon", 1e-5f);
    return Ok{};
  }
  return writer.add_number("attention.layer_norm_rms_epsilon",
                           {"layer_norm_epsilon", "rms_norm_eps"});
}

Status add_mamba(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const int64_t width, config.count({"hidden_size", "d_model"}));
  CAIRN_TRY(const int64_t inner,
            count_or(config, {"intermediate_size", "d_inner"}, kExpand * width));
  if (inner != kExpand * width) {
    return fail(ErrorCode::unsupported, "intermediate_size: expected {}, found {}", kExpand * width,
                inner);
  }
  CAIRN_TRY(const int64_t taps, count_or(config, {"conv_kernel", "d_conv"}, 4));
  CAIRN_TRY(const int64_t state, count_or(config, {"state_size", "d_state"}, 16));
  CAIRN_TRY(const int64_t rank,
            count_or(config, {"time_step_rank", "dt_rank"}, (width + kStepPart - 1) / kStepPart));
  CAIRN_TRY(add_start(writer, width));
  writer.set("ssm.conv_kernel", uint32_t(taps));
  writer.set("ssm.inner_size", uint32_t(inner));
  writer.set("ssm.state_size", uint32_t(state));
  writer.set("ssm.time_step_rank", uint32_t(rank));
  CAIRN_TRY(add_epsilon(writer));
  writer.set("ssm.dt_b_c_rms", config.model_type() == "falcon_mamba");
  writer.add_file_type();
  return Ok{};
}

Status add_mamba2(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(const int64_t width, config.count({"hidden_size", "d_model", "dim"}));
  CAIRN_TRY(const int64_t expand, count_or(config, {"expand"}, kExpand));
  CAIRN_TRY(const int64_t inner,
            count_or(config, {"intermediate_size", "d_inner"}, expand * width));
  CAIRN_TRY(const int64_t head, count_or(config, {"head_dim"}, 64));
  CAIRN_TRY(const int64_t taps, count_or(config, {"conv_kernel", "d_conv"}, 4));
  CAIRN_TRY(const int64_t state, count_or(config, {"state_size", "d_state"}, 128));
  CAIRN_TRY(const int64_t groups, count_or(config, {"n_groups"}, 1));
  if (inner != expand * width || inner % head != 0) {
    return fail(ErrorCode::unsupported,
                "head_dim: expected a divisor of {}, found {} and {} inside", expand * width, head,
                inner);
  }
  CAIRN_TRY(add_start(writer, width));
  writer.set("ssm.conv_kernel", uint32_t(taps));
  writer.set("ssm.inner_size", uint32_t(inner));
  writer.set("ssm.state_size", uint32_t(state));
  writer.set("ssm.time_step_rank", uint32_t(inner / head));
  writer.set("ssm.group_count", uint32_t(groups));
  CAIRN_TRY(add_epsilon(writer));
  writer.add_file_type();
  return Ok{};
}

// An output matrix that is the embedding once more is left out.
Result<bool> add_mamba_tensor(TensorPlan& plan, const TensorName& name,
                              const SourceTensor& source) {
  if (name.rest != "lm_head") return false;
  for (const SourceTensor& other : plan.checkpoint().tensors()) {
    if (!other.name.starts_with("backbone.embedding")) continue;
    return std::ranges::equal(other.bytes, source.bytes);
  }
  return false;
}

Result<bool> add_mamba2_parts(TensorPlan& plan, const TensorName& name,
                              const SourceTensor& source) {
  CAIRN_TRY(const int64_t groups, count_or(plan.config(), {"n_groups"}, 1));
  return add_mamba2_tensor(plan, name, source, "mixer.", groups);
}

constexpr Family kFamilies[] = {
    {.classes = kMambaClasses,
     .architecture = "mamba",
     .names = kMamba,
     .parameters = add_mamba,
     .tensor = add_mamba_tensor,
     .vocabulary_multiple = 8},
    {.classes = kMamba2Classes,
     .architecture = "mamba2",
     .names = kMamba2,
     .parameters = add_mamba2,
     .tensor = add_mamba2_parts,
     .vocabulary = VocabularyFile::sentencepiece_first,
     .vocabulary_multiple = 16},
};

}  // namespace mamba

extern const FamilyGroup families_mamba;
constinit const FamilyGroup families_mamba = {mamba::kFamilies};

}  // namespace cairn::convert
