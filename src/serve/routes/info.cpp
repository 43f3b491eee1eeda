// GET /health, /v1/models, /metrics, /openapi.json.
#include <algorithm>
#include <string_view>
#include <utility>

#include "json/value.h"
#include "serve/openapi.h"
#include "serve/refusal.h"
#include "serve/routes/routes.h"

namespace cairn::serve {

namespace {

std::string_view name_of(ModelState state) {
  switch (state) {
    case ModelState::unloaded:
      return "not-loaded";
    case ModelState::loading:
      return "loading";
    case ModelState::ready:
      return "loaded";
    case ModelState::unloading:
      break;
  }
  return "unloading";
}

// Under all the names by which clients look for the size of the context. As long as the model is
// not loaded, that is what it will have when it is.
json::Value model_json(const ModelRegistry::Listed& listed) {
  const ModelCard& card = listed.source->card;
  int32_t context = std::min(card.context_tokens, listed.source->context_tokens_max);
  int32_t vocabulary = card.vocabulary_count, width = card.width;
  int64_t parameters = card.parameter_count;
  if (listed.model != nullptr) {
    const Engine& engine = listed.model->engine();
    context = engine.options().context_tokens;
    vocabulary = engine.size().vocabulary_count;
    width = engine.size().width;
    parameters = engine.parameter_count();
  }
  json::Value meta = {{"n_ctx", context},
                      {"n_vocab", vocabulary},
                      {"n_embd", width},
                      {"n_params", parameters},
                      {"architecture", card.architecture}};
  json::Value aliases = json::Value::array();
  for (const std::string& alias : listed.source->aliases) aliases.push_back(alias);
  return {{"id", listed.source->name},          {"object", "model"},
          {"created", listed.source->modified}, {"owned_by", "cairn"},
          {"max_model_len", context},           {"context_length", context},
          {"state", name_of(listed.state)},     {"type", card.makes_text ? "llm" : "embeddings"},
          {"aliases", std::move(aliases)},      {"meta", std::move(meta)}};
}

}  // namespace

std::unique_ptr<http::Reply> json_reply(std::string body) {
  return std::make_unique<http::WholeReply>(http::ReplyHead{}, std::move(body));
}

// Whoever shares requests out between servers asks this, and no longer chooses one that stops.
std::unique_ptr<http::Reply> get_health(const ServerContext&, http::Request& request) {
  if (request.phase != http::ServerPhase::serving) return refusal_reply(stopping_refusal());
  return json_reply(R"({"status":"ok"})");
}

std::unique_ptr<http::Reply> get_models(const ServerContext& context, http::Request&) {
  json::Value list = json::Value::array();
  for (const ModelRegistry::Listed& listed : context.models->list()) {
    list.push_back(model_json(listed));
  }
  return json_reply(json::to_text({{"object", "list"}, {"data", std::move(list)}}));
}

std::unique_ptr<http::Reply> get_model(const ServerContext& context, http::Request& request) {
  const std::string& path = request.head.path;
  const std::string name = path.substr(path.find("/models/") + 8);
  for (const ModelRegistry::Listed& listed : context.models->list()) {
    const auto& aliases = listed.source->aliases;
    const bool is_alias = std::find(aliases.begin(), aliases.end(), name) != aliases.end();
    if (listed.source->name != name && !is_alias) continue;
    return json_reply(json::to_text(model_json(listed)));
  }
  return refusal_reply({.status = 404,
                        .type = "not_found_error",
                        .code = "model_not_found",
                        .message = "model: expected one that is served, found another",
                        .field = "model"});
}

std::unique_ptr<http::Reply> get_metrics(const ServerContext& context, http::Request&) {
  Metrics::Now now{.answering = context.slots->count(), .waiting = context.waiting->count()};
  for (const ModelRegistry::Listed& listed : context.models->list()) {
    if (listed.model == nullptr) continue;
    session::Service& service = *listed.model->service;
    Metrics::NowOfModel model{.model = listed.source->name, .scheduler = service.stats()};
    service.ask([&](Engine& engine) {
      model.memory = engine.memory().usage();
      model.pages = engine.memory().page_counts();
      model.snapshots = engine.memory().snapshot_counts();
      if (SequenceStore* const store = engine.sequence_store()) {
        if (store->has_folder()) model.store = store->stats();
        if (store->tier() != nullptr) model.tier = store->tier()->stats();
      }
    });
    now.models.push_back(std::move(model));
  }
  return std::make_unique<http::WholeReply>(
      http::ReplyHead{.content_type = "text/plain; version=0.0.4; charset=utf-8"},
      context.metrics->text(now));
}

std::unique_ptr<http::Reply> get_openapi(const ServerContext& context, http::Request&) {
  return json_reply(openapi_text(context.models->sampling()));
}

}  // namespace cairn::serve
