// A conversation as callers have it: its tokens, how answers are made, and one call at a time,
// whatever computes it (capi/track.h). Thread-safe: a second call is told that it is one.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "capi/border.h"
#include "capi/mailbox.h"
#include "capi/objects.h"
#include "capi/track.h"

namespace cairn::capi {

class Conversation {
 public:
  static constexpr Kind kKind = Kind::conversation;

  // Errors: unsupported: the engine makes vectors; io.
  static Result<std::shared_ptr<Conversation>> open(std::shared_ptr<EngineObject> engine);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  // REQUIRES: nobody else knows it yet.
  void set_handle(uint64_t handle) {
    handle_ = handle;
    track_->set_handle(handle);
  }
  uint64_t handle() const { return handle_; }
  int descriptor() const { return mailbox_->descriptor(); }
  const std::shared_ptr<EngineObject>& engine() const { return engine_; }

  // The right to call what follows, while the result lives; it owns nothing where another call has
  // it, or, unless it `may_stream`, where an answer is being made in the background.
  std::unique_lock<std::mutex> use(bool may_stream = false);

  const std::vector<Token>& tokens() const { return tokens_; }
  // Errors: invalid_argument: ids outside the vocabulary; context_full. REQUIRES: here and below:
  // use().
  Status check(std::span<const cairn_token> tokens, size_t before) const;
  Answer read(std::vector<Token> tokens, const SnapshotObject* from, cairn_plan& done);
  cairn_plan plan(size_t position);
  void reset();
  void set_terms(std::shared_ptr<const AnswerTerms> terms);
  const AnswerTerms& terms() const { return *terms_; }

  // The next event, as it is until the next call. Again: there is none yet, and it `may_wait` not.
  Answer next(bool may_wait);
  Answer start();
  bool is_streaming() const { return is_streaming_; }
  void show_event(cairn_event& out) const;

  // Of the next token.
  Answer logits(std::vector<float>& row);
  Answer sample(std::span<const float> logits, Token& out);
  // What the next token is chosen from, in place of its own; until the tokens change.
  Answer give_logits(std::span<const float> logits);
  // Null: there is none.
  std::shared_ptr<const session::Receipt> receipt();

  Result<std::shared_ptr<SnapshotObject>> snapshot();
  // `from`: null: as this stands.
  Result<std::shared_ptr<Conversation>> fork(const SnapshotObject* from);
  Answer save(const std::string& name);
  Answer restore(const std::string& name, cairn_plan& done);

 private:
  Conversation(std::shared_ptr<EngineObject> engine, std::unique_ptr<Mailbox> mailbox);
  template <class Call>
  Answer run(Call call);
  Answer make(MakeOrder::Extent extent);
  void wait();
  Answer take_outcome();
  Answer run_read(std::vector<Token> tokens, const SnapshotObject* from, cairn_plan& done);
  bool take_event();
  Answer deliver();
  Answer compute_all();
  Answer check_text() const;
  Answer check_row(std::span<const float> logits) const;

  std::shared_ptr<EngineObject> engine_;
  std::unique_ptr<Mailbox> mailbox_;
  uint64_t handle_ = 0;
  std::mutex mutex_;
  std::unique_ptr<Track> track_;
  std::vector<Token> tokens_;
  std::shared_ptr<const AnswerTerms> terms_;
  std::vector<float> given_logits_;  // Of the next token; empty: its own.
  AnswerEvent event_;
  // Of an answer that has ended; put aside while its last token is computed.
  std::deque<AnswerEvent> waiting_;
  bool is_streaming_ = false;
};

}  // namespace cairn::capi
