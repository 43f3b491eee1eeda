// Qwen 3 under its names: the models that also see pictures have the same text side, whose three
// axes of positions are equal where there is only text.
#pragma once

#include <memory>

#include "models/model.h"

namespace cairn::models {

Result<std::unique_ptr<Model>> create_qwen3(const gguf::Metadata& meta);
Result<std::unique_ptr<Model>> create_qwen3moe(const gguf::Metadata& meta);

}  // namespace cairn::models
