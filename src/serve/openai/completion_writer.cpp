// The older form of probabilities has lists beside each other.
#include "serve/openai/completion_writer.h"

#include <algorithm>
#include <utility>

#include "chat/conversation.h"

namespace cairn::serve::openai {

namespace {

constexpr std::string_view kKind = "text_completion";

// Of text that is UTF-8.
size_t characters_in(std::string_view text) {
  return size_t(
      std::count_if(text.begin(), text.end(), [](char c) { return (uint8_t(c) & 0xc0) != 0x80; }));
}

}  // namespace

CompletionWriter::CompletionWriter(ObjectHead head, CompletionStyle style, size_t choice_count,
                                   const tokenize::Tokenizer* tokenizer)
    : head_(std::move(head)),
      style_(std::move(style)),
      tokenizer_(tokenizer),
      waiting_(choice_count) {
  for (size_t choice = 0; choice < choice_count; ++choice) {
    offsets_.push_back(characters_in(echo_of(choice)));
  }
}

std::string_view CompletionWriter::echo_of(size_t choice) const {
  if (style_.echo.empty()) return {};
  return style_.echo[choice / style_.per_prompt];
}

json::Value CompletionWriter::choice_json(size_t choice, std::string_view text,
                                          std::span<const sample::LogProbabilities> probabilities) {
  json::Value one = {{"index", choice}, {"text", chat::as_utf8(text)}};
  one["logprobs"] = json::Value();
  if (!style_.tells_probabilities) return one;
  json::Value tokens = json::Value::array(), values = json::Value::array();
  json::Value tops = json::Value::array(), offsets = json::Value::array();
  for (const sample::LogProbabilities& probability : probabilities) {
    const std::string piece = chat::as_utf8(tokenizer_->piece(probability.chosen.token));
    tokens.push_back(piece);
    values.push_back(finite(probability.chosen.log_probability));
    offsets.push_back(offsets_[choice]);
    offsets_[choice] += characters_in(piece);
    json::Value top = json::Value::object();
    for (const sample::TokenProbability& other : probability.top) {
      if (int32_t(top.members().size()) == style_.top_count) break;
      top.set(chat::as_utf8(tokenizer_->piece(other.token)), finite(other.log_probability));
    }
    tops.push_back(std::move(top));
  }
  one["logprobs"] = {{"tokens", std::move(tokens)},
                     {"token_logprobs", std::move(values)},
                     {"top_logprobs", std::move(tops)},
                     {"text_offset", std::move(offsets)}};
  return one;
}

void CompletionWriter::chunk(json::Value choice, json::Value extra, std::string& out) const {
  json::Value object = object_json(head_, kKind);
  object["choices"].push_back(std::move(choice));
  for (const json::Value::Member& member : extra.members()) object[member.key] = member.value;
  out += "data: " + json::to_text(object) + "\n\n";
}

void CompletionWriter::begin(const PromptReport&, std::string& out) {
  for (size_t choice = 0; choice < waiting_.size() && !style_.echo.empty(); ++choice) {
    json::Value one = choice_json(choice, echo_of(choice), {});
    one["finish_reason"] = json::Value();
    chunk(std::move(one), {}, out);
  }
}

void CompletionWriter::add(size_t choice, const session::AnswerPiece& piece, std::string& out) {
  auto& waiting = waiting_[choice];
  waiting.insert(waiting.end(), piece.probabilities.begin(), piece.probabilities.end());
  std::string text;
  for (const chat::OutputEvent& event : piece.events) text += event.text;
  if (text.empty()) return;
  json::Value one = choice_json(choice, text, std::exchange(waiting, {}));
  one["finish_reason"] = json::Value();
  chunk(std::move(one), {}, out);
}

void CompletionWriter::end_choice(size_t choice, const session::Answer& answer, std::string& out) {
  json::Value one = choice_json(choice, {}, std::exchange(waiting_[choice], {}));
  one["finish_reason"] = finish_reason(answer);
  if (!answer.cut_by.empty()) one["cut_by"] = answer.cut_by;
  chunk(std::move(one),
        {{"timings", timings_json(std::span(&answer, 1), 1)}, {"memory", memory_json(answer)}},
        out);
}

void CompletionWriter::end(std::span<const session::Answer> answers, std::string& out) {
  json::Value whole = object_json(head_, kKind);
  whole["choices"] = json::Value::array();
  if (style_.is_stream) {
    if (style_.tells_usage) {
      whole["usage"] = usage_json(answers, style_.per_prompt);
      out += "data: " + json::to_text(whole) + "\n\n";
    }
    out += "data: [DONE]\n\n";
    return;
  }
  for (size_t choice = 0; choice < answers.size(); ++choice) {
    const session::Answer& answer = answers[choice];
    std::string text(echo_of(choice));
    text += answer.text;
    json::Value one = choice_json(choice, text, answer.probabilities);
    one["finish_reason"] = finish_reason(answer);
    if (!answer.cut_by.empty()) one["cut_by"] = answer.cut_by;
    whole["choices"].push_back(std::move(one));
  }
  whole["usage"] = usage_json(answers, style_.per_prompt);
  whole["timings"] = timings_json(answers, style_.per_prompt);
  whole["memory"] = memory_json(answers.front());
  out += json::to_text(whole);
}

void CompletionWriter::fail(const Refusal& refusal, std::string& out) {
  out += "data: " + refusal_json(refusal) + "\n\n";
}

}  // namespace cairn::serve::openai
