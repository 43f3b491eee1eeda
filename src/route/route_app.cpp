// From a request to an order for a node.
#include "route/route_app.h"

#include <fmt/format.h>

#include <utility>

#include "route/connection_headers.h"
#include "serve/http/head.h"
#include "serve/http/request_id.h"
#include "serve/refusal.h"

namespace cairn::route {

namespace http = serve::http;
using serve::Refusal;

namespace {

// What a browser says of itself, which was looked at here; and what is said anew.
constexpr std::string_view kOwnHeaders[] = {
    "expect",         "host",           "origin",       "sec-fetch-site",
    "sec-fetch-mode", "sec-fetch-dest", "x-request-id", "x-cairn-affinity"};

std::unique_ptr<http::Reply> preflight(const http::RequestHead& head) {
  http::ReplyHead reply{.status = 204, .content_type = ""};
  reply.headers = {{"access-control-allow-methods", "GET, POST, DELETE"},
                   {"access-control-allow-headers",
                    http::sendable_headers(head,
                                           "authorization, content-type, x-api-key, "
                                           "x-cairn-affinity, anthropic-version, anthropic-beta")},
                   {"access-control-max-age", "600"}};
  return std::make_unique<http::WholeReply>(std::move(reply), "");
}

bool is_own(std::string_view path) {
  return path == "/health" || path == "/v1/health" || path == "/metrics";
}

}  // namespace

std::string target_of(const http::RequestHead& head) {
  constexpr std::string_view kPlain = "-._~/:@,+=!*'()";
  std::string target;
  for (const char c : head.path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || kPlain.find(c) != kPlain.npos;
    target += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return head.query.empty() ? target : target + "?" + head.query;
}

RouteApp::RouteApp(Fleet* fleet, NodeLink* link, std::unique_ptr<serve::RequestLog> log,
                   RouteOptions options)
    : fleet_(*fleet),
      link_(*link),
      log_(std::move(log)),
      options_(std::move(options)),
      slots_(std::make_shared<serve::Slots>(options_.requests_max, options_.requests_max)) {}

std::unique_ptr<http::Reply> RouteApp::admit(http::Request& request) {
  const http::RequestHead& head = request.head;
  request.id = http::request_id(head);
  if (head.find("host") == nullptr && head.path != "/health") {
    return refuse(head, 400, "host: expected one, found none");
  }
  if (const std::string_view why = http::refuse_origin(head, options_.origins); !why.empty()) {
    return serve::refusal_reply(
        {.status = 403, .type = "permission_error", .message = std::string(why)});
  }
  if (const std::string* const origin = head.find("origin")) {
    request.reply_headers = {{"access-control-allow-origin", *origin},
                             {"access-control-expose-headers", "x-request-id, x-cairn-route"},
                             {"vary", "Origin"}};
  }
  if (head.method == http::Method::options) return preflight(head);
  if (head.method == http::Method::other) {
    return refuse(head, 405, "method: expected GET, POST, DELETE");
  }
  if (is_own(head.path) && head.method != http::Method::get && head.method != http::Method::head) {
    return refuse(head, 405, "method: expected GET, HEAD");
  }
  if (head.find("content-encoding") != nullptr) {
    return refuse(head, 415, "content-encoding: expected none");
  }
  if (head.method == http::Method::post && !http::is_type_allowed(head)) {
    return refuse(head, 415, "content-type: expected application/json");
  }
  return nullptr;
}

bool RouteApp::is_quick(const http::Request& request) const {
  return request.body.empty();
}

std::unique_ptr<http::Reply> RouteApp::answer(http::Request& request) {
  const http::RequestHead& head = request.head;
  if (head.path == "/metrics") return metrics(request);
  if (is_own(head.path)) return health();
  std::shared_ptr<serve::Slots::Slot> slot = slots_->take({});
  if (slot == nullptr) {
    return serve::refusal_reply(serve::busy_refusal("the router has too many requests at a time"));
  }
  Order order{.method = head.method == http::Method::head ? "GET" : head.method_name,
              .target = target_of(head)};
  std::string clients, connection;
  for (const http::Header& header : head.headers) {
    if (header.name == "connection") connection += header.value + ",";
  }
  for (const http::Header& header : head.headers) {
    if (header.name == "x-forwarded-for") {
      clients += header.value + ", ";
    } else if (is_passed_on(header.name, kOwnHeaders, connection)) {
      order.headers.push_back(header);
    }
  }
  order.headers.push_back({"x-forwarded-for", clients + request.address});
  order.headers.push_back({"x-request-id", request.id});
  order.keys = prompt_keys(head, request.body);
  order.makes_owned = makes_owned(head, request.body);
  order.body = std::move(request.body);
  std::unique_ptr<http::Reply> reply = link_.send(std::move(order));
  reply->keep(std::move(slot));
  return reply;
}

std::unique_ptr<http::Reply> RouteApp::health() const {
  const int32_t up = fleet_.up_count(), all = fleet_.node_count();
  return std::make_unique<http::WholeReply>(http::ReplyHead{.status = up > 0 ? 200 : 503},
                                            fmt::format(R"({{"status":"{}","nodes":{},"up":{}}})",
                                                        up > 0 ? "ok" : "unavailable", all, up));
}

std::unique_ptr<http::Reply> RouteApp::metrics(const http::Request& request) const {
  const bool has_key = options_.metrics_keys.find(http::bearer_of(request.head)).has_value();
  const bool may_see = has_key || (options_.metrics_keys.is_empty() && request.is_local);
  if (!may_see) {
    return serve::refusal_reply({.status = 401,
                                 .type = "authentication_error",
                                 .code = "invalid_api_key",
                                 .message = "metrics: expected a key of --metrics-key-file",
                                 .headers = {{"www-authenticate", "Bearer"}}});
  }
  return std::make_unique<http::WholeReply>(
      http::ReplyHead{.content_type = "text/plain; version=0.0.4; charset=utf-8"},
      fleet_.metrics());
}

std::unique_ptr<http::Reply> RouteApp::refuse(const http::RequestHead&, int status,
                                              std::string_view message) {
  Refusal refusal{.status = status, .message = std::string(message)};
  if (status == 413) refusal.code = "body_too_large";
  if (status == 503) {
    refusal.type = "unavailable_error";
    refusal.headers = {{"retry-after", "1"}};
  }
  if (status == 500) refusal.type = "server_error";
  return serve::refusal_reply(refusal);
}

void RouteApp::ended(const http::Request& request, const http::Reply& reply,
                     const Outcome& outcome) {
  log_->add(request, reply, outcome);
}

}  // namespace cairn::route
