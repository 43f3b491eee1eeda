// Who asks, and how many tokens were computed for each: whoever has had the fewest goes first. A
// client that comes anew, or again, begins with as many as the one of those present that has had
// the fewest, so that having been away is no credit.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cairn {

struct Client {
  double computed_tokens = 0;
  int32_t job_count = 0;
  int64_t last_use = 0;
};

class ClientList {
 public:
  // For a job of it that has just come. Its address stays while it has jobs.
  Client& come(const std::string& name);

 private:
  std::map<std::string, Client> clients_;
  int64_t use_count_ = 0;
};

}  // namespace cairn
