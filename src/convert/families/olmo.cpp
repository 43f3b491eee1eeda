// OLMo 1 to 3 and OLMoE.
#include <utility>

#include "convert/shared_families.h"

namespace cairn::convert {
namespace olmo {

constexpr std::string_view kOlmoClasses[] = {"OlmoForCausalLM"};
constexpr std::string_view kOlmo2Classes[] = {"Olmo2ForCausalLM", "Olmo3ForCausalLM"};
constexpr std::string_view kOlmoeClasses[] = {"OlmoeForCausalLM"};

// Its norms have no weights and one epsilon.
Status add_olmo(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_common());
  writer.set("attention.layer_norm_epsilon", 1e-5f);
  return writer.add_number_if_set("attention.clamp_kqv", {"clip_qkv"});
}

Status add_olmo2(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(const std::optional<int64_t> window, config.count_if_set({"sliding_window"}));
  if (!window) return Ok{};
  writer.set("attention.sliding_window", uint32_t(*window));
  CAIRN_TRY(const int64_t layer_count, config.count("num_hidden_layers"));
  if (layer_count > kLayerCountMax) {
    return fail(ErrorCode::invalid_data, "num_hidden_layers: expected at most {}, found {}",
                kLayerCountMax, layer_count);
  }
  std::vector<bool> pattern;
  if (config.find("layer_types") != nullptr) {
    CAIRN_TRY(pattern, writer.sliding_layers());
  } else {
    // Every fourth layer sees everything.
    for (int64_t layer = 1; layer <= layer_count; ++layer) pattern.push_back(layer % 4 != 0);
  }
  writer.set("attention.sliding_window_pattern", std::move(pattern));
  return Ok{};
}

Status add_olmoe(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_common());
  writer.set("attention.layer_norm_rms_epsilon", 1e-5f);
  return Ok{};
}

constexpr Family kFamilies[] = {
    {.classes = kOlmoClasses,
     .architecture = "olmo",
     .parameters = add_olmo,
     .interleaves_heads = true,
     .gpt2_name = "olmo"},
    {.classes = kOlmo2Classes,
     .architecture = "olmo2",
     .names = kFourNorms,
     .parameters = add_olmo2,
     .gpt2_name = "olmo"},
    {.classes = kOlmoeClasses,
     .architecture = "olmoe",
     .names = kQwenExperts,
     .parameters = add_olmoe,
     .gpt2_name = "olmo"},
};

constexpr ConfigDefault kDefaults[] = {
    {"olmo2", "rms_norm_eps", 1e-5}, {"olmo3", "rms_norm_eps", 1e-5},
    {"olmo3", "rope_theta", 5e5},    {"olmo3", "sliding_window", 4096},
    {"olmoe", "rms_norm_eps", 1e-5},
};

}  // namespace olmo

extern const FamilyGroup families_olmo;
constinit const FamilyGroup families_olmo = {olmo::kFamilies, olmo::kDefaults};

}  // namespace cairn::convert
