// Sizes of what is kept.
#include "serve/response_table.h"

#include <utility>

#include "serve/sessions/session_state.h"

namespace cairn::serve {

void ResponseTable::add(const std::string& id, const std::string& client, KeptResponse response) {
  size_t bytes = sizeof(response) + response.object.size();
  for (const chat::Message& message : response.messages) bytes += bytes_of(message);
  for (const InputItem& item : response.input) {
    bytes += sizeof(item) + item.id.size() + item.text.size();
  }
  table_.add(id, client, std::make_shared<const KeptResponse>(std::move(response)), bytes);
}

}  // namespace cairn::serve
