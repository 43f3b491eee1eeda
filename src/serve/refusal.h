// Why a request is refused, and results that are a value or such a reason. In the words of OpenAI's
// API: a status, a type, a code, the field that is meant. Thread-safe: values.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "serve/http/message.h"
#include "serve/http/reply.h"

namespace cairn::serve {

struct Refusal {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string code = {};  // Empty: null.
  std::string message = {};
  std::string field = {};  // "messages[2].content"; empty: null.
  std::vector<http::Header> headers = {};
  std::vector<std::pair<std::string, int64_t>> numbers = {};  // Beside the message.
};

// A field that is not as expected.
template <class... Args>
[[nodiscard]] Refusal refuse_field(std::string_view field, fmt::format_string<Args...> format,
                                   Args&&... args) {
  return {.message = fmt::format("{}: {}", field, fmt::format(format, std::forward<Args>(args)...)),
          .field = std::string(field)};
}

// What an error of the engine means to a client.
Refusal refusal_of(const Error& error);
// The same, about a field.
Refusal refusal_of(const Error& error, std::string_view field);
// The same about a field whose work has a budget, with this code where that is used up.
Refusal refusal_of(const Error& error, std::string_view field, std::string_view budget_code);
// The same of an error while an answer is computed: what breaks its format then is what the model
// puts out, such as nothing but NaN.
Refusal answer_refusal_of(const Error& error);
// The prompt has more tokens than the context.
Refusal context_refusal(int64_t prompt_tokens, int64_t context_tokens);
// There is no room for another request now.
Refusal busy_refusal(std::string_view message);
// The server was told to stop.
Refusal stopping_refusal();

// In whose words errors are told.
enum class ErrorForm : uint8_t {
  openai,     // {"error": {"message", "type", "param", "code"}}
  ollama,     // {"error": "message"}
  anthropic,  // {"type": "error", "error": {"type", "message"}}
};

std::string refusal_json(const Refusal& refusal, ErrorForm form = ErrorForm::openai);
http::ReplyHead refusal_head(const Refusal& refusal);
std::unique_ptr<http::Reply> refusal_reply(const Refusal& refusal,
                                           ErrorForm form = ErrorForm::openai);

// As Result, for what clients ask: CAIRN_TRY takes both.
template <class T>
class [[nodiscard]] Checked {
 public:
  Checked(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Checked(Refusal refusal) : state_(std::in_place_index<1>, std::move(refusal)) {}
  Checked(const Error& error) : state_(std::in_place_index<1>, refusal_of(error)) {}

  explicit operator bool() const { return state_.index() == 0; }

  // REQUIRES: holds a value.
  T& operator*() & { return get(); }
  T* operator->() { return &get(); }
  T&& value() && { return std::move(get()); }

  // REQUIRES: holds a refusal.
  const Refusal& error() const& {
    CHECK(!*this);
    return *std::get_if<1>(&state_);
  }
  Refusal&& error() && {
    CHECK(!*this);
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  T& get() {
    CHECK(*this);
    return *std::get_if<0>(&state_);
  }

  std::variant<T, Refusal> state_;
};

}  // namespace cairn::serve
