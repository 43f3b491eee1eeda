// A conversation with a model: messages, and the timeline that holds what was computed of them.
// What a turn shares with the timeline is not computed again. Knows no terminal. Thread rule: the
// engine's thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/answer.h"
#include "cli/conversation.h"
#include "engine/engine.h"
#include "engine/generator.h"
#include "sample/params.h"

namespace cairn::cli {

struct ChatOptions {
  std::string system;
  sample::SamplingParams sampling;
  int32_t token_count_max = -1;  // Of an answer; negative: as many as the model likes.
  bool raw = false;              // No template: the prompt is the text of all turns.
};

class ChatSession {
 public:
  // `engine` must outlive the session. Errors: unsupported, if the model has no vocabulary.
  static Result<ChatSession> start(Engine* engine, ChatOptions options);

  // Adds a message of the user and the answer to it. An answer that was interrupted stays as far as
  // it went; after an error the conversation is as before.
  Result<Answer> say(std::string_view text, const AnswerHooks& hooks = {});
  // Answers the last message anew, with the next seed. Errors: invalid_argument: nothing to answer.
  Result<Answer> regenerate(const AnswerHooks& hooks = {});
  // Forgets all turns; the system message stays.
  void clear();
  void set_system(std::string_view text) { options_.system = text; }

  const std::vector<Message>& messages() const { return messages_; }
  bool is_raw() const { return options_.raw; }  // Asked for, or the model has no template.
  uint64_t seed() const { return options_.sampling.seed; }
  const Generator& generator() const { return generator_; }

 private:
  ChatSession(Engine* engine, ChatOptions options);
  Result<Prompt> prompt() const;
  Result<Answer> answer_last(const AnswerHooks& hooks);

  Engine* engine_;
  ChatOptions options_;
  Generator generator_;
  std::vector<Message> messages_;  // Turns of user and assistant.
};

}  // namespace cairn::cli
