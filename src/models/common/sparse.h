// The common mixture-of-experts decoder under its many names, and what differs between them.
#pragma once

#include <memory>
#include <string_view>

#include "graph/graph.h"
#include "models/common/mixture.h"
#include "models/model.h"

namespace cairn::models {

struct SparseTraits {
  RopeStyle rope_style = RopeStyle::halves;
  RouterDefaults router;
  std::string_view mlp_norm = "ffn_norm.weight";  // Its name in the file.
};

Result<std::unique_ptr<Model>> create_sparse(const gguf::Metadata& meta,
                                             const SparseTraits& traits);

}  // namespace cairn::models
