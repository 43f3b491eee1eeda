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
    size_t place = characters_;
    if (!rest_.starts_with(piece) && piece.starts_with(' ')) piece.remove_prefix(1);
    if (rest_.starts_with(piece)) {
      // The rest of a character stands where that begins.
      if (!piece.empty() && (uint8_t(piece[0]) & 0xc0) == 0x80 && place > 0) --place;
      characters_ += characters_in(piece);
      rest_.remove_prefix(piece.size());
    }
    return place;
  }

 private:
  std::string_view rest_;
  size_t characters_ = 0;
};

// Those of the prompt before those of the answer.
void add_both(const TextList& prompt, const TextList& answer, std::string& out) {
  out += '[';
  out += prompt.text();
  if (prompt.size() > 0 && answer.size() > 0) out += ',';
  out += answer.text();
  out += ']';
}

}  // namespace

void CompletionWriter::Lists::cut(size_t count) {
  for (TextList* const list : {&tokens, &values, &tops, &offsets}) list->cut(count);
}

size_t CompletionWriter::Place::next(Token token) {
  return std::exchange(characters, characters + characters_in(chat::as_utf8(text.push(token))));
}

CompletionWriter::CompletionWriter(ObjectHead head, CompletionStyle style, size_t choice_count,
                                   const tokenize::Tokenizer* tokenizer)
    : head_(std::move(head)),
      style_(std::move(style)),
      tokenizer_(tokenizer),
      lists_(choice_count),
      held_(choice_count) {
  for (size_t choice = 0; choice < choice_count; ++choice) {
    const size_t begin = style_.echo.empty() ? 0 : characters_in(echo_of(choice).text);
    places_.push_back({begin, tokenize::Detokenizer(*tokenizer)});
    if (style_.tells_prompts()) held_[choice].emplace();
  }
}

void CompletionWriter::add_token(const sample::LogProbabilities& probability, size_t offset,
                                 Lists& lists) const {
  lists.tokens.add(json::to_text(chat::as_utf8(tokenizer_->piece(probability.chosen.token))));
  lists.values.add(json::to_text(finite(probability.chosen.log_probability)));
  lists.offsets.add(json::to_text(offset));
  json::Value top = json::Value::object();
  for (const sample::TokenProbability& other : probability.top) {
    if (int32_t(top.members().size()) == style_.top_count) break;
    top.set(chat::as_utf8(tokenizer_->piece(other.token)), finite(other.log_probability));
  }
  lists.tops.add(json::to_text(top));
}

// Nothing says how likely the first token is.
CompletionWriter::Lists CompletionWriter::prompt_lists(
    size_t choice, const session::PromptProbabilities& probabilities) const {
  const Echo& echo = echo_of(choice);
  TokenPlaces places(echo.text);
  Lists lists;
  const std::string_view first = tokenizer_->piece(echo.first);
  lists.tokens.add(json::to_text(chat::as_utf8(first)));
  lists.values.add("null");
  lists.tops.add("null");
  lists.offsets.add(json::to_text(places.next(first)));
  for (const sample::LogProbabilities& one : probabilities) {
    add_token(one, places.next(tokenizer_->piece(one.chosen.token)), lists);
  }
  return lists;
}

void CompletionWriter::add_answer(size_t choice,
                                  std::span<const sample::LogProbabilities> probabilities) {
  for (const sample::LogProbabilities& one : probabilities) {
    add_token(one, places_[choice].next(one.chosen.token), lists_[choice]);
  }
}

// `answer`: null where it goes on.
void CompletionWriter::add_choice(size_t choice, std::string_view text, const Lists& prompt,
                                  const Lists& lists, const session::Answer* answer,
                                  std::string& out) const {
  json::Value one = {{"index", choice}, {"text", chat::as_utf8(text)}};
  one["finish_reason"] = answer == nullptr ? json::Value() : json::Value(finish_reason(*answer));
  if (answer != nullptr && !answer->cut_by.empty()) one["cut_by"] = answer->cut_by;
  out += json::to_text(one);
  begin_member("logprobs", out);
  if (!style_.tells_probabilities) {
    out += "null}";
    return;
  }
  out += R"({"tokens":)";
  add_both(prompt.tokens, lists.tokens, out);
  out += R"(,"token_logprobs":)";
  add_both(prompt.values, lists.values, out);
  out += R"(,"top_logprobs":)";
  add_both(prompt.tops, lists.tops, out);
  out += R"(,"text_offset":)";
  add_both(prompt.offsets, lists.offsets, out);
  out += "}}";
}

