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

// Where the tokens of a text stand in it, in characters. A token that the text does not have, such
// as one that the model wants before it, takes no place; of some vocabularies the first token has a
// space that the text lacks.
class TokenPlaces {
 public:
  explicit TokenPlaces(std::string_view text) : rest_(text) {}

  size_t next(std::string_view piece) {
    const size_t place = characters_;
    if (!rest_.starts_with(piece) && piece.starts_with(' ')) piece.remove_prefix(1);
    if (rest_.starts_with(piece)) {
      characters_ += characters_in(piece);
      rest_.remove_prefix(piece.size());
    }
    return place;
  }

 private:
  std::string_view rest_;
  size_t characters_ = 0;
};

}  // namespace

// Of some tokens, one after the other.
struct CompletionWriter::Lists {
  json::Value tokens = json::Value::array(), values = json::Value::array();
  json::Value tops = json::Value::array(), offsets = json::Value::array();

  json::Value take() {
    return {{"tokens", std::move(tokens)},
            {"token_logprobs", std::move(values)},
            {"top_logprobs", std::move(tops)},
            {"text_offset", std::move(offsets)}};
  }
};

CompletionWriter::CompletionWriter(ObjectHead head, CompletionStyle style, size_t choice_count,
                                   const tokenize::Tokenizer* tokenizer)
    : head_(std::move(head)),
      style_(std::move(style)),
      tokenizer_(tokenizer),
      waiting_(choice_count),
      held_(choice_count) {
  for (size_t choice = 0; choice < choice_count; ++choice) {
    offsets_.push_back(style_.echo.empty() ? 0 : characters_in(echo_of(choice).text));
    if (style_.tells_prompts()) held_[choice].emplace();
  }
}

void CompletionWriter::add_token(const sample::LogProbabilities& probability, size_t offset,
                                 Lists& lists) const {
  lists.tokens.push_back(chat::as_utf8(tokenizer_->piece(probability.chosen.token)));
  lists.values.push_back(finite(probability.chosen.log_probability));
  lists.offsets.push_back(offset);
  json::Value top = json::Value::object();
  for (const sample::TokenProbability& other : probability.top) {
    if (int32_t(top.members().size()) == style_.top_count) break;
    top.set(chat::as_utf8(tokenizer_->piece(other.token)), finite(other.log_probability));
  }
  lists.tops.push_back(std::move(top));
}

// Nothing says how likely the first token is.
CompletionWriter::Lists CompletionWriter::prompt_lists(
    size_t choice, const session::PromptProbabilities& probabilities) const {
  const Echo& echo = echo_of(choice);
  TokenPlaces places(echo.text);
  Lists lists;
  const std::string_view first = tokenizer_->piece(echo.first);
  lists.tokens.push_back(chat::as_utf8(first));
  lists.values.push_back(json::Value());
  lists.tops.push_back(json::Value());
  lists.offsets.push_back(places.next(first));
  for (const sample::LogProbabilities& one : probabilities) {
    add_token(one, places.next(tokenizer_->piece(one.chosen.token)), lists);
  }
  return lists;
}

void CompletionWriter::add_answer(size_t choice,
                                  std::span<const sample::LogProbabilities> probabilities,
                                  Lists& lists) {
  for (const sample::LogProbabilities& one : probabilities) {
    add_token(one, offsets_[choice], lists);
    offsets_[choice] += characters_in(chat::as_utf8(tokenizer_->piece(one.chosen.token)));
  }
}

json::Value CompletionWriter::choice_json(size_t choice, std::string_view text, Lists lists) const {
  json::Value one = {{"index", choice}, {"text", chat::as_utf8(text)}};
  one["logprobs"] = style_.tells_probabilities ? lists.take() : json::Value();
  one["finish_reason"] = json::Value();
  return one;
}

void CompletionWriter::chunk(json::Value choice, json::Value extra, std::string& out) const {
  json::Value object = object_json(head_, kKind);
  object["choices"].push_back(std::move(choice));
  for (const json::Value::Member& member : extra.members()) object[member.key] = member.value;
  out += "data: " + json::to_text(object) + "\n\n";
}

