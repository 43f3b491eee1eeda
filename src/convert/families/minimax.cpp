// MiniMax M2: Mixtral's experts, norms over all heads of q and k together.
#include "convert/shared_families.h"

namespace cairn::convert {
namespace minimax {

constexpr PretokenizerAlias kPretokenizers[] = {{"gpt-4o", "minimax-m2"}};
constexpr std::string_view kClasses[] = {"MiniMaxM2ForCausalLM"};

Status add_minimax(ParameterWriter& writer) {
  CAIRN_TRY(writer.add_common());
  CAIRN_TRY(writer.add_count("expert_feed_forward_length", {"intermediate_size"}));
  return writer.add_count("rope.dimension_count", {"rotary_dim"});
}

constexpr Family kFamilies[] = {
    {.classes = kClasses,
     .architecture = "minimax-m2",
     .names = kMixtralExperts,
     .parameters = add_minimax,
     .pretokenizers = kPretokenizers},
};

constexpr ConfigDefault kDefaults[] = {
    {"minimax_m2", "rms_norm_eps", 1e-6},
};

}  // namespace minimax

extern const FamilyGroup families_minimax;
constinit const FamilyGroup families_minimax = {minimax::kFamilies, minimax::kDefaults};

}  // namespace cairn::convert
