// One object for each piece.
#include "serve/llama/native_writer.h"

#include <algorithm>
#include <utility>

#include "chat/conversation.h"

namespace cairn::serve::llama {

namespace {

// No answer has a place that it stays in.
constexpr int kNoSlot = -1;
constexpr std::string_view kProbabilities = "completion_probabilities";

json::Value ids_json(std::span<const Token> tokens) {
  json::Value list = json::Value::array();
  for (const Token token : tokens) list.push_back(index_of(token));
  return list;
}

std::string_view stop_type(const session::Answer& answer) {
  using session::FinishReason;
  const bool has_stopped =
      answer.finish == FinishReason::stop || answer.finish == FinishReason::tool_calls;
  if (!has_stopped) return "limit";
  return answer.stop_text.empty() ? "eos" : "word";
}

}  // namespace

NativeWriter::NativeWriter(NativeStyle style, const tokenize::Tokenizer* tokenizer)
    : style_(std::move(style)) {
  const ProbabilityStyle told{.top_count = style_.top_count, .as_shares = style_.tells_shares};
  progress_.assign(style_.prompts.size(), {.probabilities = {told, tokenizer}});
}

void NativeWriter::gather(size_t choice, const session::AnswerPiece& piece) {
  if (style_.tells_probabilities) progress_[choice].probabilities.add(piece.probabilities);
}

void NativeWriter::add_probabilities(size_t choice, std::string& out) {
  begin_member(kProbabilities, out);
  progress_[choice].probabilities.take(out);
  out += '}';
}

void NativeWriter::add(size_t choice, const session::AnswerPiece& piece, std::string& out) {
  Progress& progress = progress_[choice];
  progress.made_tokens += int64_t(piece.tokens.size());
  progress.tokens.insert(progress.tokens.end(), piece.tokens.begin(), piece.tokens.end());
  gather(choice, piece);
  std::string text;
  for (const chat::OutputEvent& event : piece.events) text += event.text;
  if (text.empty()) return;
  const json::Value json = {{"index", choice},
                            {"content", chat::as_utf8(text)},
                            {"tokens", ids_json(std::exchange(progress.tokens, {}))},
                            {"stop", false},
                            {"id_slot", kNoSlot},
                            {"tokens_predicted", progress.made_tokens},
                            {"tokens_evaluated", piece.prompt ? piece.prompt->prompt_tokens : 0}};
  out += "data: " + json::to_text(json);
  if (style_.tells_probabilities) add_probabilities(choice, out);
  out += "\n\n";
}

json::Value NativeWriter::last_json(size_t choice, const session::Answer& answer) const {
  const bool is_whole = !style_.is_stream;
  const int64_t made = int64_t(answer.tokens.size());
  json::Value json = {{"index", choice}};
  json["content"] = is_whole ? chat::as_utf8(answer.text) : std::string();
  json["tokens"] = is_whole && style_.returns_tokens ? ids_json(answer.tokens)
                                                     : ids_json(progress_[choice].tokens);
  json["id_slot"] = kNoSlot;
  json["stop"] = true;
  json["model"] = style_.model;
  json["tokens_predicted"] = made;
  json["tokens_evaluated"] = answer.prompt.prompt_tokens;
  json["generation_settings"] = style_.settings;
  json["prompt"] = style_.prompts[choice];
  json["has_new_line"] = answer.text.find('\n') != std::string::npos;
  json["truncated"] = answer.left_out_tokens > 0 || style_.left_out_files > 0;
  json["stop_type"] = stop_type(answer);
  json["stopping_word"] = answer.stop_text;
  json["tokens_cached"] = answer.prompt.prompt_tokens + made;
  json["timings"] = timings_json(std::span(&answer, 1), 1);
  json["memory"] = memory_json(answer);
  if (style_.left_out_files > 0) json["left_out_files"] = style_.left_out_files;
  if (!answer.cut_by.empty()) json["cut_by"] = answer.cut_by;
  return wanted(std::move(json));
}

void NativeWriter::add_last(size_t choice, const session::Answer& answer, std::string& out) {
  out += json::to_text(last_json(choice, answer));
  const std::vector<std::string>& fields = style_.fields;
  const bool is_wanted =
      fields.empty() || std::find(fields.begin(), fields.end(), kProbabilities) != fields.end();
  if (!style_.tells_probabilities || !is_wanted) return;
  ProbabilityTexts& probabilities = progress_[choice].probabilities;
  if (!style_.is_stream) probabilities.complete(answer.probabilities);
  if (!style_.is_stream || !probabilities.is_empty()) add_probabilities(choice, out);
}

// "a/b" is the member b of a, which then stands at the top, under this name.
json::Value NativeWriter::wanted(json::Value whole) const {
  if (style_.fields.empty()) return whole;
  json::Value chosen = json::Value::object();
  for (const std::string& path : style_.fields) {
    const json::Value* found = &whole;
    std::string_view rest = path;
    while (found != nullptr && !rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find('/'));
      rest.remove_prefix(std::min(name.size() + 1, rest.size()));
      found = found->find(name);
    }
    if (found != nullptr && !path.empty()) chosen[path] = *found;
  }
  return chosen;
}

void NativeWriter::end_choice(size_t choice, const session::Answer& answer, std::string& out) {
  out += "data: ";
  add_last(choice, answer, out);
  out += "\n\n";
}

void NativeWriter::end(std::span<const session::Answer> answers, std::string& out) {
  if (style_.is_stream) return;
  size_t bytes = 0;
  for (const Progress& progress : progress_) bytes += progress.probabilities.bytes();
  out.reserve(bytes);
  if (style_.is_list) out += '[';
  for (size_t choice = 0; choice < answers.size(); ++choice) {
    if (choice > 0) out += ',';
    add_last(choice, answers[choice], out);
  }
  if (style_.is_list) out += ']';
}

void NativeWriter::fail(const Refusal& refusal, std::string& out) {
  out += "data: " + refusal_json(refusal) + "\n\n";
}

}  // namespace cairn::serve::llama
