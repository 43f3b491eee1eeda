// Granite 3 under its names: with plain feed-forward blocks and with experts.
#pragma once

#include <memory>

#include "models/model.h"

namespace cairn::models {

Result<std::unique_ptr<Model>> create_granite(const gguf::Metadata& meta);

}  // namespace cairn::models
