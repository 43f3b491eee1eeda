// ERNIE 4.5 without experts (Baidu, 2025): Llama's shape.
#include "models/dense/llama.h"

namespace cairn::models {

extern const Architecture arch_ernie4_5;
constinit const Architecture arch_ernie4_5 = llama_shaped<RopeStyle::adjacent>("ernie4_5");

}  // namespace cairn::models
