// Whether a sequence is what its tokens compute: all that it holds is computed again and compared,
// bit for bit. For sequences that come from elsewhere. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "memory/outline.h"

namespace cairn {

struct SequenceProof {
  int32_t tokens = 0;  // Computed again.
  uint64_t compared_bytes = 0;
  uint64_t differing_bytes = 0;
  std::string first_difference;  // What it is of, and where.
  int32_t first_position = 0;    // Tokens before the first that was computed differently.
};

// Whole pages, states and hidden rows are compared; an unfinished page and the log by what they are
// for: the logits and the state of a token behind the end. The budget has to hold the sequence
// twice.
class SequenceProver {
 public:
  SequenceProver(Engine* engine, memory::Sequence stored);

  bool is_done() const { return is_done_; }
  // A step of the engine, of at most so many rows; the last one compares what is left.
  // Errors: those of Engine::step(). REQUIRES: !is_done().
  Status advance(int32_t row_count_max);
  int32_t computed_tokens() const { return fresh_.length(); }
  memory::Variant variant() const { return stored_.variant(); }
  const SequenceProof& proof() const { return proof_; }

 private:
  Status read_rows(int32_t row_count_max);
  void compare(DeviceBytes a, DeviceBytes b, int32_t group, const char* what, int32_t position);
  void compare_bytes(std::span<const std::byte> a, std::span<const std::byte> b, const char* what,
                     int32_t position, int32_t first_position);
  void compare_at(int32_t position);
  void compare_pages();
  Status compare_next();
  Result<std::vector<float>> next_logits(memory::Sequence& sequence);

  Engine* engine_;
  memory::Sequence stored_, fresh_;
  memory::Outline outline_;
  std::vector<int32_t> stops_;  // Positions of which something is kept, ascending; the end is last.
  size_t next_stop_ = 0;
  SequenceProof proof_;
  bool is_done_ = false;
};

// All of it at once. Errors: those of Engine::step().
Result<SequenceProof> prove_sequence(Engine& engine, memory::Sequence stored);

}  // namespace cairn
