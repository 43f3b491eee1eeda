// What was said in a conversation, and its branches: who may say what, and how turns are taken
// back. Copies share the messages. Knows no engine. Thread-safe: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/conversation.h"
#include "chat/format.h"
#include "sample/state.h"
#include "session/message_list.h"

namespace cairn::session {

struct Branch {
  std::string name;
  MessageList messages = {};
  sample::SamplerState sampler = {};  // Of the last answer, for going on with it.
};

class Dialogue {
 public:
  Dialogue();  // One branch, "main", in which nothing was said.
  // REQUIRES: there is a branch, and `active` is one.
  Dialogue(std::vector<Branch> branches, size_t active);

  const std::vector<Branch>& branches() const { return branches_; }
  size_t active_branch() const { return active_; }
  // Of the active branch, as all that follows.
  const MessageList& messages() const { return branches_[active_].messages; }
  const sample::SamplerState& sampler() const { return branches_[active_].sampler; }
  int32_t turn_count() const;  // Messages of the user.
  // The calls of the last message that have no result yet.
  std::span<const chat::ToolCall> open_calls() const;
  // The user's last message. Errors: invalid_argument: none.
  Result<std::string> last_message() const;
  // Errors: invalid_argument: the last message is no answer.
  Status check_continues() const;

  void add(Message message);
  // Adds the results of the last answer's calls, in their order. Errors: invalid_argument: not as
  // many results as calls.
  Status give_results(std::span<const std::string> results);
  // Errors: invalid_argument: nothing was said.
  Status drop_answer();
  // Puts `text` in place of the user's last message, and drops what follows. Errors: those of
  // last_message().
  Status edit(std::string_view text);
  // The answer, in place of its beginning where it continues that. Its calls get ids that are not
  // there yet.
  void add_answer(Message said, bool continues, const chat::CallFormat& format,
                  sample::SamplerState sampler);
  // Instead of all that was said.
  void replace(MessageList messages, sample::SamplerState sampler = {});
  // Keeps the first messages. Errors: invalid_argument: there are fewer.
  Status keep(size_t message_count);
  // Takes the last turns back: a message and all that follows it, each. Errors: invalid_argument:
  // there are fewer.
  Status rewind(int32_t turns);

  // A branch that starts with the same messages, and goes on there. Errors: invalid_argument: the
  // name is taken, or nothing was said yet.
  Status fork(std::string_view name);
  // Errors: invalid_argument, with the names that there are.
  Status switch_to(std::string_view name);

 private:
  MessageList& active() { return branches_[active_].messages; }

  std::vector<Branch> branches_;  // At least one.
  size_t active_ = 0;
};

}  // namespace cairn::session
