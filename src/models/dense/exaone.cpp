// EXAONE 3 and 3.5 (LG AI Research, 2024): Llama's shape; halves of a head rotate together.
#include "models/dense/llama.h"

namespace cairn::models {

extern const Architecture arch_exaone;
constinit const Architecture arch_exaone = llama_shaped<RopeStyle::halves>("exaone");

}  // namespace cairn::models
