// From logits to tokens to events.
#include "session/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "chat/loose_match.h"
#include "engine/lane_batch.h"
#include "session/receipt.h"

namespace cairn::session {

Completion::ReasoningLimit::ReasoningLimit(const tokenize::Tokenizer& tokenizer,
                                           const AnswerRequest& request)
    : tokens_max_(request.reasoning_tokens_max) {
  if (tokens_max_ < 0 || request.format == nullptr) return;
  std::string end = chat::reasoning_end(*request.format);
  if (request.matcher != nullptr) {
    // What follows the end is the matcher's.
    const std::string& close = request.format->channels.reasoning_close;
    end = request.constrains_calls && !close.empty() ? close : chat::trimmed_right(end);
  }
  const tokenize::TextPiece piece{end, true};
  tokenizer.encode_to(std::span(&piece, 1), {.parse_special = true}, forced_);
}

std::optional<Token> Completion::ReasoningLimit::next(const chat::AnswerReader& reader) {
  const bool is_full = reader.parser().is_reasoning() && tokens_max_ >= 0 &&
                       reader.reasoning_tokens() >= tokens_max_;
  if (given_count_ == 0 && !is_full) return std::nullopt;
  if (given_count_ == forced_.size()) return std::nullopt;
  return forced_[given_count_++];
}

Completion::Completion(const tokenize::Tokenizer& tokenizer, TokenSource* source,
                       const AnswerRequest& request, sample::Sampler sampler)
    : tokenizer_(tokenizer),
      source_(source),
      sampler_(std::move(sampler)),
      choices_(request.choices),
      token_count_max_(request.token_count_max),
      reader_(&tokenizer_, request.format != nullptr ? *request.format : chat::ChatFormat(),
              {.tools = {request.tools.begin(), request.tools.end()},
               .reads_calls = !request.tools.empty(),
               .stop = {request.stop.begin(), request.stop.end()},
               .prompt = request.prompt_end}),
      constraint_(request.matcher, request.constrains_calls, &reader_.parser()),
      reasoning_limit_(tokenizer_, request),
      begin_time_(Clock::now()) {}

Result<std::unique_ptr<Completion>> Completion::begin(const tokenize::Tokenizer* tokenizer,
                                                      TokenSource* source,
                                                      const AnswerRequest& request,
                                                      sample::Sampler sampler) {
  CHECK(tokenizer != nullptr);
  std::unique_ptr<Completion> made(new Completion(*tokenizer, source, request, std::move(sampler)));
  CAIRN_TRY(made->answer_.prompt, source->start(request.prompt, request.message_starts));
  CAIRN_TRY(made->take_prefix(request.answer_prefix));
  return made;
}

// The events of the prefix were handed out when it was made.
Status Completion::take_prefix(std::span<const Token> prefix) {
  for (const Token token : prefix) {
    constraint_.prepare();
    reader_.push(token, events_);
    events_.clear();
    CAIRN_TRY(constraint_.accept(token));
  }
  prefix_tokens_ = prefix.size();
  return Ok{};
}

Status Completion::advance() {
  CHECK(!is_done_ && !source_->wants_rows());
  if (!has_prompt_) answer_.prompt_seconds = seconds();
  has_prompt_ = true;
  if (is_full()) {
    end_full();
    return Ok{};
  }
  if (constraint_.is_finished()) {
    end(FinishReason::stop);
    return Ok{};
  }
  choose();
  CAIRN_TRY(const Token token, *std::exchange(chosen_, std::nullopt));
  if (answer_.first_token_seconds == 0) answer_.first_token_seconds = seconds();
  CAIRN_TRY(add(token));
  return is_done_ ? Status(Ok{}) : source_->push(token);
}

void Completion::draft(Lane* lane, Drafting& drafting, const DraftOrder& order,
                       const AnswerRequest& request, uint64_t tenant) {
  const DraftedText text{.constraint = &constraint_,
                         .tokenizer = &tokenizer_,
                         .prompt = request.prompt,
                         .answer_begin = request.prompt.size() - request.answer_prefix.size(),
                         .sampler = &sampler_,
                         .tenant = tenant};
  draft_by(lane, drafting.drafters(order, text), drafting.count_max(order));
}

std::span<const float> Completion::propose(int32_t count_max) {
  proposal_ = {};
  if (speculator_ == nullptr || is_done_) return {};
  count_max = std::min({count_max, lane_->draft_count_max(), draft_count_max_});
  // Behind the last token of an answer no row is computed.
  if (token_count_max_ >= 0) {
    count_max = std::min(count_max, token_count_max_ - int32_t(answer_.tokens.size()) - 1);
  }
  if (count_max <= 0) return {};
  proposal_ = speculator_->propose({.text = lane_->whole_text(), .count_max = count_max});
  return proposal_.reach;
}

void Completion::check(int32_t count) {
  lane_->draft(proposal_.tokens.first(size_t(count)));
}

// Each token is chosen as it would be without drafts: from the logits behind those before it. A
// draft is right where it is that token and the answer goes on behind it.
int32_t Completion::take(const StepOutputs& outputs) {
  const int32_t position = int32_t(lane_->whole_text().size()) - 1;
  draft::Verdict verdict{.checked = outputs.count() - 1};
  lane_->begin_walk(outputs);
  for (;;) {
    choose();
    const std::optional<Token> draft = lane_->next_draft();
    if (!draft || !chosen_ || !*chosen_ || **chosen_ != *draft) break;
    chosen_.reset();
    if (Status added = add(*draft); !added) {
      chosen_ = std::move(added).error();
      break;
    }
    if (is_done_) break;
    lane_->confirm_draft();
    ++verdict.accepted;
  }
  if (speculator_ != nullptr) speculator_->count(verdict);
  const int32_t count = lane_->end_walk();
  for (RowReader* reader : row_readers_) reader->take(position, outputs, count);
  return count;
}

void Completion::see(const StepOutputs& outputs) {
  const int32_t position = int32_t(lane_->whole_text().size()) - 1;
  for (RowReader* reader : row_readers_) reader->take(position, outputs, outputs.count());
}

void Completion::learn(double step_seconds, double plain_seconds) {
  if (speculator_ == nullptr) return;
  speculator_->learn(step_seconds, plain_seconds, lane_->whole_text());
}

void Completion::give_logits(std::vector<float> logits) {
  CHECK(!chosen_);
  given_logits_ = std::move(logits);
}

void Completion::choose() {
  CHECK(!source_->wants_rows());
  if (is_done_ || chosen_ || is_full() || constraint_.is_finished()) return;
  constraint_.prepare();
  const std::optional<Token> forced = reasoning_limit_.next(reader_);
  const std::vector<float> given = std::exchange(given_logits_, {});
  chosen_ = forced ? Result<Token>(*forced) : constraint_.sample(*source_, sampler_, given);
  if (!*chosen_) return;
  if (choices_ != nullptr) {
    choices_->add(source_->logits(), **chosen_, forced.has_value() || !given.empty());
  }
  const int32_t count = sampler_.params().probability_count;
  if (count == 0) return;
  chosen_probabilities_ = forced
                              ? sample::log_probabilities(source_->logits(), *forced, size_t(count))
                              : sampler_.probabilities();
}

Status Completion::add(Token token) {
  if (!tokenizer_.holds(token)) {
    return fail(ErrorCode::invalid_data, "vocabulary: expected a token below {}, found {}",
                tokenizer_.token_count(), index_of(token));
  }
  if (tokenizer_.is_end_of_generation(token)) {
    if (sampler_.params().probability_count > 0) {
      answer_.end_probabilities = std::move(chosen_probabilities_);
    }
    end(FinishReason::stop);
    return Ok{};
  }
  answer_.tokens.push_back(token);
  if (sampler_.params().probability_count > 0) {
    answer_.probabilities.push_back(std::move(chosen_probabilities_));
  }
  const size_t first_event = events_.size();
  reader_.push(token, events_);
  keep(first_event);
  CAIRN_TRY(constraint_.accept(token));
  if (reader_.parser().has_stopped() || constraint_.is_finished()) {
    end(FinishReason::stop);
  } else if (is_full()) {
    end_full();
  } else if (source_->room() == 0) {
    end(FinishReason::context,
        fmt::format("the context of {} tokens is full", source_->context_tokens()));
  }
  return Ok{};
}

// The events from this one on are new.
void Completion::keep(size_t first_event) {
  for (const chat::OutputEvent& event : std::span(events_).subspan(first_event)) {
    if (event.kind == chat::OutputEvent::Kind::text) answer_.text += event.text;
  }
}

Status Completion::take_step(Status stepped) {
  if (stepped || !has_prompt_ || stepped.error().code != ErrorCode::memory_full) return stepped;
  end(FinishReason::memory, std::move(stepped).error().message);
  return Ok{};
}

void Completion::end_full() {
  end(FinishReason::length, fmt::format("{} tokens, as many as were asked for", token_count_max_));
}

void Completion::end(FinishReason reason, std::string cut_by) {
  if (is_done_) return;
  is_done_ = true;
  // What was chosen since is no token of the answer.
  const auto unused = std::exchange(chosen_, std::nullopt);
  if (choices_ != nullptr && unused && *unused) choices_->take_back();
  answer_.cut_by = std::move(cut_by);
  answer_.fits_form = constraint_.is_complete();
  if (!has_prompt_) answer_.prompt_seconds = seconds();
  const size_t first_event = events_.size();
  reader_.finish(reason != FinishReason::stop, events_);
  keep(first_event);
  answer_.stop_text = reader_.parser().stop_text();
  answer_.message = reader_.message();
  answer_.reasoning_tokens = reader_.reasoning_tokens();
  const bool has_calls = !answer_.message.calls.empty();
  answer_.finish = reason == FinishReason::stop && has_calls ? FinishReason::tool_calls : reason;
}

std::vector<chat::OutputEvent> Completion::take_events() {
  return std::exchange(events_, {});
}

void Completion::take_events(std::vector<chat::OutputEvent>& events) {
  events.clear();
  events.swap(events_);
}

// Of the answer's tokens; a stop text may have begun in those before them.
size_t Completion::settled_count() const {
  return std::max(reader_.settled_tokens(), prefix_tokens_) - prefix_tokens_;
}

std::vector<sample::LogProbabilities> Completion::take_probabilities() {
  return take_probabilities_to(answer_.probabilities.size());
}

std::vector<sample::LogProbabilities> Completion::take_settled_probabilities() {
  return take_probabilities_to(std::min(settled_count(), answer_.probabilities.size()));
}

std::vector<sample::LogProbabilities> Completion::take_probabilities_to(size_t end) {
  const auto all = answer_.probabilities.begin();
  end = std::max(end, told_probabilities_);
  const size_t begin = std::exchange(told_probabilities_, end);
  return {all + std::ptrdiff_t(begin), all + std::ptrdiff_t(end)};
}

std::span<const Token> Completion::take_tokens() {
  const size_t begin = std::exchange(told_tokens_, answer_.tokens.size());
  return std::span(answer_.tokens).subspan(begin);
}

Result<Answer> Completion::finish() {
  CHECK(is_done_);
  answer_.left_out_tokens = source_->left_out_tokens();
  answer_.left_out_turns = source_->left_out_turns();
  if (has_prompt_) CAIRN_TRY(source_->finish_turn());
  answer_.generation_seconds = seconds() - answer_.prompt_seconds;
  if (speculator_ != nullptr) answer_.drafts = speculator_->report();
  if (settled_count() < answer_.probabilities.size()) {
    answer_.probabilities.resize(settled_count());
  }
  return std::move(answer_);
}

namespace {

void hand_out(Completion& completion, const AnswerHooks& hooks) {
  for (const chat::OutputEvent& event : completion.take_events()) {
    if (event.kind != chat::OutputEvent::Kind::text) {
      if (hooks.on_other) hooks.on_other(event);
    } else if (hooks.on_text) {
      hooks.on_text(event.text);
    }
  }
}

}  // namespace

Status drive(Engine& engine, Lane& lane, Completion& completion, const AnswerHooks& hooks) {
  LaneBatch batch(&engine);
  while (!completion.is_done()) {
    // Not between a token's choice and its step: who goes on later should find it computed.
    const bool may_stop = !completion.has_prompt() || !lane.wants_rows();
    if (may_stop && hooks.wants_stop && hooks.wants_stop()) {
      completion.stop();
    } else if (!lane.wants_rows()) {
      CAIRN_TRY(completion.advance());
    } else {
      const bool is_drafted = completion.has_drafters() && !lane.is_reading();
      CAIRN_TRY(completion.take_step(is_drafted ? batch.step(lane, completion) : batch.step(lane)));
      if (!completion.has_prompt() && hooks.on_prompt) {
        hooks.on_prompt(completion.prompt_tokens_done(), completion.prompt_tokens());
      }
    }
    hand_out(completion, hooks);
  }
  return Ok{};
}

}  // namespace cairn::session
