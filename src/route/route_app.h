// What a router answers: /health and /metrics itself, all else by the node that its fleet chooses.
// Looks at where requests come from as a server does; keys are the nodes' matter. Thread rule: that
// of http::Handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "route/fleet.h"
#include "route/node_link.h"
#include "serve/http/origins.h"
#include "serve/http/server.h"
#include "serve/keys.h"
#include "serve/request_log.h"
#include "serve/slots.h"

namespace cairn::route {

struct RouteOptions {
  serve::http::OriginRules origins;
  // Who may see /metrics from elsewhere; none: nobody may.
  serve::Keys metrics_keys;
  int32_t requests_max = 1024;  // That are on their way.
};

class RouteApp final : public serve::http::Handler {
 public:
  // All of it must outlive the app.
  RouteApp(Fleet* fleet, NodeLink* link, std::unique_ptr<serve::RequestLog> log,
           RouteOptions options);

  std::unique_ptr<serve::http::Reply> admit(serve::http::Request& request) override;
  bool is_quick(const serve::http::Request& request) const override;
  std::unique_ptr<serve::http::Reply> answer(serve::http::Request& request) override;
  std::unique_ptr<serve::http::Reply> refuse(const serve::http::RequestHead& head, int status,
                                             std::string_view message) override;
  void ended(const serve::http::Request& request, const serve::http::Reply& reply,
             const Outcome& outcome) override;

 private:
  std::unique_ptr<serve::http::Reply> health() const;
  std::unique_ptr<serve::http::Reply> metrics(const serve::http::Request& request) const;

  Fleet& fleet_;
  NodeLink& link_;
  std::unique_ptr<serve::RequestLog> log_;
  RouteOptions options_;
  std::shared_ptr<serve::Slots> slots_;
};

// A target as nodes read it the same way: escapes where a character is none of a path.
std::string target_of(const serve::http::RequestHead& head);

}  // namespace cairn::route
