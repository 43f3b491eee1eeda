// Statuses and types of errors.
#include "serve/refusal.h"

#include "json/value.h"

namespace cairn::serve {

namespace {

// Nobody is told more than this of what was wrong.
constexpr size_t kMessageBytesMax = 1500;

std::string_view anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

}  // namespace

Refusal refusal_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::invalid_data:
    case ErrorCode::no_room:
      return {.message = error.message};
    case ErrorCode::not_found:
      return {.status = 404, .type = "not_found_error", .message = error.message};
    case ErrorCode::unsupported:
      return {.status = 501, .type = "not_supported_error", .message = error.message};
    case ErrorCode::context_full:
      return {.code = "context_length_exceeded", .message = error.message};
    case ErrorCode::memory_full:
      return {.status = 503,
              .type = "unavailable_error",
              .code = "memory_full",
              .message = error.message,
              .headers = {{"retry-after", "1"}}};
    case ErrorCode::io:
    case ErrorCode::cancelled:
      break;
  }
  return {.status = 500, .type = "server_error", .message = error.message};
}

Refusal refusal_of(const Error& error, std::string_view field) {
  Refusal refusal = refusal_of(error);
  refusal.field = field;
  return refusal;
}

Refusal refusal_of(const Error& error, std::string_view field, std::string_view budget_code) {
  Refusal refusal = refusal_of(error, field);
  if (error.code == ErrorCode::no_room) refusal.code = budget_code;
  return refusal;
}

Refusal answer_refusal_of(const Error& error) {
  if (error.code != ErrorCode::invalid_data) return refusal_of(error);
  return {.status = 500,
          .type = "server_error",
          .code = "model_output_invalid",
          .message = error.message};
}

Refusal context_refusal(int64_t prompt_tokens, int64_t context_tokens) {
  // Clients look for this sentence.
  return {.code = "context_length_exceeded",
          .message = fmt::format("This model's maximum context length is {} tokens. However, you "
                                 "requested {} tokens in the prompt.",
                                 context_tokens, prompt_tokens),
          .numbers = {{"n_prompt_tokens", prompt_tokens}, {"n_ctx", context_tokens}}};
}

Refusal busy_refusal(std::string_view message) {
  return {.status = 429,
          .type = "rate_limit_error",
          .code = "queue_full",
          .message = std::string(message),
          .headers = {{"retry-after", "1"}}};
}

Refusal stopping_refusal() {
  return {.status = 503,
          .type = "unavailable_error",
          .code = "server_stopping",
          .message = "the server stops, and finishes what it has begun",
          .headers = {{"retry-after", "1"}}};
}

std::string refusal_json(const Refusal& refusal, ErrorForm form) {
  const std::string_view message = std::string_view(refusal.message).substr(0, kMessageBytesMax);
  if (form == ErrorForm::ollama) return json::to_text({{"error", message}});
  if (form == ErrorForm::anthropic) {
    json::Value error = {{"type", anthropic_type(refusal.status)}, {"message", message}};
    return json::to_text({{"type", "error"}, {"error", std::move(error)}});
  }
  json::Value error = {{"message", message}, {"type", refusal.type}};
  error["param"] = refusal.field.empty() ? json::Value() : json::Value(refusal.field);
  error["code"] = refusal.code.empty() ? json::Value() : json::Value(refusal.code);
  for (const auto& [name, number] : refusal.numbers) error[name] = number;
  return json::to_text({{"error", std::move(error)}});
}

http::ReplyHead refusal_head(const Refusal& refusal) {
  http::ReplyHead head{.status = refusal.status, .headers = refusal.headers};
  // What is wrong with the request is wrong the next time too.
  const bool is_final = refusal.status == 500 || refusal.status == 501;
  if (is_final) head.headers.push_back({"x-should-retry", "false"});
  return head;
}

std::unique_ptr<http::Reply> refusal_reply(const Refusal& refusal, ErrorForm form) {
  return std::make_unique<http::WholeReply>(refusal_head(refusal), refusal_json(refusal, form));
}

}  // namespace cairn::serve
