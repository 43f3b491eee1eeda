// Hunyuan under its names: with experts it is the dense model but for the feed-forward block.
#pragma once

#include <memory>

#include "models/model.h"

namespace cairn::models {

Result<std::unique_ptr<Model>> create_hunyuan_moe(const gguf::Metadata& meta);

}  // namespace cairn::models
