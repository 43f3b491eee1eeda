// GPT-2's shape under its names.
#pragma once

#include <memory>

#include "models/model.h"

namespace cairn::models {

Result<std::unique_ptr<Model>> create_gpt2(const gguf::Metadata& meta);

}  // namespace cairn::models
