// What computes for one conversation: the built-in engine or another runtime, which cannot be told
// apart from here. Thread rule: one call at a time, by any thread, but for what says otherwise.
#pragma once

#include <cairn.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "capi/answer_maker.h"
#include "capi/border.h"
#include "sample/state.h"
#include "session/receipt.h"

namespace cairn::capi {

// What was computed for a conversation, as it was. Given back on any thread.
class TrackState {
 public:
  virtual ~TrackState() = default;
};

class Track {
 public:
  virtual ~Track() = default;

  // The handle whose mark cancels what is computed; set before it computes.
  void set_handle(uint64_t handle) { handle_ = handle; }

  // What reading these tokens costs. REQUIRES: tokens.
  virtual cairn_plan plan(std::span<const Token> tokens) = 0;
  // Stands behind these tokens, with their logits; what there is of an answer ends. `from`: what
  // has them, too; null: nothing. REQUIRES: tokens.
  virtual Answer read(std::span<const Token> tokens, const TrackState* from, cairn_plan& done) = 0;
  // Events go to the mailbox; returns when it is made. REQUIRES: not to_end.
  virtual Answer make(MakeOrder order) = 0;
  // The same on another thread, which ends the mailbox's job. Where this throws, it has not begun.
  virtual void start(MakeOrder order) = 0;
  // Ends what was started, soon. Whether there was memory to say it. Any thread.
  virtual bool cancel() noexcept = 0;

  // All of so many tokens are computed, and the logits behind them are there.
  virtual bool stands_at(size_t token_count) = 0;
  // REQUIRES: stands_at().
  virtual void copy_logits(std::vector<float>& row) = 0;
  // The next token is chosen already.
  virtual bool has_choice() = 0;
  virtual sample::SamplerState sampler() = 0;
  virtual void drop_answer() = 0;
  virtual void reset() = 0;
  virtual std::shared_ptr<const session::Receipt> receipt() = 0;

  // Of a conversation that has these tokens.
  virtual Result<std::unique_ptr<TrackState>> snapshot(std::span<const Token> tokens) = 0;
  // Becomes what the state's track was; computes nothing. REQUIRES: it is new.
  virtual Status go_to(const TrackState& state) = 0;
  // REQUIRES: a store; stands_at().
  virtual Answer save(const std::string& name) = 0;
  virtual Answer find_saved(const std::string& name, std::vector<Token>& tokens,
                            sample::SamplerState& sampler) = 0;
  virtual void set_sampler(sample::SamplerState sampler) = 0;

 protected:
  uint64_t handle_ = 0;
};

}  // namespace cairn::capi
