// Hunyuan under its names: with experts it is the dense model but for the feed-forward block.
#pragma once

#include <memory>

#include "models/model.h"

namespace cairn::models {

Result<std::unique_ptr<Model>> create_hunyuan(const gguf::Metadata& meta, const bool& has_experts);

}  // namespace cairn::models
