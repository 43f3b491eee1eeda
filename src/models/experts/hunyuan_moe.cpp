// Hunyuan with experts (Tencent, 2025): experts in every layer, their chosen weights normalised,
// beside one that every token uses.
#include "models/experts/hunyuan.h"

namespace cairn::models {

extern const Architecture arch_hunyuan_moe;
constinit const Architecture arch_hunyuan_moe = {.name = "hunyuan-moe",
                                                 .create = &create_hunyuan_moe};

}  // namespace cairn::models
