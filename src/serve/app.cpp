// From a request's head to its route.
#include "serve/app.h"

#include <algorithm>
#include <utility>

#include "base/machine/memory_reserve.h"
#include "serve/http/head.h"
#include "serve/http/request_id.h"
#include "serve/models/model_route.h"
#include "serve/refusal.h"

namespace cairn::serve {

namespace {

using http::Method;

// How many requests may wait for models that are being loaded.
constexpr int32_t kWaitingMax = 64;

// It is not worth a load.
constexpr AnyRoute if_loaded(Route route) {
  AnyRoute any = route;
  any.loads = false;
  return any;
}

// It reads the body of another route, and streams nothing.
constexpr AnyRoute whole(Route route) {
  AnyRoute any = route;
  any.may_stream = false;
  return any;
}

// About the model of the session that the path names.
constexpr AnyRoute of_session(Route route) {
  AnyRoute any = route;
  any.is_of_session = true;
  return any;
}

constexpr Replies told(std::string_view json) {
  return {.json = json};
}
constexpr Replies told_or_streamed(std::string_view json, std::string_view events,
                                   bool ends_with_done = false) {
  return {.json = json, .events = events, .ends_with_done = ends_with_done};
}
constexpr Replies told_or_lines(std::string_view json, std::string_view lines) {
  return {.json = json, .lines = lines};
}
// A request may choose the members of the answer.
constexpr std::string_view kNativeAnswers = "NativeAnswer | [NativeAnswer | object] | object",
                           kNativePieces = "NativePiece | NativeAnswer | Error | object";
constexpr std::string_view kRankings = "Ranking | TextScores";
constexpr std::string_view kModels = "{object: \"list\", data: [Model]}";
constexpr std::string_view kHealth = "{status: \"ok\"}";

constexpr RouteLine kRoutes[] = {
    {Method::get, "/", Access::anyone, true, get_page, 0, "a page to chat and to look at memory"},
    {Method::get, "/page/*", Access::anyone, true, get_page, 0, "what belongs to the page"},
    {Method::get, "/health", Access::anyone, true, get_health, 0, "whether the server is there",
     told(kHealth)},
    {Method::get, "/v1/health", Access::anyone, true, get_health, 0, "the same", told(kHealth)},
    {Method::get, "/v1/models", Access::user, true, get_models, 0, "the model that is served",
     told(kModels)},
    {Method::get, "/models", Access::user, true, get_models, 0, "the same", told(kModels)},
    {Method::get, "/v1/models/*", Access::user, true, get_model, 0, "the model of this name",
     told("Model")},
    {Method::get, "/metrics", Access::operator_, false, get_metrics, 0,
     "what the server counts, for Prometheus"},
    {Method::get, "/v1/memory", Access::user, false, get_memory, 0,
     "what is held of which positions, and what all of it is of the process", told("Memory")},
    {Method::get, "/v1/memory/events", Access::user, true, get_memory_events, 0,
     "the same as a stream of events: what has changed", told_or_streamed("", "Memory")},
    {Method::post, "/v1/memory/plan", Access::user, false, if_loaded(post_memory_plan), kChat,
     "what the next message of a conversation would cost", told("MemoryPlan")},
    {Method::get, "/openapi.json", Access::user, false, get_openapi, 0, "this document",
     told("object")},
    {Method::post, "/v1/chat/completions", Access::user, false, post_chat, kChat,
     "the next message of a conversation",
     told_or_streamed("ChatCompletion", "ChatChunk | Error", true)},
    {Method::post, "/chat/completions", Access::user, false, post_chat, kChat, "the same",
     told_or_streamed("ChatCompletion", "ChatChunk | Error", true)},
    {Method::post, "/chat/completions/input_tokens", Access::user, false, whole(post_chat_tokens),
     kChat, "how many tokens its prompt has", told("InputTokens")},
    {Method::post, "/v1/completions", Access::user, false, post_completion, kCompletion,
     "the continuation of a text", told_or_streamed("TextCompletion", "TextChunk | Error", true)},
    {Method::post, "/v1/embeddings", Access::user, false, post_embedding, kEmbedding,
     "vectors of texts", told("Embeddings")},
    {Method::post, "/embedding", Access::user, false, post_vectors, kVectors,
     "vectors of texts or of their tokens, as llama.cpp's server tells them", told("TokenVectors")},
    {Method::post, "/embeddings", Access::user, false, post_vectors, kVectors, "the same",
     told("TokenVectors")},
    {Method::post, "/tokenize", Access::user, false, post_tokenize, kTokenize, "a text's tokens",
     told("{tokens: [integer | {id: integer, piece: string | [integer]}], count: integer}")},
    {Method::post, "/detokenize", Access::user, false, post_detokenize, kDetokenize,
     "the text of tokens", told("{content: string}")},
    {Method::post, "/apply-template", Access::user, false, post_apply_template, kApplyTemplate,
     "the prompt of a conversation", told("{prompt: string}")},
    {Method::post, "/completion", Access::user, false, post_native, kNative,
     "the continuation of a text, as llama.cpp's server tells it",
     told_or_streamed(kNativeAnswers, kNativePieces)},
    {Method::post, "/completions", Access::user, false, post_native, kNative, "the same",
     told_or_streamed(kNativeAnswers, kNativePieces)},
    {Method::post, "/infill", Access::user, false, post_infill, kInfill,
     "the text in a gap, for models with tokens for that",
     told_or_streamed(kNativeAnswers, kNativePieces)},
    {Method::get, "/props", Access::user, false, get_props, 0, "the model and its defaults",
     told("Properties")},
    {Method::get, "/slots", Access::user, true, get_slots, 0, "how many requests are answered",
     told("[Slot]")},
    {Method::get, "/lora-adapters", Access::user, true, get_adapters, 0,
     "the adapters that are loaded, with their scales", told("[Adapter]")},
    {Method::post, "/lora-adapters", Access::operator_, false, post_adapters, kAdapters,
     "other scales, for all requests that name none", told("{success: true}")},
    {Method::post, "/api/chat", Access::user, false, post_ollama_chat, kOllamaChat,
     "the next message of a conversation, as Ollama tells it",
     told_or_lines("OllamaChat", "OllamaChat | Error")},
    {Method::post, "/api/generate", Access::user, false, post_ollama_generate, kOllamaGenerate,
     "the answer to a prompt", told_or_lines("OllamaText", "OllamaText | Error")},
    {Method::post, "/api/embed", Access::user, false, post_ollama_embed, kOllamaEmbed,
     "vectors of texts", told("OllamaVectors")},
    {Method::post, "/api/embeddings", Access::user, false, post_ollama_embeddings, kOllamaEmbed,
     "the vector of a text", told("{embedding: [number]}")},
    {Method::post, "/api/show", Access::user, false, post_ollama_show, kOllamaShow,
     "what the model's file says", told("OllamaCard")},
    {Method::get, "/api/tags", Access::user, false, get_ollama_tags, 0, "the model that is served",
     told("{models: [OllamaModel]}")},
    {Method::get, "/api/ps", Access::user, false, get_ollama_ps, 0, "the same",
     told("{models: [{...OllamaModel, expires_at: string, size_vram: integer, context_length: "
          "integer}]}")},
    {Method::post, "/v1/messages", Access::user, false, post_messages, kMessages,
     "the next message of a conversation, as Anthropic tells it",
     told_or_streamed("Message", "MessageEvent")},
    {Method::post, "/v1/messages/count_tokens", Access::user, false, post_count_tokens,
     kCountTokens, "how many tokens a conversation has", told("{input_tokens: integer}")},
    {Method::post, "/v1/chat/completions/input_tokens", Access::user, false,
     whole(post_chat_tokens), kChat, "the same for chat completions", told("InputTokens")},
    {Method::post, "/v1/responses", Access::user, false, post_responses, kResponses,
     "the answer to a conversation, or to what follows an earlier answer",
     told_or_streamed("Response", "ResponseEvent | Error")},
    {Method::post, "/v1/responses/input_tokens", Access::user, false, whole(post_response_tokens),
     kResponses, "how many tokens its input has", told("InputTokens")},
    {Method::get, "/v1/responses/{id}", Access::user, false, get_response, 0,
     "an answer that is kept", told("Response")},
    {Method::delete_, "/v1/responses/{id}", Access::user, false, delete_response, 0,
     "forgets an answer", told("ResponseDeleted")},
    {Method::get, "/v1/responses/{id}/input_items", Access::user, false, get_response_items, 0,
     "what an answer that is kept was asked with", told("ResponseInputItems")},
    {Method::post, "/responses", Access::user, false, post_responses, kResponses,
     "the same as /v1/responses", told_or_streamed("Response", "ResponseEvent | Error")},
    {Method::post, "/responses/input_tokens", Access::user, false, whole(post_response_tokens),
     kResponses, "how many tokens its input has", told("InputTokens")},
    {Method::get, "/v1/sessions", Access::user, false, get_sessions, 0, "the sessions of this key",
     told("{object: \"list\", data: [Session]}")},
    {Method::post, "/v1/sessions", Access::user, false, post_session, kSession,
     "a new session: a conversation that the server keeps", told("Session")},
    {Method::get, "/v1/sessions/{id}", Access::user, false, get_session, 0,
     "a session, with all that was said", told("WholeSession")},
    {Method::delete_, "/v1/sessions/{id}", Access::user, false, delete_session, 0,
     "forgets a session", told("{id: string, object: \"session.deleted\", deleted: true}")},
    {Method::post, "/v1/sessions/{id}/generate", Access::user, false,
     of_session(post_session_answer), kSessionAnswer, "the next message of a session",
     told_or_streamed("ChatCompletion", "ChatChunk | Error", true)},
    {Method::post, "/v1/sessions/{id}/stop", Access::user, false, post_session_stop, 0,
     "ends the answer that is being made, which stays as far as it went",
     told("{id: string, stopped: boolean}")},
    {Method::post, "/v1/sessions/{id}/append", Access::user, false,
     of_session(post_session_messages), kSessionMessages, "adds messages without an answer",
     told("Session")},
    {Method::post, "/v1/sessions/{id}/snapshot", Access::user, false,
     of_session(post_session_snapshot), kSessionName,
     "a name for what was said so far, to go back to", told("PricedSession")},
    {Method::post, "/v1/sessions/{id}/rewind", Access::user, false, of_session(post_session_rewind),
     kSessionRewind, "goes back, and says what going on from there costs", told("PricedSession")},
    {Method::post, "/v1/sessions/{id}/fork", Access::user, false, of_session(post_session_fork),
     kSessionFork, "a new session that begins with the same messages", told("ForkedSession")},
    {Method::post, "/v1/sessions/{id}/branch", Access::user, false, of_session(post_session_branch),
     kSessionName, "a branch that begins with the same messages, and goes on there",
     told("PricedSession")},
    {Method::post, "/v1/sessions/{id}/switch", Access::user, false, of_session(post_session_switch),
     kSessionName, "goes on in another branch", told("PricedSession")},
    {Method::get, "/v1/receipts/{id}", Access::user, false, get_receipt, 0,
     "the receipt of an answer, for a while", told("Receipt")},
    {Method::post, "/v1/receipts/replay", Access::user, false, post_receipt_replay, kReceipt,
     "computes the answer of a receipt again, and compares every bit", told("Replay")},
    {Method::post, "/v1/rerank", Access::user, false, post_rerank, kRerank,
     "how well texts fit a query, for models that score", told(kRankings)},
    {Method::post, "/rerank", Access::user, false, post_rerank, kRerank, "the same",
     told(kRankings)},
    {Method::post, "/reranking", Access::user, false, post_rerank, kRerank, "the same",
     told(kRankings)},
    {Method::post, "/v1/reranking", Access::user, false, post_rerank, kRerank, "the same",
     told(kRankings)},
    {Method::get, "/api/v0/models", Access::user, false, get_studio_models, 0,
     "the model that is served, as LM Studio tells it",
     told("{object: \"list\", data: [StudioModel]}")},
    {Method::get, "/api/version", Access::user, true, get_ollama_version, 0, "of this program",
     told("{version: string}")},
};

// The name in a path, "{id}", is one part of it.
bool is_path_with_name(std::string_view line, size_t open, std::string_view path) {
  const std::string_view begin = line.substr(0, open);
  const std::string_view end = line.substr(line.find('}') + 1);
  if (path.size() <= begin.size() + end.size()) return false;
  const std::string_view name = path.substr(begin.size(), path.size() - begin.size() - end.size());
  return path.starts_with(begin) && path.ends_with(end) && name.find('/') == name.npos;
}

bool is_path_of(const RouteLine& line, std::string_view path) {
  const size_t open = line.path.find('{');
  if (open != line.path.npos) return is_path_with_name(line.path, open, path);
  if (!line.path.ends_with('*')) return path == line.path;
  const std::string_view begin = line.path.substr(0, line.path.size() - 1);
  return path.starts_with(begin) && path.size() > begin.size();
}

// HEAD is GET without the body.
Method asked_method(const http::RequestHead& head) {
  return head.method == Method::head ? Method::get : head.method;
}

// Its place in the table; -1: there is none.
int32_t find_route(const http::RequestHead& head) {
  for (const RouteLine& line : kRoutes) {
    if (line.method == asked_method(head) && is_path_of(line, head.path)) {
      return int32_t(&line - kRoutes);
    }
  }
  return -1;
}

// As admit() has found it. Null: none.
const RouteLine* route_of(const http::Request& request) {
  return request.route < 0 ? nullptr : &kRoutes[request.route];
}

// In whose words a path's errors are told.
ErrorForm error_form(std::string_view path) {
  if (path.starts_with("/v1/messages")) return ErrorForm::anthropic;
  const bool is_ollama = path.starts_with("/api/") && !path.starts_with("/api/v0/");
  return is_ollama ? ErrorForm::ollama : ErrorForm::openai;
}

// The client of a proxy, which adds to the end of the last list whom it speaks to. Empty: it says
// nobody that an address could be.
std::string forwarded_address(const http::RequestHead& head) {
  const auto last = std::find_if(head.headers.rbegin(), head.headers.rend(),
                                 [](const auto& one) { return one.name == "x-forwarded-for"; });
  if (last == head.headers.rend()) return {};
  std::string address = last->value.substr(last->value.rfind(',') + 1);
  address.erase(0, address.find_first_not_of(' '));
  constexpr size_t kAddressBytesMax = 45;  // Of IPv6 with an IPv4 address in it.
  const bool is_address = address.size() <= kAddressBytesMax &&
                          address.find_first_not_of("0123456789abcdefABCDEF.:") == address.npos;
  return is_address ? address : std::string();
}

std::string_view key_of(const http::RequestHead& head) {
  if (const std::string_view bearer = http::bearer_of(head); !bearer.empty()) return bearer;
  const std::string* const found = head.find("x-api-key");
  return found == nullptr ? std::string_view() : std::string_view(*found);
}

std::unique_ptr<http::Reply> unknown_route(const http::RequestHead& head) {
  std::string allowed;
  for (const RouteLine& line : kRoutes) {
    if (!is_path_of(line, head.path)) continue;
    allowed += allowed.empty() ? "" : ", ";
    allowed += line.method == Method::get    ? "GET, HEAD"
               : line.method == Method::post ? "POST"
                                             : "DELETE";
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
  return make(ModelRegistry::of(std::move(model)), std::move(options));
}

Result<std::unique_ptr<App>> App::make(std::unique_ptr<ModelRegistry> models, AppOptions options) {
  CAIRN_TRY(std::unique_ptr<RequestLog> log, RequestLog::open(options.log_path));
  std::unique_ptr<SessionFiles> files;
  if (!options.session_folder.empty()) {
    CAIRN_TRY(files, SessionFiles::open(options.session_folder));
  }
  return std::unique_ptr<App>(
      new App(std::move(models), std::move(options), std::move(log), std::move(files)));
}

App::App(std::unique_ptr<ModelRegistry> models, AppOptions options, std::unique_ptr<RequestLog> log,
         std::unique_ptr<SessionFiles> files)
    : options_(std::move(options)), log_(std::move(log)), models_(std::move(models)) {
  set_keys(std::move(options_.keys));
  // With one client, all of it is that one's.
  const auto slots_of = [&](int32_t all) {
    return std::make_shared<Slots>(all, options_.keys.is_empty() ? all : std::max(all / 2, 1));
  };
  context_ = {.models = models_.get(),
              .slots = slots_of(options_.requests_max),
              .waiting = slots_of(kWaitingMax),
              .waiting_bytes = std::make_shared<std::atomic<size_t>>(0),
              .waiting_bytes_max = options_.waiting_bytes_max,
              .responses = std::make_shared<ResponseTable>(),
              .sessions = std::make_shared<SessionTable>(options_.sessions, std::move(files)),
              .receipts = std::make_shared<ReceiptTable>(),
              .metrics = &metrics_,
              .request_seconds_max = options_.request_seconds_max};
}

void App::set_keys(Keys keys) {
  options_.keys = std::move(keys);
  tenants_ = nullptr;
  if (options_.keys.tenant_count() < 2) return;
  tenants_ = std::make_shared<TenantShares>(TenantShares{
      .tenants = options_.keys.tenants(), .part = double(options_.tenant_share_percent) / 100});
}

std::unique_ptr<http::Reply> App::admit(http::Request& request) {
  const http::RequestHead& head = request.head;
  request.id = http::request_id(head);
  request.route = find_route(head);
  const std::vector<std::string>& proxies = options_.proxies;
  if (std::find(proxies.begin(), proxies.end(), request.address) != proxies.end()) {
    if (std::string client = forwarded_address(head); !client.empty()) {
      request.address = std::move(client);
    }
  }
  if (head.find("host") == nullptr && head.path != "/health") {
    return refuse(head, 400, "host: expected one, found none");
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
  const RouteLine* const line = route_of(request);
  if (std::unique_ptr<http::Reply> refused =
          check_key(request, line == nullptr ? Access::user : line->access)) {
    return refused;
  }
  if (line == nullptr) return unknown_route(head);
  if (request.phase == http::ServerPhase::finishing && head.method != http::Method::get &&
      head.method != http::Method::head) {
    return refusal_reply(stopping_refusal(), error_form(head.path));
  }
  if (head.find("content-encoding") != nullptr) {
    return refuse(head, 415, "content-encoding: expected none");
  }
  if (head.method == Method::post && !is_type_allowed(head)) {
    return refuse(head, 415, "content-type: expected application/json");
  }
  if (head.method == Method::post && !has_memory_reserve()) {
    return refuse(head, 503, "the system gives the server no more memory");
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
  request.owner = holder->owner;
  request.tenant = holder->tenant;
  request.tenants = tenants_;
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
    reply.headers = {{"access-control-allow-methods", "GET, POST, DELETE"},
                     {"access-control-allow-headers",
                      http::sendable_headers(head,
                                             "authorization, content-type, x-api-key, "
                                             "anthropic-version, anthropic-beta")},
                     {"access-control-max-age", "600"}};
  }
  return std::make_unique<http::WholeReply>(std::move(reply), "");
}

bool App::is_quick(const http::Request& request) const {
  const RouteLine* const line = route_of(request);
  return line != nullptr && line->is_quick;
}

std::unique_ptr<http::Reply> App::answer(http::Request& request) {
  const RouteLine* const line = route_of(request);
  const AnyRoute& route = line->route;
  context_.sessions->forget_unused();
  if (route.plain != nullptr) return route.plain(context_, request);
  // What is only asked to be shown loads nothing.
  return answer_about_model(context_,
                            {.route = route.of_model,
                             .endpoint = line->endpoint,
                             .loads = route.loads && line->method == Method::post,
                             .may_stream = route.may_stream,
                             .is_of_session = route.is_of_session,
                             .form = error_form(request.head.path)},
                            request);
}

std::unique_ptr<http::Reply> App::refuse(const http::RequestHead& head, int status,
                                         std::string_view message) {
  Refusal refusal{.status = status, .message = std::string(message)};
  if (status == 413) refusal.code = "body_too_large";
  if (status == 503) {
    refusal.type = "unavailable_error";
    refusal.headers = {{"retry-after", "1"}};
  }
  if (status == 500) refusal.type = "server_error";
  return refusal_reply(refusal, error_form(head.path));
}

void App::ended(const http::Request& request, const http::Reply& reply, const Outcome& outcome) {
  const RouteLine* const line = route_of(request);
  metrics_.add_request(line == nullptr ? "other" : line->path, outcome.status);
  log_->add(request, reply, outcome);
}

}  // namespace cairn::serve
