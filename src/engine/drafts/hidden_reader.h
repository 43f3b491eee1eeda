// Takes the hidden rows of an answer's tokens while steps compute them: memory keeps only the last
// one. Thread rule: the engine's thread.
#pragma once

#include <cstdint>

#include "engine/step.h"

namespace cairn {

class HiddenReader {
 public:
  virtual ~HiddenReader() = default;
  // The first `count` rows of a step, whose tokens are part of the whole text from `position` on.
  virtual void take(int32_t position, const StepOutputs& rows, int32_t count) = 0;
};

}  // namespace cairn
