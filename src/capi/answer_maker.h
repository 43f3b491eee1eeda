// How answers of a conversation are made, whatever computes: what they are asked with, the one that
// is being made, what the sampler remembers from one to the next, and the last one's receipt.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "capi/mailbox.h"
#include "chat/output_event.h"
#include "engine/engine.h"
#include "engine/token_source.h"
#include "grammar/matcher.h"
#include "sample/params.h"
#include "sample/state.h"
#include "session/completion.h"
#include "session/constraint.h"
#include "session/drafts/drafting.h"
#include "session/receipt.h"
#include "tokenize/tokenizer.h"

namespace cairn::capi {

// How answers are made, whichever comes next.
struct AnswerTerms {
  sample::SamplingParams sampling;
  int32_t token_count_max = -1;
  std::vector<std::string> stop;
  session::ConstraintChoice form;
  std::shared_ptr<grammar::Matcher> matcher;  // Of the form; null: anything.
  bool wants_receipt = false;
  session::DraftOrder drafts;
};

// What is to be made.
struct MakeOrder {
  enum class Extent : uint8_t {
    rows,    // What is pending is computed, and no token is chosen.
    token,   // One token.
    to_end,  // All of them.
  };
  Extent extent = Extent::token;
  std::vector<Token> prompt = {};  // Empty: the answer that there is goes on.
  std::shared_ptr<const AnswerTerms> terms = {};
  std::vector<float> logits = {};  // What the first token is chosen from; empty: the source's.
};

class AnswerMaker {
 public:
  // Null: no answer is made.
  session::Completion* completion() { return completion_.get(); }
  const session::Completion* completion() const { return completion_.get(); }
  bool has_choice() const { return completion_ != nullptr && completion_->has_choice(); }
  const sample::SamplerState& sampler() const {
    return completion_ != nullptr ? completion_->sampler_state() : sampler_;
  }
  // REQUIRES: no answer is made.
  void set_sampler(sample::SamplerState state) { sampler_ = std::move(state); }
  void drop();
  // The same without any memory: what the sampler has learnt in this answer is lost.
  void abandon() noexcept;

  // Of whom receipts tell, and who drafts.
  struct Computer {
    const Engine* engine;
    const Selection* selection;
    Lane* lane;  // The source.
    session::Drafting* drafting;
  };
  // `computer`: null: there are no receipts. REQUIRES: no answer is made. Errors: those of
  // Completion::begin().
  Status begin(const tokenize::Tokenizer* tokenizer, TokenSource* source,
               std::span<const Token> prompt, std::shared_ptr<const AnswerTerms> terms,
               const Computer* computer);
  // From now on what follows is drafted, unless it is already. `text`: what there is, the answer's
  // tokens too. REQUIRES: an answer is made.
  void draft(std::span<const Token> text, const Computer& computer);
  // Has the next token chosen from these, which are gone then; none: nothing.
  void give_logits(std::vector<float>& logits);
  // The next token, or the answer's end; the token's event is posted. Errors: those of
  // Completion::advance().
  Status advance(Mailbox& mailbox);
  // Whoever drove the answer stops, with this status: where it has ended, what is left of it is
  // posted. None: it has not, or cannot be finished, which the status then says.
  std::optional<AnswerEnd> pause(Status& status, Mailbox& mailbox);

  // Of the last answer that has ended; null where its terms wanted none.
  std::shared_ptr<const session::Receipt> receipt() const { return receipt_; }
  void drop_receipt() { receipt_.reset(); }

 private:
  void take_event();

  std::shared_ptr<const AnswerTerms> terms_;  // Of the answer.
  std::unique_ptr<session::ReceiptDraft> draft_;
  std::unique_ptr<session::Completion> completion_;
  std::shared_ptr<const session::Receipt> receipt_;
  sample::SamplerState sampler_;
  AnswerEvent event_;
  std::vector<chat::OutputEvent> pieces_;
};

}  // namespace cairn::capi
