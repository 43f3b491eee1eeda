// Whether a sequence is what its tokens compute: all that it holds is computed again and compared,
// bit for bit. For sequences that come from elsewhere. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engine/engine.h"

namespace cairn {

struct SequenceProof {
  int32_t tokens = 0;  // Computed again.
  uint64_t compared_bytes = 0;
  uint64_t differing_bytes = 0;
  std::string first_difference;  // What it is of, and where.
};

// Whole pages, states and hidden rows are compared; an unfinished page and the log by what they are
// for: the logits and the state of a token behind the end. The budget has to hold the sequence
// twice. Errors: those of Engine::step().
Result<SequenceProof> prove_sequence(Engine& engine, memory::Sequence stored);

}  // namespace cairn
