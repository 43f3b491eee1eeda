// Answers as /v1/responses has them: one object, or a stream of events. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/format.h"
#include "json/value.h"
#include "serve/answer_json.h"
#include "serve/generation.h"

namespace cairn::serve::openai {

struct ResponsesStyle {
  bool is_stream = false;
  ObjectHead head;
  json::Value told = {};     // Members of the object that only the request decides.
  size_t message_count = 0;  // Of the conversation; calls are named by it.
};

class ResponsesWriter final : public AnswerWriter {
 public:
  using Keep = std::function<void(const session::Answer& answer, const json::Value& object)>;

  // `keep`: called with the answer when it has ended, and with its object, before anybody is told
  // so; may be empty.
  // `format` must outlive the writer.
  ResponsesWriter(ResponsesStyle style, const chat::ChatFormat* format, Keep keep);

  bool is_stream() const override { return style_.is_stream; }
  std::vector<http::Header> headers() const override;
  void begin(const PromptReport& prompt, std::string& out) override;
  void add(size_t choice, const session::AnswerPiece& piece, std::string& out) override;
  void end_choice(size_t choice, const session::Answer& answer, std::string& out) override;
  void end(std::span<const session::Answer> answers, std::string& out) override;
  void fail(const Refusal& refusal, std::string& out) override;

 private:
  enum class Item : uint8_t { none, reasoning, message, call };
  void event(std::string_view type, json::Value data, std::string& out);
  // Of an item: with its id and index.
  void item_event(std::string_view type, json::Value data, std::string& out);
  void delta(std::string_view type, std::string_view extra, std::string_view text,
             std::string& out);
  void open(Item kind, std::string_view call_id, std::string_view name, std::string& out);
  void close(std::string_view status, std::string& out);
  void close_parts(std::string& out);
  json::Value part_json() const;
  json::Value item_json(std::string_view status) const;
  json::Value object_json(std::string_view status) const;
  json::Value ended_json(const session::Answer& answer) const;

  ResponsesStyle style_;
  const chat::ChatFormat* format_;
  Keep keep_;
  int64_t sequence_ = 0;
  json::Value output_ = json::Value::array();  // The items that are done.
  // Of the item that is open.
  Item open_ = Item::none;
  std::string item_id_, call_id_, name_, text_;
};

}  // namespace cairn::serve::openai
