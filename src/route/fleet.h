// The nodes that a router has: where they are, what is known of them, and what was decided. Makes
// the policy safe for threads. Knows no sockets. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "client/http_client.h"
#include "route/policy.h"

namespace cairn::route {

// "10.0.0.1:8080", "[::1]:80", "unix:/run/cairn.sock": what a node is called.
std::string name_of(const client::ServerUrl& url);

constexpr size_t kListedNodesMax = 4096;

// A node in each line, empty lines and those that begin with # left out; "drain URL": nothing new
// is sent to it. Errors: as of ServerUrl::parse(), with the line; none at all, twice the same, more
// than kListedNodesMax.
struct ListedNode {
  client::ServerUrl url;
  bool is_draining = false;
};
Result<std::vector<ListedNode>> parse_nodes(std::string_view name, std::string_view text);

class Fleet {
 public:
  explicit Fleet(PolicyOptions options = {}) : policy_(options) {}

  // In place of those that were there before: those that are missing get nothing new. Of more than
  // Policy::kNodesMax in all its time the last ones are left out.
  void set_nodes(const std::vector<ListedNode>& nodes);
  struct Node {
    int32_t number;
    client::ServerUrl url;
  };
  // All that are not drained, for those who look after them.
  std::vector<Node> nodes() const;
  client::ServerUrl url_of(int32_t node) const;

  Decision choose(const PromptKeys& keys, std::span<const int32_t> avoid);
  uint64_t sent(const PromptKeys& keys, const Decision& decision);
  void begun(uint64_t request);
  // `was_read`, `figures`: as Policy::ended() has them.
  void ended(uint64_t request, const std::optional<ReplyFigures>& figures, bool was_read);
  void own(const std::string& name, int32_t node);
  // No request has reached it: it is down until a check says otherwise.
  void failed(int32_t node);
  // A check, and what its metrics tell of others' requests where they were asked.
  void checked(int32_t node, bool is_up);
  void asked(int32_t node);
  void told(int32_t node, int32_t waiting, int32_t running);
  int32_t own_count(int32_t node) const;  // Of requests that were sent and have not ended.
  void add_reply(int32_t node, int status);

  int32_t up_count() const;
  int32_t node_count() const;  // That are not drained.
  // For Prometheus.
  std::string metrics() const;

 private:
  static double now();

  // A node that answers again is up at the first check, one that does not is down at the second.
  static constexpr int32_t kFailuresMax = 2;

  mutable std::mutex mutex_;
  Policy policy_;
  std::vector<client::ServerUrl> urls_;                            // By number.
  std::vector<int32_t> failures_;                                  // Checks in a row.
  std::map<std::pair<int32_t, std::string>, uint64_t> decisions_;  // By node and reason.
  std::map<std::pair<int32_t, int>, uint64_t> replies_;            // By node and status.
  uint64_t known_bytes_ = 0, prompt_bytes_ = 0, retries_ = 0, refused_ = 0;
};

}  // namespace cairn::route
