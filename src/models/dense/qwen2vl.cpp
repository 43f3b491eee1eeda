// Qwen 2 VL and 2.5 VL (2024), the text side: Qwen 2, whose three axes of positions are equal
// where there is only text.
#include "models/dense/llama.h"

namespace cairn::models {

extern const Architecture arch_qwen2vl;
constinit const Architecture arch_qwen2vl = llama_shaped<RopeStyle::halves>("qwen2vl");

}  // namespace cairn::models
