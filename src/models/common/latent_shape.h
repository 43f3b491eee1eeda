// Sizes of latent attention (graph/blocks/latent_attention.h), as files have them.
#pragma once

#include "graph/blocks/latent_attention.h"
#include "models/common/config.h"

namespace cairn::models {

// Files that do not say how wide a head of latent attention is (attention.key_length_mla) have one
// matrix for the keys and values of all heads: MiniCPM 3's, and DeepSeek's from before April 2025.
// Errors: a size is missing, or does not fit the others.
Result<blocks::LatentShape> read_latent_shape(const gguf::Metadata& meta, const DecoderConfig& c);

}  // namespace cairn::models
