// Text that a model writes by itself, for measurements where nobody has brought one: what is
// measured on it is how the model is when it answers. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"

namespace cairn::measure {

struct OwnTextShape {
  int32_t length = 0;  // Tokens of each text.
  int32_t count = 0;   // Texts, all at a time.
  uint64_t seed = 1;
};

// The texts one after the other, sampled at temperature 1, each from its beginning; the same from
// the same seed. `on_progress` is told how many tokens of each there are; false ends it with the
// error `cancelled`. REQUIRES: an engine with a tokenizer. Errors: memory_full; those of sampling.
Result<std::vector<Token>> write_own_text(
    Engine& engine, const OwnTextShape& shape,
    const std::function<bool(int64_t done, int64_t total)>& on_progress);

}  // namespace cairn::measure
