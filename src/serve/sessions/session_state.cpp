// Names and sizes.
#include "serve/sessions/session_state.h"

#include <algorithm>
#include <set>

namespace cairn::serve {

namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

bool is_session_name(std::string_view name) {
  if (name.empty() || name.size() > 128 || !is_letter_or_digit(name.front())) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
  });
}

size_t bytes_of(const chat::Message& message) {
  size_t bytes = sizeof(message) + message.content.size() + message.reasoning.size() +
                 message.tokens.size() * sizeof(Token) + message.call_id.size() +
                 message.name.size();
  for (const chat::ToolCall& call : message.calls) {
    bytes += sizeof(call) + call.id.size() + call.name.size() + call.arguments.size();
  }
  return bytes;
}

size_t bytes_of(const SessionState& state) {
  std::set<const chat::Message*> counted;
  size_t bytes = sizeof(state) + state.form.tools.size();
  for (const auto& [name, value] : state.form.variables) bytes += name.size() + value.size();
  const auto add = [&](const std::vector<session::Branch>& lists) {
    for (const session::Branch& list : lists) {
      bytes += sizeof(list) + list.name.size() + list.sampler.size() * sizeof(list.sampler) +
               list.messages.size() * sizeof(session::MessageList::Ref);
      for (const chat::Message& message : list.messages) {
        if (counted.insert(&message).second) bytes += bytes_of(message);
      }
    }
  };
  add(state.dialogue.branches());
  add(state.snapshots);
  return bytes;
}

}  // namespace cairn::serve
