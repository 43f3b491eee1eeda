// ERNIE 4.5 with experts (Baidu, 2025): experts are scored against each other and chosen with a
// bias.
#include "models/common/sparse.h"

namespace cairn::models {

namespace {

constexpr SparseTraits kTraits = {.rope_style = RopeStyle::adjacent, .router = {.normalize = true}};

}  // namespace

extern const Architecture arch_ernie4_5_moe;
constinit const Architecture arch_ernie4_5_moe = {
    .name = "ernie4_5-moe",
    .create = [](const gguf::Metadata& meta) { return create_sparse(meta, kTraits); }};

}  // namespace cairn::models
