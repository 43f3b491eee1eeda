// The routes: each makes the reply to a request, from the request and what all routes share. The
// table is App's. Thread rule: any worker.
#pragma once

#include <memory>
#include <string>

#include "serve/http/message.h"
#include "serve/http/reply.h"
#include "serve/metrics.h"
#include "serve/served_model.h"
#include "serve/slots.h"

namespace cairn::serve {

// What routes share; they change nothing of it but counts.
struct RouteContext {
  ServedModel model;
  std::shared_ptr<Slots> slots;
  Metrics* metrics = nullptr;
  double request_seconds_max = 0;  // Then an answer fails; 0: it may take as long as it likes.
};

using Route = std::unique_ptr<http::Reply> (*)(const RouteContext&, http::Request&);

// A body of JSON that is there.
std::unique_ptr<http::Reply> json_reply(std::string body);

std::unique_ptr<http::Reply> get_health(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_models(const RouteContext& context, http::Request& request);
// Of "/v1/models/NAME".
std::unique_ptr<http::Reply> get_model(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_metrics(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_openapi(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_memory(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_memory_events(const RouteContext& context,
                                               http::Request& request);
std::unique_ptr<http::Reply> post_memory_plan(const RouteContext& context, http::Request& request);
// The web page, and what belongs to it.
std::unique_ptr<http::Reply> get_page(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_chat(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_completion(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_embedding(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_tokenize(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_detokenize(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_apply_template(const RouteContext& context,
                                                 http::Request& request);

}  // namespace cairn::serve
