// Llama's shape with slopes instead of rotation, for the models that have it.
#pragma once

#include <memory>

#include "models/model.h"

namespace cairn::models {

Result<std::unique_ptr<Model>> create_refact(const gguf::Metadata& meta);

}  // namespace cairn::models
