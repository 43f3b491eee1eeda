// LFM2 under its two names: with plain feed-forward blocks and with experts.
#pragma once

#include <memory>

#include "models/model.h"

namespace cairn::models {

Result<std::unique_ptr<Model>> create_lfm2(const gguf::Metadata& meta);

}  // namespace cairn::models
