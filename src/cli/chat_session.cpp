// Turns of a conversation.
#include "cli/chat_session.h"

#include <algorithm>
#include <utility>

#include "cli/transcript.h"
#include "sample/sampler.h"
#include "text/unicode.h"

namespace cairn::cli {

namespace {

constexpr char kFirstBranch[] = "main";

bool is_answer(const Message& message) {
  return message.role == "assistant";
}

}  // namespace

Result<ChatSession> ChatSession::start(Engine* engine, ChatOptions options) {
  if (engine->tokenizer() == nullptr) {
    return fail(ErrorCode::unsupported,
                "tokenizer.ggml.model: expected a vocabulary, found none: this model cannot chat");
  }
  options.raw = options.raw || engine->chat_template() == nullptr;
  return ChatSession(engine, std::move(options));
}

ChatSession::ChatSession(Engine* engine, ChatOptions options)
    : engine_(engine), options_(std::move(options)), generator_(engine) {
  branches_.push_back({kFirstBranch, {}});
}

Result<Prompt> ChatSession::prompt(std::span<const Message> messages) const {
  if (options_.raw) {
    std::string text = options_.system;
    for (const Message& message : messages) text += message.content;
    Prompt prompt;
    CAIRN_TRY(prompt.tokens, encode_raw(*engine_, text));
    return prompt;
  }
  std::vector<Message> all;
  if (!options_.system.empty()) all.push_back({"system", options_.system});
  all.insert(all.end(), messages.begin(), messages.end());
  return encode_conversation(*engine_, all);
}

Result<Answer> ChatSession::answer_last(const AnswerHooks& hooks) {
  CAIRN_TRY(const Prompt asked, prompt(messages()));
  sample::Sampler sampler(options_.sampling, engine_->tokenizer());
  CAIRN_TRY(Answer answer, make_answer(*engine_, generator_,
                                       {.prompt = asked.tokens,
                                        .message_starts = asked.message_starts,
                                        .token_count_max = options_.token_count_max,
                                        .matcher = options_.matcher},
                                       sampler, hooks));
  active().push_back({"assistant", answer.text, answer.tokens});
  return answer;
}

Result<Answer> ChatSession::say(std::string_view text, const AnswerHooks& hooks) {
  active().push_back({"user", std::string(text)});
  Result<Answer> answer = answer_last(hooks);
  if (!answer) active().pop_back();
  return answer;
}

Result<Answer> ChatSession::regenerate(const AnswerHooks& hooks) {
  if (messages().empty()) {
    return fail(ErrorCode::invalid_argument, "/regen: expected an answer to make anew, found none");
  }
  const Message old = messages().back();
  if (is_answer(old)) active().pop_back();
  ++options_.sampling.seed;
  Result<Answer> answer = answer_last(hooks);
  if (!answer && is_answer(old)) active().push_back(old);
  return answer;
}

Result<Answer> ChatSession::continue_answer(const AnswerHooks& hooks) {
  if (messages().empty() || !is_answer(messages().back())) {
    return fail(ErrorCode::invalid_argument, "/continue: expected an answer, found none");
  }
  Message& said = active().back();
  CAIRN_TRY(Prompt asked, prompt(std::span(messages()).first(messages().size() - 1)));
  if (said.tokens.empty()) said.tokens = engine_->tokenizer()->encode(said.content);
  asked.tokens.insert(asked.tokens.end(), said.tokens.begin(), said.tokens.end());
  sample::Sampler sampler(options_.sampling, engine_->tokenizer());
  CAIRN_TRY(Answer answer, make_answer(*engine_, generator_,
                                       {.prompt = asked.tokens,
                                        .message_starts = asked.message_starts,
                                        .said = said.tokens,
                                        .token_count_max = options_.token_count_max,
                                        .matcher = options_.matcher},
                                       sampler, hooks));
  // The first bytes of a character that was cut stand in both.
  if (!answer.text.empty()) {
    said.content.resize(said.content.size() - text::unfinished_utf8_bytes(said.content));
  }
  said.content += answer.text;
  said.tokens.insert(said.tokens.end(), answer.tokens.begin(), answer.tokens.end());
  return answer;
}

Result<std::string> ChatSession::last_message() const {
  const auto found = std::find_if(messages().rbegin(), messages().rend(),
                                  [](const Message& message) { return !is_answer(message); });
  if (found == messages().rend()) {
    return fail(ErrorCode::invalid_argument, "/edit: expected a message to change, found none");
  }
  return found->content;
}

Result<Answer> ChatSession::edit(std::string_view text, const AnswerHooks& hooks) {
  if (Result<std::string> last = last_message(); !last) return std::move(last).error();
  const std::vector<Message> old = messages();
  while (is_answer(active().back())) active().pop_back();
  active().pop_back();
  Result<Answer> answer = say(text, hooks);
  if (!answer) active() = old;
  return answer;
}

int32_t ChatSession::turn_count() const {
  return int32_t(std::count_if(messages().begin(), messages().end(),
                               [](const Message& message) { return !is_answer(message); }));
}

// Where an answer is last, a message of the user follows: its start is where reading goes on. It is
// found by a message whose text does not matter.
Result<memory::ResumePlan> ChatSession::plan_behind(size_t count) const {
  if (count == 0) return memory::ResumePlan{};
  const std::span<const Message> kept = std::span(messages()).first(count);
  if (is_answer(kept.back()) && !options_.raw) {
    std::vector<Message> followed(kept.begin(), kept.end());
    followed.push_back({"user", "x"});
    CAIRN_TRY(const Prompt asked, prompt(followed));
    if (!asked.message_starts.empty()) {
      const size_t target = size_t(asked.message_starts.back());
      return generator_.plan(std::span(asked.tokens).first(target), false);
    }
  }
  CAIRN_TRY(const Prompt asked, prompt(kept));
  return generator_.plan(asked.tokens, !is_answer(kept.back()));
}

Result<memory::ResumePlan> ChatSession::rewind(int32_t turns) {
  if (turn_count() == 0) {
    return fail(ErrorCode::invalid_argument, "/rewind: expected a turn to take back, found none");
  }
  if (turns < 1 || turns > turn_count()) {
    return fail(ErrorCode::invalid_argument, "/rewind: expected 1 to {} turns, found {}",
                turn_count(), turns);
  }
  size_t kept = messages().size();
  for (int32_t turn = 0; turn < turns; ++turn) {
    while (is_answer(messages()[kept - 1])) --kept;
    --kept;
  }
  CAIRN_TRY(const memory::ResumePlan plan, plan_behind(kept));
  active().resize(kept);
  return plan;
}

Status ChatSession::fork(std::string_view name) {
  if (messages().empty()) {
    return fail(ErrorCode::invalid_argument, "/fork: expected a conversation, found no message");
  }
  for (const Branch& branch : branches_) {
    if (branch.name != name) continue;
    return fail(ErrorCode::invalid_argument, "/fork: expected a new name, found \"{}\" again",
                name);
  }
  branches_.push_back({std::string(name), messages()});
  active_ = branches_.size() - 1;
  return Ok{};
}

Result<memory::ResumePlan> ChatSession::switch_to(std::string_view name) {
  std::string known;
  for (size_t branch = 0; branch < branches_.size(); ++branch) {
    if (branches_[branch].name == name) {
      const size_t left = std::exchange(active_, branch);
      Result<memory::ResumePlan> plan = plan_behind(messages().size());
      if (!plan) active_ = left;
      return plan;
    }
    known += (branch == 0 ? "" : ", ") + branches_[branch].name;
  }
  return fail(ErrorCode::invalid_argument, "/switch: expected one of {}, found \"{}\"", known,
              name);
}

Status ChatSession::save(const std::string& path) const {
  std::vector<Message> all;
  if (!options_.system.empty()) all.push_back({"system", options_.system});
  all.insert(all.end(), messages().begin(), messages().end());
  return write_transcript(path, all);
}

Status ChatSession::load(const std::string& path) {
  CAIRN_TRY(std::vector<Message> loaded, read_transcript(path));
  const bool has_system = !loaded.empty() && loaded.front().role == "system";
  options_.system = has_system ? loaded.front().content : "";
  if (has_system) loaded.erase(loaded.begin());
  active() = std::move(loaded);
  return Ok{};
}

void ChatSession::clear() {
  active().clear();
}

}  // namespace cairn::cli
