// Least recently used first.
#include "serve/response_table.h"

#include <utility>

namespace cairn::serve {

namespace {

size_t bytes_of(const chat::Message& message) {
  size_t bytes = sizeof(message) + message.content.size() + message.reasoning.size() +
                 message.tokens.size() * sizeof(Token) + message.call_id.size();
  for (const chat::ToolCall& call : message.calls) {
    bytes += sizeof(call) + call.id.size() + call.name.size() + call.arguments.size();
  }
  return bytes;
}

}  // namespace

void ResponseTable::add(const std::string& id, const std::string& client,
                        std::vector<chat::Message> messages) {
  size_t bytes = sizeof(Entry) + id.size() + client.size();
  for (const chat::Message& message : messages) bytes += bytes_of(message);
  if (bytes > bytes_max_) return;
  const std::lock_guard lock(mutex_);
  while (bytes_ + bytes > bytes_max_) {
    const auto oldest = entries_.find(by_use_.begin()->second);
    bytes_ -= oldest->second.bytes;
    entries_.erase(oldest);
    by_use_.erase(by_use_.begin());
  }
  entries_[id] = {
      .client = client,
      .messages = std::make_shared<const std::vector<chat::Message>>(std::move(messages)),
      .bytes = bytes,
      .last_use = ++uses_};
  by_use_[uses_] = id;
  bytes_ += bytes;
}

ResponseTable::Messages ResponseTable::find(const std::string& id, const std::string& client) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.client != client) return nullptr;
  by_use_.erase(found->second.last_use);
  found->second.last_use = ++uses_;
  by_use_[uses_] = id;
  return found->second.messages;
}

}  // namespace cairn::serve
