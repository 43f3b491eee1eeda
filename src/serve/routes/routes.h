// The routes: each makes the reply to a request, from the request, what all routes share, and the
// model that is asked for. The table is App's. Thread rule: any worker.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "serve/fields.h"
#include "serve/http/message.h"
#include "serve/http/reply.h"
#include "serve/kept_table.h"
#include "serve/metrics.h"
#include "serve/models/model_registry.h"
#include "serve/response_table.h"
#include "serve/served_model.h"
#include "serve/sessions/session_table.h"
#include "serve/slots.h"

namespace cairn::serve {

// The texts of receipts, by their ids.
struct ReceiptTable : KeptTable<std::string> {
  static constexpr size_t kBytesMax = size_t(64) << 20;
  static constexpr std::chrono::hours kAgeMax{1};

  ReceiptTable() : KeptTable(kBytesMax, kAgeMax) {}
};

// What routes share; they change nothing of it but counts and what is kept for later requests.
struct ServerContext {
  ModelRegistry* models = nullptr;
  std::shared_ptr<Slots> slots;
  std::shared_ptr<Slots> waiting;  // Of requests whose model is not in memory …
  std::shared_ptr<std::atomic<size_t>> waiting_bytes;  // … their bodies …
  size_t waiting_bytes_max = 0;                        // … and how large they may be in all.
  std::shared_ptr<ResponseTable> responses;
  std::shared_ptr<SessionTable> sessions;
  std::shared_ptr<ReceiptTable> receipts;
  Metrics* metrics = nullptr;
  double request_seconds_max = 0;  // Then an answer fails; 0: it may take as long as it likes.
};

// The same beside the model of one request, which stays until the reply is gone: App sees to that,
// so that whatever a reply points to of it may be a plain pointer.
struct RouteContext : ServerContext {
  const ServedModel& model;
  std::chrono::nanoseconds load_time{0};  // That the request waited for it to be loaded.
  uint64_t tenant = 0;                    // The request's.
};

using Route = std::unique_ptr<http::Reply> (*)(const RouteContext&, http::Request&);
// Of what is about no model, or about all of them.
using PlainRoute = std::unique_ptr<http::Reply> (*)(const ServerContext&, http::Request&);

// A body of JSON that is there.
std::unique_ptr<http::Reply> json_reply(std::string body);

std::unique_ptr<http::Reply> get_health(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_models(const ServerContext& context, http::Request& request);
// Of "/v1/models/NAME".
std::unique_ptr<http::Reply> get_model(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_metrics(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_openapi(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_memory(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_memory_events(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_memory_plan(const RouteContext& context, http::Request& request);
// The web page, and what belongs to it.
std::unique_ptr<http::Reply> get_page(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_chat(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_completion(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_embedding(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_tokenize(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_detokenize(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_apply_template(const RouteContext& context,
                                                 http::Request& request);
// llama.cpp's own.
std::unique_ptr<http::Reply> post_native(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_vectors(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_infill(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_props(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_slots(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_adapters(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_adapters(const RouteContext& context, http::Request& request);
// Ollama's.
std::unique_ptr<http::Reply> post_ollama_chat(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_ollama_generate(const RouteContext& context,
                                                  http::Request& request);
std::unique_ptr<http::Reply> post_ollama_embed(const RouteContext& context, http::Request& request);
// The older form, of one text.
std::unique_ptr<http::Reply> post_ollama_embeddings(const RouteContext& context,
                                                    http::Request& request);
std::unique_ptr<http::Reply> post_ollama_show(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_ollama_tags(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_ollama_ps(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_ollama_version(const ServerContext& context,
                                                http::Request& request);
// To one of /api/chat or /api/generate without a question: the model is loaded, or unloaded.
std::unique_ptr<http::Reply> ollama_loaded_reply(const std::string& model, const Body& body,
                                                 bool is_unloaded,
                                                 std::chrono::nanoseconds load_time);
// Anthropic's.
std::unique_ptr<http::Reply> post_messages(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_count_tokens(const RouteContext& context, http::Request& request);
// How many tokens the prompt of a chat completion has.
std::unique_ptr<http::Reply> post_chat_tokens(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_responses(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_response_tokens(const RouteContext& context,
                                                  http::Request& request);
// Of "/v1/responses/ID" and "/v1/responses/ID/input_items".
std::unique_ptr<http::Reply> get_response(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> delete_response(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_response_items(const ServerContext& context,
                                                http::Request& request);
std::unique_ptr<http::Reply> post_rerank(const RouteContext& context, http::Request& request);
// Sessions. "/v1/sessions/NAME/…".
std::unique_ptr<http::Reply> get_sessions(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_session(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> get_session(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> delete_session(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_session_answer(const RouteContext& context,
                                                 http::Request& request);
std::unique_ptr<http::Reply> post_session_stop(const ServerContext& context,
                                               http::Request& request);
std::unique_ptr<http::Reply> post_session_messages(const RouteContext& context,
                                                   http::Request& request);
std::unique_ptr<http::Reply> post_session_snapshot(const RouteContext& context,
                                                   http::Request& request);
std::unique_ptr<http::Reply> post_session_rewind(const RouteContext& context,
                                                 http::Request& request);
std::unique_ptr<http::Reply> post_session_fork(const RouteContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_session_branch(const RouteContext& context,
                                                 http::Request& request);
std::unique_ptr<http::Reply> post_session_switch(const RouteContext& context,
                                                 http::Request& request);
// Of "/v1/receipts/ID".
std::unique_ptr<http::Reply> get_receipt(const ServerContext& context, http::Request& request);
std::unique_ptr<http::Reply> post_receipt_replay(const RouteContext& context,
                                                 http::Request& request);
// LM Studio's.
std::unique_ptr<http::Reply> get_studio_models(const ServerContext& context,
                                               http::Request& request);

}  // namespace cairn::serve
