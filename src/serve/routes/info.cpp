// GET /health, /v1/models, /metrics, /openapi.json.
#include <utility>

#include "json/value.h"
#include "serve/openapi.h"
#include "serve/refusal.h"
#include "serve/routes/routes.h"

namespace cairn::serve {

namespace {

// Under all the names by which clients look for the size of the context.
json::Value model_json(const ServedModel& model) {
  const Engine& engine = model.engine();
  const int32_t context = engine.options().context_tokens;
  json::Value meta = {{"n_ctx", context},
                      {"n_vocab", engine.size().vocabulary_count},
                      {"n_embd", engine.size().width},
                      {"n_params", engine.parameter_count()},
                      {"architecture", engine.architecture()}};
  return {{"id", model.name},       {"object", "model"},        {"created", model.created},
          {"owned_by", "cairn"},    {"max_model_len", context}, {"context_length", context},
          {"meta", std::move(meta)}};
}

}  // namespace

std::unique_ptr<http::Reply> json_reply(std::string body) {
  return std::make_unique<http::WholeReply>(http::ReplyHead{}, std::move(body));
}

std::unique_ptr<http::Reply> get_health(const ServerContext&, http::Request&) {
  return json_reply(R"({"status":"ok"})");
}

std::unique_ptr<http::Reply> get_models(const ServerContext& context, http::Request&) {
  json::Value list = json::Value::array();
  list.push_back(model_json(*context.only_model));
  return json_reply(json::to_text({{"object", "list"}, {"data", std::move(list)}}));
}

std::unique_ptr<http::Reply> get_model(const ServerContext& context, http::Request& request) {
  const std::string& path = request.head.path;
  const std::string name = path.substr(path.find("/models/") + 8);
  if (name == context.only_model->name) return json_reply(json::to_text(model_json(*context.only_model)));
  return refusal_reply({.status = 404,
                        .type = "not_found_error",
                        .code = "model_not_found",
                        .message = "model: expected the one that is served, found another",
                        .field = "model"});
}

std::unique_ptr<http::Reply> get_metrics(const ServerContext& context, http::Request&) {
  Metrics::Now now{.answering = context.slots->count()};
  now.scheduler = context.only_model->service->stats();
  context.only_model->service->ask([&](Engine& engine) { now.memory = engine.memory().usage(); });
  return std::make_unique<http::WholeReply>(
      http::ReplyHead{.content_type = "text/plain; version=0.0.4; charset=utf-8"},
      context.metrics->text(now));
}

std::unique_ptr<http::Reply> get_openapi(const ServerContext& context, http::Request&) {
  return json_reply(openapi_text(context.only_model->sampling));
}

}  // namespace cairn::serve
