// EXAONE 3 (its names are those of its own code) and 4.
#include <string>
#include <utility>
#include <vector>

#include "convert/rope_factors.h"
#include "convert/shared_families.h"

namespace cairn::convert {
namespace exaone {

constexpr NameRow kExaone[] = {
    {"transformer.wte", "token_embd"},
    {"transformer.ln_f", "output_norm"},
    {"ln_1", "attn_norm"},
    {"ln_2", "ffn_norm"},
    {"attn.attention.q_proj", "attn_q"},
    {"attn.attention.k_proj", "attn_k"},
    {"attn.attention.v_proj", "attn_v"},
    {"attn.attention.out_proj", "attn_output"},
    {"mlp.c_fc_0", "ffn_gate"},
    {"mlp.c_fc_1", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
};
constexpr std::string_view kExaoneClasses[] = {"ExaoneForCausalLM"};
constexpr std::string_view kExaone4Classes[] = {"Exaone4ForCausalLM"};

Status add_exaone(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(const int64_t width, config.count("hidden_size"));
  CAIRN_TRY(const int64_t heads, config.positive("num_attention_heads"));
  double part = 1;
  if (config.rope().find_set("partial_rotary_factor") != nullptr) {
    CAIRN_TRY(part, rotated_part(config));
  }
  writer.set("rope.dimension_count", uint32_t(part * double(width / heads)));
  // Its norms have no mean. Readers ask for the key of such norms; the usual converter leaves it.
  return writer.add_number("attention.layer_norm_rms_epsilon", {"layer_norm_epsilon"});
}

// "LLLG" or a count says which layers see everything, where there is no list.
Result<std::vector<bool>> pattern_of(const Config& config) {
  std::vector<bool> pattern;
  const Json* stated = config.find("sliding_window_pattern");
  CAIRN_TRY(const int64_t layer_count, config.count("num_hidden_layers"));
  if (stated == nullptr || layer_count > kLayerCountMax) return pattern;
  const auto letters = stated->as_text();
  const auto period = stated->as_integer();
  for (int64_t layer = 0; layer < layer_count; ++layer) {
    if (letters && !letters->empty()) {
      pattern.push_back((*letters)[size_t(layer) % letters->size()] == 'L');
    } else if (period && *period > 0) {
      pattern.push_back((layer + 1) % *period != 0);
    }
  }
  return pattern;
}

Status add_exaone4(ParameterWriter& writer) {
  const Config& config = writer.config();
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(writer.add_count("vocab_size", {"vocab_size"}));
  if (config.find("sliding_window") == nullptr) return Ok{};
  CAIRN_TRY(writer.add_count("attention.sliding_window", {"sliding_window"}));
  const bool has_list = config.find("layer_types") != nullptr;
  CAIRN_TRY(std::vector<bool> pattern, has_list ? writer.sliding_layers() : pattern_of(config));
  if (!pattern.empty()) writer.set("attention.sliding_window_pattern", std::move(pattern));
  return Ok{};
}

constexpr Family kFamilies[] = {
    {.classes = kExaoneClasses,
     .architecture = "exaone",
     .names = kExaone,
     .parameters = add_exaone,
     .extra_tensors = add_llama3_factors,
     .digits_name = "exaone"},
    {.classes = kExaone4Classes,
     .architecture = "exaone4",
     .names = kFourNorms,
     .parameters = add_exaone4,
     .extra_tensors = add_llama3_factors,
     .gpt2_name = "exaone4"},
};

constexpr ConfigDefault kDefaults[] = {
    {"exaone4", "rms_norm_eps", 1e-5},
};

}  // namespace exaone

extern const FamilyGroup families_exaone;
constinit const FamilyGroup families_exaone = {exaone::kFamilies, exaone::kDefaults};

}  // namespace cairn::convert
