// Answers that are kept, by their ids: with the conversations that later requests may follow.
// Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "chat/conversation.h"
#include "serve/kept_table.h"

namespace cairn::serve {

// As it is told, JSON.
struct InputItem {
  std::string id, text;
};

struct KeptResponse {
  std::vector<chat::Message> messages = {};  // To the answer's end.
  std::vector<InputItem> input = {};         // Of the request alone.
  std::string object = {};                   // The answer as it was told, JSON.
};

class ResponseTable {
 public:
  using Kept = std::shared_ptr<const KeptResponse>;
  static constexpr size_t kBytesMax = size_t(64) << 20;

  explicit ResponseTable(size_t bytes_max = kBytesMax) : table_(bytes_max) {}

  // One that is larger than the table is not kept.
  void add(const std::string& id, const std::string& client, KeptResponse response);
  // Null where there is none of this id, or it is another client's.
  Kept find(const std::string& id, const std::string& client) { return table_.find(id, client); }
  // Whether there was one.
  bool remove(const std::string& id, const std::string& client) {
    return table_.remove(id, client);
  }

 private:
  KeptTable<KeptResponse> table_;
};

}  // namespace cairn::serve
