// GLM-4.5 to 4.7 (Zhipu, 2025): a part of each head rotates; experts are scored each by itself and
// chosen with a bias; in some sizes queries and keys have norms.
#include "models/common/sparse.h"

namespace cairn::models {

namespace {

constexpr SparseTraits kTraits = {.router = {.score = RouterScore::sigmoid, .normalize = true},
                                  .mlp_norm = "post_attention_norm.weight"};

}  // namespace

extern const Architecture arch_glm4moe;
constinit const Architecture arch_glm4moe = {
    .name = "glm4moe",
    .create = [](const gguf::Metadata& meta) { return create_sparse(meta, kTraits); }};

}  // namespace cairn::models
