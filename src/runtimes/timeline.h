// A sequence of tokens on a runtime's session, with rewinds, snapshots and forks for any runtime:
// what the session cannot do, is done by reading the same tokens in the same chunks again. What the
// timeline says it has is one thing, what the session holds is another, which catches up when
// logits are needed. So an operation that fails leaves the timeline as it was.
// Thread rule: that of the runtime's sessions; cancel() on any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "runtimes/runtime.h"

namespace cairn::runtimes {

// Tokens, and how they were read: the ends of chunks, ascending, the last one that of the tokens.
struct History {
  std::vector<Token> tokens;
  std::vector<size_t> ends;

  // The first `count` tokens; a chunk that goes further is cut. REQUIRES: count <= tokens.
  History first(size_t count) const;
  // Ends where all chunks up to there, and their tokens, are those of the other one.
  size_t common_end(const History& other) const;
};

// A timeline as it was; constant. It must not outlive the loaded runtime.
struct Snapshot {
  History history;
  std::vector<float> logits;                  // Empty: they are computed when they are wanted.
  std::shared_ptr<const RuntimeState> state;  // Null: its tokens are read again.
};

// What it takes to have the logits behind a history.
struct Cost {
  size_t target = 0, resume = 0;  // Tokens in all, and those that are there.
  bool is_replayed = false;  // Tokens that had been read are read again because the session cannot
                             // go back.
  bool is_ready = false;     // Nothing is computed.
  size_t copy_bytes = 0;     // Of a state that is restored.
  size_t forward_tokens() const { return target - resume; }
};

class Timeline {
 public:
  // `runtime` must outlive it. Errors: those of LoadedRuntime::open_session().
  static Result<std::unique_ptr<Timeline>> open(LoadedRuntime* runtime);
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  const History& history() const { return history_; }
  // Behind the last token; empty where compute() has them to make.
  std::span<const float> logits() const { return logits_; }

  // What append(), go_to() and compute() cost. REQUIRES: tokens as those of append().
  Cost cost_of_tokens(std::span<const Token> tokens) const;
  Cost cost_of_position(size_t position) const;
  Cost cost() const;

  // Has exactly these tokens, and their logits: where they begin as the timeline does, its chunks
  // stay, and the rest is one chunk. No tokens: empty. Errors: those of RuntimeSession.
  Result<Cost> become(std::span<const Token> tokens);
  // The same, but for the logits, which compute() makes; computes nothing, and cannot fail.
  void aim(std::span<const Token> tokens);
  // Goes back to so many tokens. REQUIRES: at most those there are.
  Result<Cost> rewind(size_t position);
  // Becomes what the snapshot's timeline was. Computes nothing where the snapshot has logits, but
  // copies its state.
  Result<Cost> restore(std::shared_ptr<const Snapshot> snapshot);
  // The logits of the history as it stands. Behind push() it takes as long as the new chunk.
  Result<Cost> compute();

  // Adds a chunk whose logits compute() makes.
  void push(Token token);
  // Becomes what the snapshot's timeline was, and computes nothing at all.
  void adopt(std::shared_ptr<const Snapshot> snapshot);
  void clear();

  // With the session's state where it has one to give. Errors: those of RuntimeSession::snapshot().
  Result<std::shared_ptr<const Snapshot>> snapshot();

  // Has what is computed at the moment end soon with the error cancelled; any thread.
  void cancel();

 private:
  struct Way {
    std::shared_ptr<const Snapshot> from = {};  // Restored first.
    size_t position = 0;                        // From there on is read.
    bool is_replayed = false;
  };
  Timeline(LoadedRuntime* runtime, std::unique_ptr<RuntimeSession> session);
  History history_of(std::span<const Token> tokens) const;
  size_t shared_with_session(const History& wanted) const;
  Way way_to(const History& wanted) const;
  Cost cost_of(const History& wanted) const;
  Result<Cost> reach(History wanted);
  void set_history(History history);
  Status walk(const History& wanted);
  Status go_back(const History& wanted, const Way& way);
  Status append_chunk(const History& wanted, size_t end);
  void forget_held();

  LoadedRuntime* runtime_;
  std::unique_ptr<RuntimeSession> session_;
  History held_;  // What the session has.
  History history_;
  bool goes_on_ = true;  // The history begins with what the session has, chunk by chunk.
  std::vector<float> logits_;
  // Snapshots that may be gone back to, while somebody else has them.
  mutable std::vector<std::weak_ptr<const Snapshot>> marks_;
  std::atomic<bool> is_cancelled_ = false;
};

}  // namespace cairn::runtimes