void CompletionWriter::add_echo(size_t choice, const session::PromptProbabilities* probabilities,
                                std::string& out) const {
  Lists lists = probabilities == nullptr ? Lists() : prompt_lists(choice, *probabilities);
  chunk(choice_json(choice, echo_of(choice).text, std::move(lists)), {}, out);
}

// Of the choice, which is the first of its prompt, and of all others of that prompt.
void CompletionWriter::add_echoes(size_t choice, const session::PromptProbabilities& probabilities,
                                  std::string& out) {
  for (size_t other = choice; other < choice + style_.per_prompt; ++other) {
    add_echo(other, &probabilities, out);
    out += *std::exchange(held_[other], std::nullopt);
  }
}

// Where its pieces are written: another choice may be ahead of the first one of its prompt, whose
// probabilities stand before them.
std::string& CompletionWriter::place_of(size_t choice, std::string& out) {
  return held_[choice] ? *held_[choice] : out;
}

void CompletionWriter::begin(const PromptReport&, std::string& out) {
  if (style_.echo.empty() || style_.tells_prompts()) return;
  for (size_t choice = 0; choice < waiting_.size(); ++choice) add_echo(choice, nullptr, out);
}

void CompletionWriter::add(size_t choice, const session::AnswerPiece& piece, std::string& out) {
  if (piece.prompt_probabilities != nullptr) {
    add_echoes(choice, *piece.prompt_probabilities, out);
  }
  auto& waiting = waiting_[choice];
  waiting.insert(waiting.end(), piece.probabilities.begin(), piece.probabilities.end());
  std::string text;
  for (const chat::OutputEvent& event : piece.events) text += event.text;
  if (text.empty()) return;
  Lists lists;
  add_answer(choice, std::exchange(waiting, {}), lists);
  chunk(choice_json(choice, text, std::move(lists)), {}, place_of(choice, out));
}

// What is left of the answer's probabilities; where the prompt's are told too, its end token's
// among them, since whoever measures texts counts on at least one token behind the prompt.
void CompletionWriter::add_rest(size_t choice, const session::Answer& answer,
                                std::span<const sample::LogProbabilities> probabilities,
                                Lists& lists) {
  add_answer(choice, probabilities, lists);
  const bool tells_end = style_.tells_prompts() && answer.end_probabilities;
  if (tells_end) add_answer(choice, std::span(&*answer.end_probabilities, 1), lists);
}

void CompletionWriter::end_choice(size_t choice, const session::Answer& answer, std::string& out) {
  Lists lists;
  add_rest(choice, answer, std::exchange(waiting_[choice], {}), lists);
  json::Value one = choice_json(choice, {}, std::move(lists));
  one["finish_reason"] = finish_reason(answer);
  if (!answer.cut_by.empty()) one["cut_by"] = answer.cut_by;
  chunk(std::move(one),
        {{"timings", timings_json(std::span(&answer, 1), 1)}, {"memory", memory_json(answer)}},
        place_of(choice, out));
}

json::Value CompletionWriter::whole_choice(size_t choice,
                                           std::span<const session::Answer> answers) {
  const session::Answer& answer = answers[choice];
  std::string text = style_.echo.empty() ? std::string() : echo_of(choice).text;
  text += answer.text;
  Lists lists;
  if (style_.tells_prompts()) {
    const session::Answer& first = answers[choice - choice % style_.per_prompt];
    lists = prompt_lists(choice, *first.prompt_probabilities);
  }
  add_rest(choice, answer, answer.probabilities, lists);
  json::Value one = choice_json(choice, text, std::move(lists));
  one["finish_reason"] = finish_reason(answer);
  if (!answer.cut_by.empty()) one["cut_by"] = answer.cut_by;
  return one;
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
    whole["choices"].push_back(whole_choice(choice, answers));
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
