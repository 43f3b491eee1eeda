// The events of a streamed chat completion become an answer. Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "session/answer.h"
#include "session/completion.h"

namespace cairn::terminal_chat {

class EventReader {
 public:
  // `hooks` must outlive the reader.
  explicit EventReader(const session::AnswerHooks* hooks) : hooks_(*hooks) {}

  // Any piece of the stream.
  void add(std::string_view bytes);
  bool has_text() const { return has_text_; }
  // At the end of the stream. Errors: the server's own; io: there is no end.
  Result<session::Answer> finish() &&;
  json::Value take_receipt() { return std::move(receipt_); }

 private:
  void take_event(std::string_view data);
  void take_delta(const json::Value& delta);
  void take_end(const json::Value& event);

  const session::AnswerHooks& hooks_;
  std::string waiting_;
  session::Answer answer_;
  json::Value receipt_;
  std::string error_;
  bool has_text_ = false, has_ended_ = false;
};

// "the server's words", of a reply that is an error.
std::string server_error(int status, std::string_view body);

}  // namespace cairn::terminal_chat
