// Adding up events.
#include "chat/answer_reader.h"

#include <algorithm>

namespace cairn::chat {

AnswerReader::AnswerReader(const tokenize::Tokenizer* tokenizer, const ChatFormat& format,
                           ParserOptions options)
    : tokenizer_(tokenizer), detokenizer_(*tokenizer), parser_(format, std::move(options)) {
  message_.role = "assistant";
}

void AnswerReader::push(Token token, std::vector<OutputEvent>& events) {
  const size_t first = events.size();
  message_.tokens.push_back(token);
  unsettled_.push_back(pushed_bytes_);
  if (parser_.is_reasoning()) ++reasoning_tokens_;
  if (tokenizer_->is_control(token)) {
    if (!parser_.reads_marker(tokenizer_->piece(token))) return;
    // Half a character before a marker will never become one.
    std::string text(detokenizer_.flush());
    plain_ += text;
    text += tokenizer_->piece(token);
    push_text(text, events);
  } else {
    const std::string_view text = detokenizer_.push(token);
    plain_ += text;
    push_text(text, events);
  }
  settle();
  add(std::span(events).subspan(first));
}

void AnswerReader::push_text(std::string_view text, std::vector<OutputEvent>& events) {
  pushed_bytes_ += text.size();
  parser_.push(text, events);
}

void AnswerReader::settle() {
  const size_t settled = parser_.settled_bytes();
  const auto is_open = [settled](size_t begin) { return begin >= settled; };
  unsettled_.erase(unsettled_.begin(), std::ranges::find_if(unsettled_, is_open));
}

void AnswerReader::finish(bool is_cut, std::vector<OutputEvent>& events) {
  const size_t first = events.size();
  const std::string_view text = detokenizer_.flush();
  plain_ += text;
  push_text(text, events);
  parser_.finish(is_cut, events);
  settle();
  if (!parser_.has_stopped()) unsettled_.clear();
  add(std::span(events).subspan(first));
}

Message AnswerReader::message() const {
  Message message = message_;
  if (message.reasoning.empty() && message.calls.empty() && !parser_.has_stopped()) {
    message.content = plain_;
  }
  std::vector<ToolCall> whole;
  for (size_t call = 0; call < message.calls.size(); ++call) {
    if (is_whole_[call]) whole.push_back(message.calls[call]);
  }
  message.calls = std::move(whole);
  return message;
}

void AnswerReader::add(std::span<const OutputEvent> events) {
  for (const OutputEvent& event : events) {
    switch (event.kind) {
      case OutputEvent::Kind::text:
        message_.content += event.text;
        break;
      case OutputEvent::Kind::reasoning:
        message_.reasoning += event.text;
        break;
      case OutputEvent::Kind::call_start:
        message_.calls.push_back({.id = event.id, .name = event.text, .arguments = {}});
        is_whole_.push_back(false);
        break;
      case OutputEvent::Kind::call_arguments:
        message_.calls.back().arguments += event.text;
        break;
      case OutputEvent::Kind::call_end:
        message_.calls.back().id = event.id;
        is_whole_.back() = event.is_whole;
        break;
    }
  }
}

}  // namespace cairn::chat
