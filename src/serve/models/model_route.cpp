// Which model, whether it is there, and what waits for it.
#include "serve/models/model_route.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/process.h"
#include "serve/fields.h"
#include "serve/http/head.h"
#include "serve/models/loading_reply.h"
#include "serve/models/model_registry.h"
#include "serve/ollama/keep_alive.h"
#include "serve/routes/session_path.h"

namespace cairn::serve {

namespace {

using Clock = std::chrono::steady_clock;

struct Choice {
  std::string name;  // Empty: none.
  bool is_stream = false;
  bool unloads = false;  // Nothing else is wanted.
};

bool has_name(uint32_t endpoint) {
  for (const Field& field : all_fields()) {
    if (field.name == "model" && (field.endpoints & endpoint) != 0) return true;
  }
  return false;
}

Checked<Choice> read_choice(const ServerContext& context, const ModelRoute& asked,
                            const http::Request& request) {
  Choice choice;
  choice.name = http::query_value(request.head.query, "model").value_or("");
  if (asked.is_of_session) {
    const std::string id = session_name(request);
    const SessionTable::State state = context.sessions->find(request.owner, id);
    if (state == nullptr) return context.sessions->unknown(request.owner, id);
    choice.name = state->model;
  }
  if (!has_name(asked.endpoint)) return choice;
  CAIRN_TRY(const Body body, Body::read(request.body, Endpoint(asked.endpoint)));
  if (choice.name.empty()) choice.name = body.text("model").value_or("");
  const bool is_ollama = asked.form == ErrorForm::ollama;
  // Their lines of JSON have no comments.
  choice.is_stream = asked.may_stream && !is_ollama && body.is_true("stream");
  if (!is_ollama) return choice;
  CAIRN_TRY(const auto keep, ollama::read_keep_alive(body));
  choice.unloads = keep && keep->count() == 0 && !ollama::has_question(body);
  return choice;
}

std::unique_ptr<http::Reply> call(const ServerContext& context, const ModelRoute& asked,
                                  const ModelHandle& model, http::Request& request,
                                  Clock::duration load_time = {}) {
  std::unique_ptr<http::Reply> reply =
      asked.route({context, *model, std::chrono::nanoseconds(load_time), request.tenant}, request);
  // What has no end must not keep a model.
  if (!reply->is_endless()) reply->keep(model);
  return reply;
}

// A request, while it waits for its model.
struct Waiting {
  Waiting(const ServerContext& shared, const ModelRoute& route, http::Request& asking)
      : context(shared), asked(route), body_bytes(asking.body.size()) {
    // The connection keeps the head.
    std::string body = std::exchange(asking.body, {});
    request = asking;
    request.body = std::move(body);
    *context.waiting_bytes += body_bytes;
  }
  ~Waiting() { *context.waiting_bytes -= body_bytes; }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  std::unique_ptr<http::Reply> answer(Checked<ModelHandle> model) {
    slot.reset();
    if (!model) return refusal_reply(model.error(), asked.form);
    try {
      return call(context, asked, *model, request, Clock::now() - begin);
    } catch (const std::exception&) {
      log::error("request {}: {}", request.id, exception_text());
      return refusal_reply(
          {.status = 500, .type = "server_error", .message = "the server could not answer"},
          asked.form);
    }
  }

  ServerContext context;
  ModelRoute asked;
  http::Request request;
  size_t body_bytes;
  std::unique_ptr<Slots::Slot> slot;
  Clock::time_point begin = Clock::now();
};

std::unique_ptr<http::Reply> wait_for_model(const ServerContext& context, const ModelRoute& asked,
                                            ModelRegistry::Entry* entry, bool is_stream,
                                            http::Request& request) {
  const int32_t tenant_count = request.tenants ? int32_t(request.tenants->tenants.size()) : 0;
  std::unique_ptr<Slots::Slot> slot = context.waiting->take(request.client, tenant_count);
  const auto busy = [&] {
    return refusal_reply(busy_refusal("as many requests wait for models as may"), asked.form);
  };
  if (slot == nullptr) return busy();
  // Counted first, so that of several at a time none is overlooked.
  const auto waiting = std::make_shared<Waiting>(context, asked, request);
  if (*context.waiting_bytes > context.waiting_bytes_max) return busy();
  waiting->slot = std::move(slot);
  auto pending = std::make_shared<PendingModel>(
      [waiting](Checked<ModelHandle> model) { return waiting->answer(std::move(model)); });
  if (ModelHandle model = context.models->ask(entry, pending)) pending->end(std::move(model));
  return std::make_unique<LoadingReply>(std::move(pending), is_stream, asked.form);
}

std::unique_ptr<http::Reply> unloaded_reply(const std::string& model, const http::Request& request,
                                            Endpoint endpoint) {
  Checked<Body> body = Body::read(request.body, endpoint);
  if (!body) return refusal_reply(body.error(), ErrorForm::ollama);
  return ollama_loaded_reply(model, *body, true, {});
}

}  // namespace

std::unique_ptr<http::Reply> answer_about_model(const ServerContext& context,
                                                const ModelRoute& asked, http::Request& request) {
  ModelRegistry& models = *context.models;
  if (models.only() != nullptr) return call(context, asked, models.only(), request);
  Checked<Choice> choice = read_choice(context, asked, request);
  if (!choice) return refusal_reply(choice.error(), asked.form);
  Checked<ModelRegistry::Entry*> entry = models.find(choice->name);
  if (!entry) return refusal_reply(entry.error(), asked.form);
  if (choice->unloads) {
    models.unload(*entry);
    return unloaded_reply(models.look(*entry).source->name, request, Endpoint(asked.endpoint));
  }
  if (const ModelHandle model = models.ready(*entry, asked.loads)) {
    return call(context, asked, model, request);
  }
  if (asked.loads) return wait_for_model(context, asked, *entry, choice->is_stream, request);
  return refusal_reply(
      {.status = 404,
       .type = "not_found_error",
       .code = "model_not_loaded",
       .message = fmt::format("model: expected one that is loaded, found {}, which "
                              "a request that it answers loads",
                              models.look(*entry).source->name),
       .field = "model"},
      asked.form);
}

}  // namespace cairn::serve
