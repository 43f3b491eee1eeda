// Which of the levels of base/cpu_features.h a machine has, and whether it is too old for any.
// Thread rule: pure.
#pragma once

#include <string>
#include <vector>

#include "base/cpu_features.h"

namespace cairn {

// The levels that run with these features, from the simplest to the best.
std::vector<IsaLevel> levels_of(const CpuFeatures& features);
// Their names, for messages.
std::string names_of_levels(const CpuFeatures& features);

// What this CPU lacks of the oldest kind that is supported, by name; empty where that is nothing.
// The oldest kind is x86-64-v2 (x86-64 psABI, 3.1.1); other architectures have no such limit.
std::string missing_from_oldest();

}  // namespace cairn
