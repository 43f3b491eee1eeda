// Chunks are put together as text: they are the only thing that is made for each token.
#include "serve/openai/chat_writer.h"

#include <utility>

#include "chat/conversation.h"
#include "json/reader.h"

namespace cairn::serve::openai {

using chat::OutputEvent;

ChatWriter::ChatWriter(ObjectHead head, const ChatStyle& style, size_t choice_count,
                       const tokenize::Tokenizer* tokenizer, const chat::ChatFormat* format)
    : head_(std::move(head)),
      style_(style),
      format_(format),
      probabilities_(choice_count, {{.top_count = style.top_count}, tokenizer}) {
  json::Value object = object_json(head_, "chat.completion.chunk");
  if (style_.tells_usage) object["usage"] = json::Value();  // Its own chunk has it.
  std::string begin = json::to_text(object);
  begin.pop_back();
  chunk_begin_ = "data: " + begin + ",\"choices\":[{\"index\":";
}

void ChatWriter::begin(const PromptReport&, std::string& out) {
  for (size_t choice = 0; choice < probabilities_.size(); ++choice) {
    chunk(choice, R"("role":"assistant","content":"")", {}, out);
  }
}

void ChatWriter::chunk(size_t choice, std::string_view delta, std::string_view finish,
                       std::string& out) {
  out += chunk_begin_;
  out += fmt::format("{},\"delta\":{{{}}},\"logprobs\":", choice, delta);
  if (probabilities_[choice].is_empty()) {
    out += "null";
  } else {
    out += R"({"content":)";
    probabilities_[choice].take(out);
    out += '}';
  }
  out += ",\"finish_reason\":";
  if (finish.empty()) {
    out += "null}]}\n\n";
  } else {
    out += fmt::format("\"{}\"}}]", finish);
  }
}

void ChatWriter::gather(size_t choice, const session::AnswerPiece& piece) {
  if (style_.tells_probabilities) probabilities_[choice].add(piece.probabilities);
}

std::string ChatWriter::call_id(const std::string& known, size_t call) const {
  return known.empty() ? chat::make_call_id(format_->call, style_.message_count, call) : known;
}

void ChatWriter::add(size_t choice, const session::AnswerPiece& piece, std::string& out) {
  gather(choice, piece);
  for (const OutputEvent& event : piece.events) {
    // Bytes that are no UTF-8 are of no use to a client.
    const std::string text = json::escaped(chat::as_utf8(event.text));
    switch (event.kind) {
      case OutputEvent::Kind::text:
        chunk(choice, fmt::format(R"("content":"{}")", text), {}, out);
        break;
      case OutputEvent::Kind::reasoning:
        chunk(choice, fmt::format(R"("reasoning_content":"{}")", text), {}, out);
        break;
      case OutputEvent::Kind::call_start:
        chunk(
            choice,
            fmt::format(R"("tool_calls":[{{"index":{},"id":"{}","type":"function",)"
                        R"("function":{{"name":"{}","arguments":""}}}}])",
                        event.call,
                        json::escaped(chat::as_utf8(call_id(event.id, size_t(event.call)))), text),
            {}, out);
        break;
      case OutputEvent::Kind::call_arguments:
        chunk(choice,
              fmt::format(R"("tool_calls":[{{"index":{},"function":{{"arguments":"{}"}}}}])",
                          event.call, text),
              {}, out);
        break;
      case OutputEvent::Kind::call_end:
        break;
    }
  }
}

void ChatWriter::end_choice(size_t choice, const session::Answer& answer, std::string& out) {
  chunk(choice, {}, finish_reason(answer), out);
  out += ",\"timings\":" + json::to_text(timings_json(std::span(&answer, 1), 1));
  out += ",\"memory\":" + json::to_text(memory_of(answer));
  const json::Value told = told_at_end(answer);
  for (const json::Value::Member& member : told.members()) {
    out += fmt::format(",{}:{}", json::quoted(member.key), json::to_text(member.value));
  }
  out += "}\n\n";
}

json::Value ChatWriter::memory_of(const session::Answer& answer) const {
  json::Value memory = memory_json(answer);
  if (!style_.session.empty()) memory["session"] = style_.session;
  return memory;
}

json::Value ChatWriter::told_at_end(const session::Answer& answer) {
  json::Value told = json::Value::object();
  if (!answer.cut_by.empty()) told["cut_by"] = answer.cut_by;
  if (style_.on_end) style_.on_end(answer, told);
  return told;
}

json::Value ChatWriter::message_json(const session::Answer& answer) const {
  const chat::Message& said = answer.message;
  json::Value message = {{"role", "assistant"}};
  const bool is_null = said.content.empty() && !said.calls.empty();
  message["content"] = is_null ? json::Value() : json::Value(said.content);
  if (!said.reasoning.empty()) message["reasoning_content"] = said.reasoning;
  for (size_t call = 0; call < said.calls.size(); ++call) {
    message["tool_calls"].push_back(
        {{"id", call_id(said.calls[call].id, call)},
         {"type", "function"},
         {"function",
          {{"name", said.calls[call].name}, {"arguments", said.calls[call].arguments}}}});
  }
  message["refusal"] = json::Value();
  return message;
}

void ChatWriter::add_whole(size_t choice, const session::Answer& answer, std::string& out) {
  json::Value one = {{"index", choice},
                     {"message", message_json(answer)},
                     {"finish_reason", finish_reason(answer)}};
  const json::Value told = told_at_end(answer);
  for (const json::Value::Member& member : told.members()) one[member.key] = member.value;
  out += json::to_text(one);
  begin_member("logprobs", out);
  if (style_.tells_probabilities) {
    probabilities_[choice].complete(answer.probabilities);
    out += R"({"content":)";
    probabilities_[choice].take(out);
    out += R"(,"refusal":null}})";
  } else {
    out += "null}";
  }
}

void ChatWriter::end(std::span<const session::Answer> answers, std::string& out) {
  if (style_.is_stream) {
    if (style_.tells_usage) {
      json::Value last = object_json(head_, "chat.completion.chunk");
      last["choices"] = json::Value::array();
      last["usage"] = usage_json(answers, answers.size());
      out += "data: " + json::to_text(last) + "\n\n";
    }
    out += "data: [DONE]\n\n";
    return;
  }
  json::Value whole = object_json(head_, "chat.completion");
  whole["usage"] = usage_json(answers, answers.size());
  whole["timings"] = timings_json(answers, answers.size());
  whole["memory"] = memory_of(answers.front());
  size_t bytes = 0;
  for (const ProbabilityTexts& texts : probabilities_) bytes += texts.bytes();
  out.reserve(bytes);
  out += json::to_text(whole);
  begin_member("choices", out);
  for (size_t choice = 0; choice < answers.size(); ++choice) {
    out += choice == 0 ? '[' : ',';
    add_whole(choice, answers[choice], out);
  }
  out += "]}";
}

void ChatWriter::fail(const Refusal& refusal, std::string& out) {
  out += "data: " + refusal_json(refusal) + "\n\n";
}

}  // namespace cairn::serve::openai
