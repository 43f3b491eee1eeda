// dots.llm1 (Xiaohongshu, 2025): queries and keys have norms; experts are scored each by itself and
// chosen with a bias.
#include "models/common/sparse.h"

namespace cairn::models {

namespace {

constexpr SparseTraits kTraits = {.router = {.score = RouterScore::sigmoid}};

}  // namespace

extern const Architecture arch_dots1;
constinit const Architecture arch_dots1 = {
    .name = "dots1",
    .create = [](const gguf::Metadata& meta) { return create_sparse(meta, kTraits); }};

}  // namespace cairn::models
