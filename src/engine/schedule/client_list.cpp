// The clients that have jobs, and the last of those that have none.
#include "engine/schedule/client_list.h"

#include <algorithm>
#include <limits>

namespace cairn {

namespace {

// Of clients without a job, as many are remembered.
constexpr size_t kIdleClientsMax = 256;

}  // namespace

Client& ClientList::come(const std::string& name) {
  double least = std::numeric_limits<double>::max();
  size_t idle_count = 0;
  auto oldest = clients_.end();
  for (auto entry = clients_.begin(); entry != clients_.end(); ++entry) {
    const Client& client = entry->second;
    if (client.job_count > 0) {
      least = std::min(least, client.computed_tokens);
      continue;
    }
    ++idle_count;
    const bool is_older = oldest == clients_.end() || client.last_use < oldest->second.last_use;
    if (is_older && entry->first != name) oldest = entry;
  }
  if (idle_count > kIdleClientsMax) clients_.erase(oldest);
  Client& client = clients_[name];
  const bool has_others = least != std::numeric_limits<double>::max();
  if (client.job_count == 0 && has_others) {
    client.computed_tokens = std::max(client.computed_tokens, least);
  }
  client.last_use = ++use_count_;
  return client;
}

}  // namespace cairn
