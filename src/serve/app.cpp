// From a request's head to its route.
#include "serve/app.h"

#include <algorithm>
#include <random>
#include <utility>

#include "serve/refusal.h"

namespace cairn::serve {

namespace {

using http::Method;

constexpr RouteLine kRoutes[] = {
    {Method::get, "/", Access::anyone, true, get_page, 0, "a page to chat and to look at memory"},
    {Method::get, "/page/*", Access::anyone, true, get_page, 0, "what belongs to the page"},
    {Method::get, "/health", Access::anyone, true, get_health, 0, "whether the server is there"},
    {Method::get, "/v1/health", Access::anyone, true, get_health, 0, "the same"},
    {Method::get, "/v1/models", Access::user, true, get_models, 0, "the model that is served"},
    {Method::get, "/models", Access::user, true, get_models, 0, "the same"},
    {Method::get, "/v1/models/*", Access::user, true, get_model, 0, "the model of this name"},
    {Method::get, "/metrics", Access::operator_, false, get_metrics, 0,
     "what the server counts, for Prometheus"},
    {Method::get, "/v1/memory", Access::user, false, get_memory, 0,
     "what is held of which positions, and what all of it is of the process"},
    {Method::get, "/v1/memory/events", Access::user, true, get_memory_events, 0,
     "the same as a stream of events: what has changed"},
    {Method::post, "/v1/memory/plan", Access::user, false, post_memory_plan, kChat,
     "what the next message of a conversation would cost"},
    {Method::get, "/openapi.json", Access::user, false, get_openapi, 0, "this document"},
    {Method::post, "/v1/chat/completions", Access::user, false, post_chat, kChat,
     "the next message of a conversation"},
    {Method::post, "/chat/completions", Access::user, false, post_chat, kChat, "the same"},
    {Method::post, "/v1/completions", Access::user, false, post_completion, kCompletion,
     "the continuation of a text"},
    {Method::post, "/v1/embeddings", Access::user, false, post_embedding, kEmbedding,
     "vectors of texts"},
    {Method::post, "/tokenize", Access::user, false, post_tokenize, kTokenize, "a text's tokens"},
    {Method::post, "/detokenize", Access::user, false, post_detokenize, kDetokenize,
     "the text of tokens"},
    {Method::post, "/apply-template", Access::user, false, post_apply_template, kApplyTemplate,
     "the prompt of a conversation"},
    {Method::post, "/completion", Access::user, false, post_native, kNative,
     "the continuation of a text, as llama.cpp's server tells it"},
    {Method::post, "/completions", Access::user, false, post_native, kNative, "the same"},
    {Method::post, "/infill", Access::user, false, post_infill, kInfill,
     "the text in a gap, for models with tokens for that"},
    {Method::get, "/props", Access::user, false, get_props, 0, "the model and its defaults"},
    {Method::get, "/slots", Access::user, true, get_slots, 0, "how many requests are answered"},
    {Method::get, "/lora-adapters", Access::user, true, get_adapters, 0,
     "the adapters that are loaded, with their scales"},
    {Method::post, "/lora-adapters", Access::operator_, false, post_adapters, kAdapters,
     "other scales, for all requests that name none"},
    {Method::post, "/api/chat", Access::user, false, post_ollama_chat, kOllamaChat,
     "the next message of a conversation, as Ollama tells it"},
    {Method::post, "/api/generate", Access::user, false, post_ollama_generate, kOllamaGenerate,
     "the answer to a prompt"},
    {Method::post, "/api/embed", Access::user, false, post_ollama_embed, kOllamaEmbed,
     "vectors of texts"},
    {Method::post, "/api/embeddings", Access::user, false, post_ollama_embeddings, kOllamaEmbed,
     "the vector of a text"},
    {Method::post, "/api/show", Access::user, false, post_ollama_show, kOllamaShow,
     "what the model's file says"},
    {Method::get, "/api/tags", Access::user, false, get_ollama_tags, 0, "the model that is served"},
    {Method::get, "/api/ps", Access::user, false, get_ollama_ps, 0, "the same"},
    {Method::post, "/v1/messages", Access::user, false, post_messages, kMessages,
     "the next message of a conversation, as Anthropic tells it"},
    {Method::post, "/v1/messages/count_tokens", Access::user, false, post_count_tokens,
     kCountTokens, "how many tokens a conversation has"},
    {Method::post, "/v1/chat/completions/input_tokens", Access::user, false, post_chat_tokens,
     kChat, "the same for chat completions"},
    {Method::post, "/v1/responses", Access::user, false, post_responses, kResponses,
     "the answer to a conversation, or to what follows an earlier answer"},
    {Method::post, "/v1/responses/input_tokens", Access::user, false, post_response_tokens,
     kResponses, "how many tokens its input has"},
    {Method::post, "/v1/rerank", Access::user, false, post_rerank, kRerank,
     "how well texts fit a query, for models that score"},
    {Method::post, "/rerank", Access::user, false, post_rerank, kRerank, "the same"},
    {Method::get, "/api/v0/models", Access::user, false, get_studio_models, 0,
     "the model that is served, as LM Studio tells it"},
    {Method::get, "/api/version", Access::user, true, get_ollama_version, 0, "of this program"},
};

bool is_path_of(const RouteLine& line, std::string_view path) {
  if (!line.path.ends_with('*')) return path == line.path;
  const std::string_view begin = line.path.substr(0, line.path.size() - 1);
  return path.starts_with(begin) && path.size() > begin.size();
}

// HEAD is GET without the body.
Method asked_method(const http::RequestHead& head) {
  return head.method == Method::head ? Method::get : head.method;
}

const RouteLine* find_route(const http::RequestHead& head) {
  for (const RouteLine& line : kRoutes) {
    if (line.method == asked_method(head) && is_path_of(line, head.path)) return &line;
  }
  return nullptr;
}

// In whose words a path's errors are told.
ErrorForm error_form(std::string_view path) {
  if (path.starts_with("/v1/messages")) return ErrorForm::anthropic;
  const bool is_ollama = path.starts_with("/api/") && !path.starts_with("/api/v0/");
  return is_ollama ? ErrorForm::ollama : ErrorForm::openai;
}

// Of the client's choice where it can do no harm in logs and headers.
std::string request_id(const http::RequestHead& head) {
  const std::string* const wished = head.find("x-request-id");
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (wished != nullptr && !wished->empty() && wished->size() <= 128 &&
      std::all_of(wished->begin(), wished->end(), is_plain)) {
    return *wished;
  }
  std::random_device device;
  return fmt::format("req-{:08x}{:08x}", device(), device());
}

std::string_view key_of(const http::RequestHead& head) {
  constexpr std::string_view kBearer = "Bearer ";
  if (const std::string* const found = head.find("authorization")) {
    const std::string_view text = *found;
    return text.starts_with(kBearer) ? text.substr(kBearer.size()) : std::string_view();
  }
  const std::string* const found = head.find("x-api-key");
  return found == nullptr ? std::string_view() : std::string_view(*found);
}

std::unique_ptr<http::Reply> unknown_route(const http::RequestHead& head) {
  std::string allowed;
  for (const RouteLine& line : kRoutes) {
    if (!is_path_of(line, head.path)) continue;
    allowed += allowed.empty() ? "" : ", ";
    allowed += line.method == Method::get ? "GET, HEAD" : "POST";
  }
  if (allowed.empty()) {
    return refusal_reply({.status = 404,
                          .type = "not_found_error",
                          .message = "path: expected one of those in /openapi.json"},
                         error_form(head.path));
  }
  return refusal_reply({.status = 405,
                        .message = fmt::format("method: expected {}", allowed),
                        .headers = {{"allow", allowed}}},
                       error_form(head.path));
}

}  // namespace

std::span<const RouteLine> all_routes() {
  return kRoutes;
}

Result<std::unique_ptr<App>> App::make(ServedModel model, AppOptions options) {
  CAIRN_TRY(std::unique_ptr<RequestLog> log, RequestLog::open(options.log_path));
  return std::unique_ptr<App>(new App(std::move(model), std::move(options), std::move(log)));
}

App::App(ServedModel model, AppOptions options, std::unique_ptr<RequestLog> log)
    : options_(std::move(options)), log_(std::move(log)) {
  // With one client, all of it is that one's.
  const int32_t all = options_.requests_max;
  context_ = {
      .model = std::move(model),
      .slots = std::make_shared<Slots>(all, options_.keys.is_empty() ? all : std::max(all / 2, 1)),
      .adapters = std::make_shared<AdapterScales>(),
      .responses = std::make_shared<ResponseTable>(),
      .metrics = &metrics_,
      .request_seconds_max = options_.request_seconds_max};
}

std::unique_ptr<http::Reply> App::admit(http::Request& request) {
  const http::RequestHead& head = request.head;
  request.id = request_id(head);
  if (head.find("host") == nullptr && head.path != "/health") {
    return refuse(400, "host: expected one, found none");
  }
  if (const std::string_view why = refuse_origin(head, options_.origins); !why.empty()) {
    Refusal refusal{.status = 403, .type = "permission_error", .message = std::string(why)};
    if (why.starts_with("host")) refusal.code = "host_not_allowed";
    return refusal_reply(refusal, error_form(head.path));
  }
  if (const std::string* const origin = head.find("origin")) {
    request.reply_headers = {{"access-control-allow-origin", *origin},
                             {"access-control-expose-headers", "x-request-id"},
                             {"vary", "Origin"}};
  }
  if (head.method == Method::options) return preflight(head);
  const RouteLine* const line = find_route(head);
  if (std::unique_ptr<http::Reply> refused =
          check_key(request, line == nullptr ? Access::user : line->access)) {
    return refused;
  }
  if (line == nullptr) return unknown_route(head);
  if (head.find("content-encoding") != nullptr) {
    return refuse(415, "content-encoding: expected none");
  }
  if (head.method == Method::post && !is_type_allowed(head)) {
    return refuse(415, "content-type: expected application/json");
  }
  return nullptr;
}

std::unique_ptr<http::Reply> App::check_key(http::Request& request, Access access) {
  const Keys& keys = options_.keys;
  if (keys.is_empty() || access == Access::anyone) return nullptr;
  const ErrorForm form = error_form(request.head.path);
  const FailureCounts::Clock::time_point now = FailureCounts::Clock::now();
  if (failures_.is_blocked(request.address, now)) {
    return refusal_reply({.status = 429,
                          .type = "rate_limit_error",
                          .message = "API key: too many wrong ones from this address",
                          .headers = {{"retry-after", "60"}}},
                         form);
  }
  const std::string_view key = key_of(request.head);
  const std::optional<Keys::Holder> holder = keys.find(key);
  if (!holder) {
    if (!key.empty()) failures_.add(request.address, now);
    return refusal_reply({.status = 401,
                          .type = "authentication_error",
                          .code = "invalid_api_key",
                          .message = "Invalid API Key",
                          .headers = {{"www-authenticate", "Bearer"}}},
                         form);
  }
  request.client = holder->name;
  request.tenant = holder->tenant;
  const bool needs_admin = keys.has_role(Role::admin) || keys.tenant_count() > 1;
  request.sees_all = holder->role == Role::admin || !needs_admin;
  if (access == Access::operator_ && !request.sees_all) {
    return refusal_reply({.status = 403,
                          .type = "permission_error",
                          .message = "API key: expected an admin's, found a user's"},
                         form);
  }
  return nullptr;
}

// What a browser asks before a page of an allowed origin may ask.
std::unique_ptr<http::Reply> App::preflight(const http::RequestHead& head) const {
  const std::string* const origin = head.find("origin");
  http::ReplyHead reply{.status = 204, .content_type = ""};
  if (origin != nullptr) {
    reply.headers = {{"access-control-allow-methods", "GET, POST"},
                     {"access-control-allow-headers",
                      "authorization, content-type, x-api-key, anthropic-version, anthropic-beta"},
                     {"access-control-max-age", "600"}};
  }
  return std::make_unique<http::WholeReply>(std::move(reply), "");
}

bool App::is_quick(const http::RequestHead& head) const {
  const RouteLine* const line = find_route(head);
  return line != nullptr && line->is_quick;
}

std::unique_ptr<http::Reply> App::answer(http::Request& request) {
  const RouteLine* const line = find_route(request.head);
  return line->route(context_, request);
}

std::unique_ptr<http::Reply> App::refuse(int status, std::string_view message) {
  Refusal refusal{.status = status, .message = std::string(message)};
  if (status == 413) refusal.code = "body_too_large";
  if (status == 503) {
    refusal.type = "unavailable_error";
    refusal.headers = {{"retry-after", "1"}};
  }
  if (status == 500) refusal.type = "server_error";
  return refusal_reply(refusal);
}

void App::ended(const http::Request& request, const http::Reply& reply, const Outcome& outcome) {
  const RouteLine* const line = find_route(request.head);
  metrics_.add_request(line == nullptr ? "other" : line->path, outcome.status);
  log_->add(request, reply, outcome);
}

}  // namespace cairn::serve
