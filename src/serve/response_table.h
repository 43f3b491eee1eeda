// The conversations that later requests may follow, by the ids of the answers that ended them: so
// many bytes of them, then the one that was asked for longest ago is forgotten. Only who made one
// finds it. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "chat/conversation.h"

namespace cairn::serve {

class ResponseTable {
 public:
  using Messages = std::shared_ptr<const std::vector<chat::Message>>;
  static constexpr size_t kBytesMax = size_t(64) << 20;

  explicit ResponseTable(size_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // One that is larger than the table is not kept.
  void add(const std::string& id, const std::string& client, std::vector<chat::Message> messages);
  // Null where there is none of this id, or it is another client's.
  Messages find(const std::string& id, const std::string& client);

 private:
  struct Entry {
    std::string client;
    Messages messages;
    size_t bytes = 0;
    int64_t last_use = 0;
  };

  const size_t bytes_max_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::map<int64_t, std::string> by_use_;  // Their ids.
  size_t bytes_ = 0;
  int64_t uses_ = 0;
};

}  // namespace cairn::serve
