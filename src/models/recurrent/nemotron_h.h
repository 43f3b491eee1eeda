// Nemotron-H under its two names: with plain feed-forward layers and with experts.
#pragma once

#include <memory>

#include "models/model.h"

namespace cairn::models {

Result<std::unique_ptr<Model>> create_nemotron_h(const gguf::Metadata& meta);

}  // namespace cairn::models
