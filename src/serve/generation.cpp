// Following streams.
#include "serve/generation.h"

#include <algorithm>

#include "base/log.h"

namespace cairn::serve {

Generation::Generation(session::Service* service, std::vector<session::AnswerOrder> orders,
                       const JobTerms& terms, std::unique_ptr<AnswerWriter> writer,
                       ModelMetrics* metrics, std::unique_ptr<Slots::Slot> slot)
    : service_(service),
      writer_(std::move(writer)),
      metrics_(metrics),
      slot_(std::move(slot)),
      terms_(terms),
      open_max_(std::max(service->running_max(), 1)),
      answers_(orders.size()),
      begin_time_(Clock::now()) {
  for (session::AnswerOrder& order : orders) choices_.push_back({.order = std::move(order)});
  submit_more();
}

int32_t Generation::open_count() const {
  return int32_t(std::ranges::count_if(choices_, &Choice::is_open));
}

// More than may run would only fill the queue, which has a limit.
void Generation::submit_more() {
  int32_t room = open_max_ - open_count();
  for (Choice& choice : choices_) {
    if (room <= 0) break;
    if (choice.ticket.stream != nullptr || choice.has_ended) continue;
    // One that is alone is never put back.
    choice.ticket = service_->answer(
        choices_.size() == 1 ? *std::exchange(choice.order, std::nullopt) : *choice.order, terms_);
    choice.ended_before = ended_count_;
    if (wake_) choice.ticket.stream->listen(wake_);
    --room;
  }
}

// Of a choice that the full queue has refused: it is submitted again when another one has ended.
// False where none will, and none did meanwhile.
bool Generation::put_back(Choice& choice) {
  if (!choice.order) return false;
  choice.ticket.stream->listen({});
  choice.ticket.stream = nullptr;
  open_max_ = std::max(open_count(), 1);
  return open_count() > 0 || ended_count_ > choice.ended_before;
}

Generation::~Generation() {
  let_go();
}

void Generation::let_go() {
  writer_->give_up();
  for (Choice& choice : choices_) {
    if (choice.ticket.stream != nullptr) choice.ticket.stream->listen({});
    if (choice.is_open()) service_->cancel(choice.ticket.id);
    if (!std::exchange(choice.has_ended, true)) metrics_->add_cancelled();
  }
}

// What came before is told by the first read().
void Generation::listen(std::function<void()> wake) {
  wake_ = std::move(wake);
  for (Choice& choice : choices_) {
    if (choice.ticket.stream != nullptr) choice.ticket.stream->listen(wake_);
  }
}

http::Reply::State Generation::read(std::string& out) {
  // What takes the place of an answer that has ended is followed too: it may have ended already.
  // And where none is open any more, nobody's end would submit those that were put back.
  for (bool goes_on = true; goes_on && !has_failed_;) {
    const size_t ended_before = ended_count_;
    submit_more();
    for (size_t index = 0; index < choices_.size() && !has_failed_; ++index) {
      if (choices_[index].is_open()) follow(index, out);
    }
    goes_on = ended_count_ > ended_before || (ended_count_ < choices_.size() && open_count() == 0);
  }
  if (has_failed_) return State::ended;
  if (ended_count_ < choices_.size()) return State::waiting;
  begin(answers_.front().prompt, out);
  writer_->end(answers_, out);
  if (!head_) head_ = {.headers = writer_->headers()};
  return State::ended;
}

// The head of a stream, once the first prompt is begun.
void Generation::begin(const PromptReport& prompt, std::string& out) {
  if (std::exchange(has_begun_, true) || !writer_->is_stream()) return;
  head_ = {.content_type = std::string(writer_->stream_type()),
           .headers = writer_->headers(),
           .is_stream = true};
  head_->headers.push_back({"cache-control", "no-cache"});
  head_->headers.push_back({"x-accel-buffering", "no"});
  writer_->begin(prompt, out);
}

void Generation::follow(size_t index, std::string& out) {
  Choice& choice = choices_[index];
  const session::AnswerPiece piece = choice.ticket.stream->take();
  if (piece.prompt) {
    if (choice.waited_seconds == 0) choice.waited_seconds = seconds();
    choice.order.reset();
    begin(*piece.prompt, out);
  }
  const bool is_stream = writer_->is_stream();
  const bool has_news = !piece.events.empty() || !piece.probabilities.empty() ||
                        piece.prompt_probabilities != nullptr;
  if (is_stream && has_begun_ && has_news) writer_->add(index, piece, out);
  if (!is_stream) writer_->gather(index, piece);
  if (!piece.has_ended) return;
  Result<session::Answer> answer = choice.ticket.stream->wait();
  if (!answer) {
    const Error& error = answer.error();
    // Before its prompt is begun there is no other reason for this one.
    const bool is_queue_full = !piece.prompt && error.code == ErrorCode::no_room;
    if (is_queue_full && put_back(choice)) return;
    choice.has_ended = true;
    fail(is_queue_full ? busy_refusal(error.message) : answer_refusal_of(error), out);
    return;
  }
  choice.has_ended = true;
  ++ended_count_;
  // There may be room again: what was refused once does not make all others wait for each other.
  open_max_ = std::min(open_max_ + 1, std::max(service_->running_max(), 1));
  metrics_->add_answer(*answer, choice.waited_seconds, seconds());
  answers_[index] = std::move(answer).value();
  if (is_stream) {
    begin(answers_[index].prompt, out);
    writer_->end_choice(index, answers_[index], out);
  }
}

void Generation::fail(const Refusal& refusal, std::string& out) {
  if (refusal.status >= 500) log::warning("an answer failed: {}", refusal.message);
  has_failed_ = true;
  if (head_) {
    writer_->fail(refusal, out);
  } else {
    head_ = refusal_head(refusal);
    out = refusal_json(refusal, writer_->error_form());
  }
  let_go();
}

std::vector<std::pair<std::string, int64_t>> Generation::figures() const {
  int64_t prompt = 0, reused = 0, made = 0;
  for (const session::Answer& answer : answers_) {
    prompt += answer.prompt.prompt_tokens;
    reused += answer.prompt.reused_tokens;
    made += int64_t(answer.tokens.size());
  }
  return {{"prompt_tokens", prompt}, {"cached_tokens", reused}, {"completion_tokens", made}};
}

}  // namespace cairn::serve
