// The plain decoder under its many names: Llama's shape to the letter, but for which elements of a
// head rotate together.
#pragma once

#include <memory>

#include "models/model.h"

namespace cairn::models {

Result<std::unique_ptr<Model>> create_llama(const gguf::Metadata& meta, RopeStyle style);

template <RopeStyle style>
constexpr Architecture llama_shaped(std::string_view name) {
  return {.name = name, .create = [](const gguf::Metadata& meta) -> Result<std::unique_ptr<Model>> {
            return create_llama(meta, style);
          }};
}

}  // namespace cairn::models
