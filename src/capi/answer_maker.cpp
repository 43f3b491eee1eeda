// An answer from its first token to its receipt.
#include "capi/answer_maker.h"

#include <algorithm>

namespace cairn::capi {

void AnswerMaker::drop() {
  sampler_ = sample::SamplerState(sampler());
  abandon();
}

void AnswerMaker::abandon() noexcept {
  completion_.reset();
  draft_.reset();
  terms_.reset();
}

Status AnswerMaker::begin(const tokenize::Tokenizer* tokenizer, TokenSource* source,
                          std::span<const Token> prompt, std::shared_ptr<const AnswerTerms> terms,
                          const Computer* computer) {
  terms_ = std::move(terms);
  sample::Sampler sampler(terms_->sampling, tokenizer);
  sampler.set_state(sampler_);
  session::AnswerRequest request{.prompt = prompt,
                                 .message_starts = {},
                                 .answer_prefix = {},
                                 .token_count_max = terms_->token_count_max,
                                 .matcher = terms_->matcher.get(),
                                 .stop = terms_->stop};
  receipt_.reset();
  if (terms_->wants_receipt && computer != nullptr) {
    draft_ = std::make_unique<session::ReceiptDraft>(
        *computer->engine, *computer->selection, request, sampler,
        session::ReceiptForm{.constraint = terms_->form});
    request.choices = &draft_->choices;
  }
  CAIRN_TRY(completion_,
            session::Completion::begin(tokenizer, source, request, std::move(sampler)));
  return Ok{};
}

void AnswerMaker::draft(std::span<const Token> text, const Computer& computer) {
  if (completion_->has_drafters()) return;
  const size_t begin = std::min(size_t(completion_->prompt_tokens()), text.size());
  const session::AnswerRequest request{
      .prompt = text, .message_starts = {}, .answer_prefix = text.subspan(begin)};
  completion_->draft(computer.lane, *computer.drafting, terms_->drafts, request, 0);
}

void AnswerMaker::give_logits(std::vector<float>& logits) {
  if (!logits.empty()) completion_->give_logits(std::exchange(logits, {}));
}

Status AnswerMaker::advance(Mailbox& mailbox) {
  CAIRN_TRY(completion_->advance());
  if (completion_->is_done()) return Ok{};
  take_event();
  mailbox.post(event_);
  return Ok{};
}

// What is new of the answer.
void AnswerMaker::take_event() {
  event_.clear();
  completion_->take_events(pieces_);
  for (const chat::OutputEvent& piece : pieces_) event_.text += piece.text;
  const std::span<const Token> tokens = completion_->take_tokens();
  event_.tokens.assign(tokens.begin(), tokens.end());
  for (const sample::LogProbabilities& each : completion_->take_probabilities()) {
    event_.log_probabilities.push_back(each.chosen.log_probability);
  }
}

// What comes with the answer's end is an event of its own before it.
std::optional<AnswerEnd> AnswerMaker::pause(Status& status, Mailbox& mailbox) {
  if (completion_ == nullptr) return std::nullopt;
  if (!status) {
    if (status.error().code != ErrorCode::cancelled) drop();
    return std::nullopt;
  }
  if (!completion_->is_done()) return std::nullopt;
  take_event();
  if (!event_.tokens.empty() || !event_.text.empty()) mailbox.post(event_);
  Result<session::Answer> answer = completion_->finish();
  if (answer && draft_ != nullptr) {
    receipt_ = std::make_shared<const session::Receipt>(std::move(*draft_).finish(answer->finish));
  }
  drop();
  if (!answer) {
    status = std::move(answer).error();
    return std::nullopt;
  }
  AnswerEnd end{answer->finish};
  if (answer->drafts) {
    end.drafted = answer->drafts->drafted();
    end.accepted = answer->drafts->accepted();
  }
  return end;
}

}  // namespace cairn::capi
