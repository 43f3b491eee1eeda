// StarCoder 1 (Li et al., 2023): GPT-2's shape.
#include "models/dense/gpt2.h"

namespace cairn::models {

extern const Architecture arch_starcoder;
constinit const Architecture arch_starcoder = {.name = "starcoder", .create = &create_gpt2};

}  // namespace cairn::models
