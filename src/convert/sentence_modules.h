// The modules of a sentence-transformers folder besides the model: modules.json lists what is
// applied to the vectors of a text's tokens, each in a folder of its own. Supported are one pooling
// and, for some families, two matrices after it. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "convert/parameters.h"
#include "convert/safetensors.h"
#include "convert/tensor_plan.h"

namespace cairn::convert {

// pooling_type, where the folder says it. Errors: invalid_data, unsupported (another pooling).
Status add_pooling(ParameterWriter& writer);

// The answers of a classifier; two labels that a library makes up are none.
std::vector<std::string> labels_of(const Config& config);

// Opens the matrices behind the pooling as modules of the checkpoint. Errors: unsupported (one, or
// more than two; a bias; an activation), invalid_data.
Status open_dense_modules(const std::string& folder, Checkpoint& checkpoint);

// dense_2 and dense_3: their sizes, and themselves, where the folder has them.
Status add_dense_sizes(ParameterWriter& writer);
Status add_dense_tensors(TensorPlan& plan);

}  // namespace cairn::convert
