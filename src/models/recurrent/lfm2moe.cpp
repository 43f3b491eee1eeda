// LFM2 with experts: the family's other name in files.
#include "models/recurrent/lfm2.h"

namespace cairn::models {

extern const Architecture arch_lfm2moe;
constinit const Architecture arch_lfm2moe = {.name = "lfm2moe", .create = &create_lfm2};

}  // namespace cairn::models
