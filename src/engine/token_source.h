// What an answer is made of: a sequence that has the logits of its next token and takes that token.
// Whoever drives the answer has its rows computed. Thread rule: that of what stands behind it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "memory/memory.h"
#include "sample/sampler.h"

namespace cairn {

struct PromptReport {
  int32_t prompt_tokens = 0;    // Without left_out_tokens.
  int32_t reused_tokens = 0;    // Found in the cache.
  int32_t computed_tokens = 0;  // prompt_tokens - reused_tokens.
  int32_t left_out_tokens = 0;  // Dropped by the context policy, after the first kept ones.
  int32_t left_out_turns = 0;   // Whole turns among them.
  bool from_cache = false;      // An entry of the prefix cache had a longer prefix.
  bool from_store = false;      // It was read from the disk, or the tier, into the cache.
  bool from_tier = false;       // From the tier …
  bool from_peer = false;       // … or from another machine.
  std::string_view tier = {};   // What became of it there, in a word of store::TierOutcome.
  // Where the sequence was resumed, and what limited it: as memory::ResumePlan says, or "adapters"
  // if only other adapters had a longer prefix, or "outputs" if all its logits are read.
  memory::ResumePlan plan;
};

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  // Begins to read `prompt` (not empty), from where the fewest of its tokens are to be read.
  // `message_starts`: positions at which messages of the user begin, ascending. Errors:
  // invalid_argument for ids outside the vocabulary; context_full.
  virtual Result<PromptReport> start(std::span<const Token> prompt,
                                     std::span<const int32_t> message_starts = {}) = 0;
  virtual bool wants_rows() const = 0;  // Whether tokens are pending.
  virtual int32_t length() const = 0;   // Tokens that are computed.
  virtual int32_t context_tokens() const = 0;
  virtual int32_t room() const = 0;  // Tokens that still fit into the context.
  // Of the next token; [vocabulary]. REQUIRES: something was read; !wants_rows().
  virtual std::span<const float> logits() const = 0;
  // Samples the next token without adding it: with a mask, of what it allows; by `given` logits, if
  // there are any. Errors: the sampler's. REQUIRES: those of logits().
  virtual Result<Token> sample(sample::Sampler& sampler, const sample::TokenMask* allowed = nullptr,
                               std::span<const float> given = {}) = 0;
  // Adds a token (usually the sampled one). Errors: those of start(). REQUIRES: !wants_rows().
  virtual Status push(Token token) = 0;
  // The answer is complete: its end is kept, so that it can be gone on from here.
  virtual Status finish_turn() = 0;
  // Of the text since the last start(), dropped by the context policy and by shifts; and the whole
  // turns among them.
  virtual int32_t left_out_tokens() const { return 0; }
  virtual int32_t left_out_turns() const { return 0; }
};

}  // namespace cairn
