// The tensors of Mamba layers as GGUF has them, for the families that have such layers.
// Pure; any thread.
#pragma once

#include "convert/tensor_plan.h"

namespace cairn::convert {

// What both Mambas name alike below "mixer.", as most do.
inline constexpr NameRow kMixerNames[] = {
    {"mixer.in_proj", "ssm_in"},
    {"mixer.conv1d", "ssm_conv1d", {}, Edit::squeeze},
    {"mixer.out_proj", "ssm_out"},
};

// Tensors that Mamba 2 wants in two dimensions, and the bias of its steps: A, D, norm and dt_bias
// below `prefix` ("mixer."). `group_count`: rows of the norm. True where it was one of them.
// Errors: invalid_data (a norm that has no such groups).
Result<bool> add_mamba2_tensor(TensorPlan& plan, const TensorName& name, const SourceTensor& source,
                               std::string_view prefix, int64_t group_count);

}  // namespace cairn::convert
