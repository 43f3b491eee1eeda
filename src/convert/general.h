// The keys under general.: what a model is called, how large it is, how it wants to be sampled.
// Thread rule: reads files of the folder; otherwise pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "convert/config.h"
#include "convert/key_values.h"
#include "convert/tensors.h"

namespace cairn::convert {

// From generation_config.json, config.json, the folder's name and the tensors.
Status add_general(const std::string& folder, const Config& config,
                   const std::vector<PlannedTensor>& tensors, KeyValues& out);

}  // namespace cairn::convert
