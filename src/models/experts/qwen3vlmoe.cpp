// Qwen 3 VL with experts (2025), the text side: Qwen 3 with experts.
#include "models/dense/qwen3.h"

namespace cairn::models {

extern const Architecture arch_qwen3vlmoe;
constinit const Architecture arch_qwen3vlmoe = {.name = "qwen3vlmoe", .create = &create_qwen3moe};

}  // namespace cairn::models
