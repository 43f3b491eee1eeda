// Qwen 3 VL (2025), the text side: Qwen 3.
#include "models/dense/qwen3.h"

namespace cairn::models {

extern const Architecture arch_qwen3vl;
constinit const Architecture arch_qwen3vl = {.name = "qwen3vl", .create = &create_qwen3};

}  // namespace cairn::models
