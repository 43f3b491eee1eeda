// StableLM.
#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace {

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

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "stablelm",
     .parameters = add_stablelm,
     .pretokenizers = kPretokenizers},
};
constexpr ConfigDefault kDefaults[] = {
    {"stablelm", "partial_rotary_factor", 0.25},
    {"stablelm", "layer_norm_eps", 1e-5},
};

}  // namespace

extern const FamilyGroup families_stablelm;
constinit const FamilyGroup families_stablelm = {kFamilies, kDefaults};

}  // namespace cairn::convert
