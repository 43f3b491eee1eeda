// Sizes of latent attention (graph/blocks/latent_attention.h), as files have them.
#pragma once

#include "gguf/metadata.h"
#include "graph/blocks/latent_attention.h"

namespace cairn::models {

// Errors: a size is missing, or does not fit the others.
Result<blocks::LatentShape> read_latent_shape(const gguf::Metadata& meta, int32_t head_count);

}  // namespace cairn::models
