// Takes the rows of an answer's tokens while steps compute them: of hidden rows memory keeps only
// the last one, of logits none. Thread rule: the engine's thread.
#pragma once

#include <cstdint>

#include "engine/step.h"

namespace cairn {

class RowReader {
 public:
  virtual ~RowReader() = default;
  // The rows of a step. The tokens of the first `count` are part of the whole text from `position`
  // on; those of the others were a draft that was wrong.
  virtual void take(int32_t position, const StepOutputs& rows, int32_t count) = 0;
};

}  // namespace cairn
