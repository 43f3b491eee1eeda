// The plain decoder under its many names: Llama's shape to the letter, but for what the traits say.
#pragma once

#include <memory>
#include <string_view>

#include "models/model.h"

namespace cairn::models {

struct LlamaTraits {
  RopeStyle rope_style = RopeStyle::adjacent;     // Which elements of a head rotate together.
  std::string_view mlp_norm = "ffn_norm.weight";  // Its name in the file.
};

Result<std::unique_ptr<Model>> create_llama(const gguf::Metadata& meta, const LlamaTraits& traits);

}  // namespace cairn::models
