// Nemotron-H with experts, which includes Nemotron 3: the family's other name in files.
#include "models/recurrent/nemotron_h.h"

namespace cairn::models {

extern const Architecture arch_nemotron_h_moe;
constinit const Architecture arch_nemotron_h_moe = {.name = "nemotron_h_moe",
                                                    .create = &create_nemotron_h};

}  // namespace cairn::models
