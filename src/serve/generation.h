// The answers to one request: submits them to the service, no more at a time than it has places
// for, follows their streams, and has them written in the words of an API. Destroyed before its
// end, it cancels what is left. Thread rule: that of http::Reply.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/http/reply.h"
#include "serve/metrics.h"
#include "serve/refusal.h"
#include "serve/slots.h"
#include "session/service.h"

namespace cairn::serve {

// Writes answers in the form of one API, as a stream or whole.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual bool is_stream() const = 0;
  // Of the reply's head.
  virtual std::vector<http::Header> headers() const { return {}; }
  // Of a stream, in this order: once before all pieces, with the first choice's prompt; for each
  // choice its pieces and its end; then the end of all. Whole answers are written at that end
  // alone.
  virtual void begin(const PromptReport& prompt, std::string& out) = 0;
  virtual void add(size_t choice, const session::AnswerPiece& piece, std::string& out) = 0;
  virtual void end_choice(size_t choice, const session::Answer& answer, std::string& out) = 0;
  // Of a whole answer: what has come, so that what takes long is not left to the end.
  virtual void gather(size_t /*choice*/, const session::AnswerPiece& /*piece*/) {}
  virtual void end(std::span<const session::Answer> answers, std::string& out) = 0;
  // Instead, where an answer fails when the stream has begun.
  virtual void fail(const Refusal& refusal, std::string& out) = 0;
  // Nothing is written any more: what was to be done at the end is not.
  virtual void give_up() {}
  virtual std::string_view idle_text() const { return ": waiting\n\n"; }
  virtual std::string_view stream_type() const { return "text/event-stream"; }
  virtual ErrorForm error_form() const { return ErrorForm::openai; }
};

class Generation final : public http::Reply {
 public:
  // `slot`: is held until the end.
  Generation(session::Service* service, std::vector<session::AnswerOrder> orders,
             const JobTerms& terms, std::unique_ptr<AnswerWriter> writer, ModelMetrics* metrics,
             std::unique_ptr<Slots::Slot> slot);
  ~Generation() override;

  void listen(std::function<void()> wake) override;
  State read(std::string& out) override;
  const http::ReplyHead* head() const override { return head_ ? &*head_ : nullptr; }
  std::string_view idle_text() const override {
    return writer_->is_stream() ? writer_->idle_text() : std::string_view();
  }
  std::vector<std::pair<std::string, int64_t>> figures() const override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Choice {
    // Until the prompt is begun, where there are other choices: the queue may refuse it.
    std::optional<session::AnswerOrder> order;
    session::Service::Ticket ticket = {JobId(-1), nullptr};  // No stream: it is not submitted.
    size_t ended_before = 0;                                 // Choices, when it was submitted.
    bool has_ended = false;
    double waited_seconds = 0;  // Until its prompt was begun.

    bool is_open() const { return ticket.stream != nullptr && !has_ended; }
  };

  double seconds() const {
    return std::chrono::duration<double>(Clock::now() - begin_time_).count();
  }
  int32_t open_count() const;
  void submit_more();
  bool put_back(Choice& choice);
  void follow(size_t index, std::string& out);
  void begin(const PromptReport& prompt, std::string& out);
  void fail(const Refusal& refusal, std::string& out);
  void let_go();

  session::Service* service_;
  std::unique_ptr<AnswerWriter> writer_;
  ModelMetrics* metrics_;
  std::unique_ptr<Slots::Slot> slot_;
  JobTerms terms_;
  std::function<void()> wake_;
  std::vector<Choice> choices_;
  int32_t open_max_;                      // Choices that are submitted and have not ended.
  std::vector<session::Answer> answers_;  // By choice.
  size_t ended_count_ = 0;
  std::optional<http::ReplyHead> head_;
  bool has_begun_ = false, has_failed_ = false;
  Clock::time_point begin_time_;
};

}  // namespace cairn::serve
