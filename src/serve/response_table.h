// The conversations that later requests may follow, by the ids of the answers that ended them.
// Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "chat/conversation.h"
#include "serve/kept_table.h"

namespace cairn::serve {

class ResponseTable {
 public:
  using Messages = std::shared_ptr<const std::vector<chat::Message>>;
  static constexpr size_t kBytesMax = size_t(64) << 20;

  explicit ResponseTable(size_t bytes_max = kBytesMax) : table_(bytes_max) {}

  // One that is larger than the table is not kept.
  void add(const std::string& id, const std::string& client, std::vector<chat::Message> messages);
  // Null where there is none of this id, or it is another client's.
  Messages find(const std::string& id, const std::string& client) {
    return table_.find(id, client);
  }

 private:
  KeptTable<std::vector<chat::Message>> table_;
};

}  // namespace cairn::serve
