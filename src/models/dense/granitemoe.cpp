// Granite 3 with experts: the family's other name in files.
#include "models/dense/granite.h"

namespace cairn::models {

extern const Architecture arch_granitemoe;
constinit const Architecture arch_granitemoe = {.name = "granitemoe", .create = &create_granite};

}  // namespace cairn::models
