// Sizes of conversations.
#include "serve/response_table.h"

#include <utility>

#include "serve/sessions/session_state.h"

namespace cairn::serve {

void ResponseTable::add(const std::string& id, const std::string& client,
                        std::vector<chat::Message> messages) {
  size_t bytes = 0;
  for (const chat::Message& message : messages) bytes += bytes_of(message);
  table_.add(id, client, std::make_shared<const std::vector<chat::Message>>(std::move(messages)),
             bytes);
}

}  // namespace cairn::serve
