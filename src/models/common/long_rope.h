// The factors of LongRoPE (Ding et al., 2024): a file has one set for models that read no longer
// texts than the original one, and one for those that do. What the file says of the model's context
// decides, not the length of a text or of the context in use: keys in the cache are rotated
// already, and the same tokens have to give the same bits.
#pragma once

#include "graph/graph.h"
#include "models/common/config.h"

namespace cairn::models {

struct LongRope {
  Vector long_factors, short_factors;

  void parameters(Parameters& p, int64_t pair_count) {
    p.optional_vector("rope_factors_long.weight", long_factors, {pair_count});
    p.optional_vector("rope_factors_short.weight", short_factors, {pair_count});
  }

  RopeSpec scaled(RopeSpec rope, bool is_long) const {
    return with_factors(std::move(rope), is_long ? long_factors : short_factors);
  }
};

}  // namespace cairn::models
