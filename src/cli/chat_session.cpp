// Turns of a conversation.
#include "cli/chat_session.h"

#include <algorithm>
#include <utility>

#include "sample/sampler.h"

namespace cairn::cli {

Result<ChatSession> ChatSession::start(Engine* engine, ChatOptions options) {
  if (engine->tokenizer() == nullptr) {
    return fail(ErrorCode::unsupported,
                "tokenizer.ggml.model: expected a vocabulary, found none: this model cannot chat");
  }
  options.raw = options.raw || engine->chat_template() == nullptr;
  return ChatSession(engine, std::move(options));
}

ChatSession::ChatSession(Engine* engine, ChatOptions options)
    : engine_(engine), options_(std::move(options)), generator_(engine) {}

Result<Prompt> ChatSession::prompt() const {
  if (options_.raw) {
    std::string text = options_.system;
    for (const Message& message : messages_) text += message.content;
    CAIRN_TRY(std::vector<Token> tokens, encode_raw(*engine_, text));
    return Prompt{.tokens = std::move(tokens)};
  }
  std::vector<Message> all;
  if (!options_.system.empty()) all.push_back({"system", options_.system});
  all.insert(all.end(), messages_.begin(), messages_.end());
  CAIRN_TRY(std::vector<Token> tokens, encode_conversation(*engine_, all));
  Prompt prompt{.tokens = std::move(tokens)};
  // The last message begins where the conversation without it goes on in another way. A template
  // may refuse to end there; then it is not known.
  all.pop_back();
  Result<std::vector<Token>> before = encode_conversation(*engine_, all);
  if (!before) return prompt;
  const auto [parting, unused] =
      std::mismatch(prompt.tokens.begin(), prompt.tokens.end(), before->begin(), before->end());
  prompt.message_starts.push_back(int32_t(parting - prompt.tokens.begin()));
  return prompt;
}

Result<Answer> ChatSession::answer_last(const AnswerHooks& hooks) {
  CAIRN_TRY(const Prompt tokens, prompt());
  sample::Sampler sampler(options_.sampling);
  CAIRN_TRY(Answer answer,
            make_answer(*engine_, generator_, tokens, sampler, options_.token_count_max, hooks));
  messages_.push_back({"assistant", answer.text});
  return answer;
}

Result<Answer> ChatSession::say(std::string_view text, const AnswerHooks& hooks) {
  messages_.push_back({"user", std::string(text)});
  Result<Answer> answer = answer_last(hooks);
  if (!answer) messages_.pop_back();
  return answer;
}

Result<Answer> ChatSession::regenerate(const AnswerHooks& hooks) {
  if (messages_.empty()) {
    return fail(ErrorCode::invalid_argument, "/regen: expected an answer to make anew, found none");
  }
  const Message old = messages_.back();
  messages_.pop_back();
  ++options_.sampling.seed;
  Result<Answer> answer = answer_last(hooks);
  if (!answer) messages_.push_back(old);
  return answer;
}

void ChatSession::clear() {
  messages_.clear();
}

}  // namespace cairn::cli
