// InternLM 2 and 2.5 (Shanghai AI Laboratory, 2024): Llama's shape.
#include "models/dense/llama.h"

namespace cairn::models {

extern const Architecture arch_internlm2;
constinit const Architecture arch_internlm2 = llama_shaped<RopeStyle::adjacent>("internlm2");

}  // namespace cairn::models