void CompletionWriter::chunk(size_t choice, std::string_view text, const Lists& lists,
                             const session::Answer* answer, std::string& out) const {
  json::Value object = object_json(head_, kKind);
  if (style_.tells_usage) object["usage"] = json::Value();  // Its own chunk has it.
  if (answer != nullptr) {
    object["timings"] = timings_json(std::span(answer, 1), 1);
    object["memory"] = memory_json(*answer);
  }
  out += "data: " + json::to_text(object);
  begin_member("choices", out);
  out += '[';
  add_choice(choice, text, {}, lists, answer, out);
  out += "]}\n\n";
}

void CompletionWriter::add_echo(size_t choice, const session::PromptProbabilities* probabilities,
                                std::string& out) const {
  const Lists lists = probabilities == nullptr ? Lists() : prompt_lists(choice, *probabilities);
  chunk(choice, echo_of(choice).text, lists, nullptr, out);
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
  for (size_t choice = 0; choice < lists_.size(); ++choice) add_echo(choice, nullptr, out);
}

void CompletionWriter::add(size_t choice, const session::AnswerPiece& piece, std::string& out) {
  if (piece.prompt_probabilities != nullptr) {
    add_echoes(choice, *piece.prompt_probabilities, out);
  }
  gather(choice, piece);
  std::string text;
  for (const chat::OutputEvent& event : piece.events) text += event.text;
  if (text.empty()) return;
  chunk(choice, text, std::exchange(lists_[choice], {}), nullptr, place_of(choice, out));
}

void CompletionWriter::gather(size_t choice, const session::AnswerPiece& piece) {
  if (style_.tells_probabilities) add_answer(choice, piece.probabilities);
}

// Where the prompt's probabilities are told too, the end token's are among the answer's, since
// whoever measures texts counts on at least one token behind the prompt.
void CompletionWriter::add_end(size_t choice, const session::Answer& answer) {
  const bool tells_end = style_.tells_prompts() && answer.end_probabilities;
  if (tells_end) add_answer(choice, std::span(&*answer.end_probabilities, 1));
}

void CompletionWriter::end_choice(size_t choice, const session::Answer& answer, std::string& out) {
  add_end(choice, answer);
  chunk(choice, {}, std::exchange(lists_[choice], {}), &answer, place_of(choice, out));
}

void CompletionWriter::add_whole(size_t choice, std::span<const session::Answer> answers,
                                 std::string& out) {
  const session::Answer& answer = answers[choice];
  std::string text = style_.echo.empty() ? std::string() : echo_of(choice).text;
  text += answer.text;
  Lists prompt;
  if (style_.tells_prompts()) {
    const session::Answer& first = answers[choice - choice % style_.per_prompt];
    prompt = prompt_lists(choice, *first.prompt_probabilities);
  }
  Lists& lists = lists_[choice];
  lists.cut(answer.probabilities.size());
  add_answer(choice, std::span(answer.probabilities).subspan(lists.tokens.size()));
  add_end(choice, answer);
  add_choice(choice, text, prompt, lists, &answer, out);
}

void CompletionWriter::end(std::span<const session::Answer> answers, std::string& out) {
  json::Value whole = object_json(head_, kKind);
  if (style_.is_stream) {
    if (style_.tells_usage) {
      whole["choices"] = json::Value::array();
      whole["usage"] = usage_json(answers, style_.per_prompt);
      out += "data: " + json::to_text(whole) + "\n\n";
    }
    out += "data: [DONE]\n\n";
    return;
  }
  whole["usage"] = usage_json(answers, style_.per_prompt);
  whole["timings"] = timings_json(answers, style_.per_prompt);
  whole["memory"] = memory_json(answers.front());
  size_t bytes = 0;
  for (const Lists& lists : lists_) bytes += lists.tokens.text().size() + lists.tops.text().size();
  out.reserve(bytes);
  out += json::to_text(whole);
  begin_member("choices", out);
  for (size_t choice = 0; choice < answers.size(); ++choice) {
    out += choice == 0 ? '[' : ',';
    add_whole(choice, answers, out);
  }
  out += "]}";
}

void CompletionWriter::fail(const Refusal& refusal, std::string& out) {
  out += "data: " + refusal_json(refusal) + "\n\n";
}

}  // namespace cairn::serve::openai
