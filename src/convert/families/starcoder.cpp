// StarCoder 2.
#include "convert/shared_families.h"

namespace cairn::convert {
namespace starcoder {

constexpr NameRow kStarcoder2[] = {
    {"mlp.c_fc", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
};
constexpr std::string_view kStarcoder2Classes[] = {"Starcoder2ForCausalLM"};

constexpr Family kFamilies[] = {
    {.classes = kStarcoder2Classes,
     .architecture = "starcoder2",
     .names = kStarcoder2,
     .digits_name = "starcoder"},
};
constexpr ConfigDefault kDefaults[] = {
    {"starcoder2", "norm_epsilon", 1e-5},
};

}  // namespace starcoder

extern const FamilyGroup families_starcoder;
constinit const FamilyGroup families_starcoder = {starcoder::kFamilies, starcoder::kDefaults};

}  // namespace cairn::convert
