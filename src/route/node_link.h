// Carries requests to nodes and their replies back, piece by piece as they come, each over a
// connection of its own; and asks nodes once a second whether they are there. A request that no
// node has taken goes to the next one; one that was sent is never sent again. Only node_link.cpp
// and wire.h include Boost. Thread rule: has a thread; send() may be called by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "route/fleet.h"
#include "route/name_lookup.h"
#include "route/prompt_keys.h"
#include "serve/http/message.h"
#include "serve/http/reply.h"
#include "tls/server_trust.h"

namespace cairn::route {

struct LinkOptions {
  std::shared_ptr<const tls::ServerTrust> trust;  // Null where no node is under TLS.
  std::string key;                                // That nodes' metrics are asked with.
  double connect_seconds = 2;                   // From the name to the handshake; and for a check.
  double check_seconds = 1;                     // Between checks.
  size_t bodies_bytes_max = size_t(256) << 20;  // That are on their way.
  NameLookup::Ask find_addresses = {};          // In place of the system's.
};

// A request as it is sent.
struct Order {
  std::string method, target;
  std::vector<serve::http::Header> headers;
  std::string body;
  PromptKeys keys;
  bool makes_owned = false;
  std::shared_ptr<void> body_room = {};  // The link's own: of the bytes on their way.
};

class NodeLink {
 public:
  // `fleet` must outlive it.
  NodeLink(Fleet* fleet, LinkOptions options);
  // REQUIRES: no replies of it are there any more.
  ~NodeLink();
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  // Whoever destroys the reply before its end ends the request at the node.
  std::unique_ptr<serve::http::Reply> send(Order order);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cairn::route
