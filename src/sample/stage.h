// A stage of the sampler's chain: a file in this folder, found by its name through a generated
// table. The order of the chain is data (SamplingParams::samplers). Thread-safe: constant data.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sample/candidates.h"
#include "sample/params.h"
#include "sample/state.h"

namespace cairn::tokenize {
class Tokenizer;
}

namespace cairn::sample {

class DryBreakers;

// The inputs of a stage besides the candidates.
struct StageContext {
  const SamplingParams& params;
  int32_t position = 0;                            // Of the token to be chosen.
  std::span<const Token> history = {};             // All tokens before it.
  const tokenize::Tokenizer* tokenizer = nullptr;  // Where a stage needs_words.
  const DryBreakers* breakers = nullptr;           // Where DRY is on.
  const StageMemory* before = nullptr;             // Of stages that learn; null at the beginning.
  StageMemory memory = {};                         // What learn() leaves for the next token.
  std::vector<Candidate> originals = {};           // What apply() leaves for learn().
};

// The last `count` tokens, or all where it is negative.
inline std::span<const Token> last_tokens(std::span<const Token> history, int32_t count) {
  return count < 0 || size_t(count) >= history.size() ? history : history.last(size_t(count));
}

struct SamplerStage {
  std::string_view name;
  char letter;  // In an order of single letters; 0: cannot be part of a user's order.
  // The stage never changes which token is the likeliest, so greedy sampling can skip it.
  bool keeps_likeliest = false;
  bool needs_words = false;  // The tokens' text.
  // Whether it has an effect with these parameters.
  bool (*is_on)(const SamplingParams& params);
  // REQUIRES: candidates are not empty; leaves at least one.
  void (*apply)(Candidates& candidates, StageContext& context);
  // Updates its memory with the sampled token and the candidates; null: the stage has no memory.
  void (*learn)(Candidates& candidates, Token chosen, StageContext& context) = nullptr;
};

std::span<const SamplerStage* const> all_stages();

}  // namespace cairn::sample
