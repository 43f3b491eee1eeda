// A value or an error. Errors are made only by fail(); what went wrong in the world (a file, a
// request, a limit) travels as a Result, what is wrong in the program stops it (base/check.h).
// An error's message names the thing and both values: "blk.3.attn_q: expected …, found …".
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace cairn {

enum class ErrorCode {
  invalid_argument,  // The caller asked for something that makes no sense.
  invalid_data,      // A file or a text breaks its format.
  not_found,         // A file, key or tensor is not there.
  unsupported,       // Well-formed, but this build cannot do it.
  no_room,           // A limit is exceeded: of an input, or of the work that one may cost.
  context_full,      // More tokens than the context holds.
  memory_full,       // More bytes than the memory budget, or the machine, has free.
  io,                // The operating system said no.
  cancelled,         // The caller stopped it.
};

struct Error {
  ErrorCode code;
  std::string message;
};

struct Ok {};

template <class... Args>
[[nodiscard]] Error fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }

  // REQUIRES: holds a value.
  T& operator*() & { return get(); }
  T* operator->() { return &get(); }
  T&& value() && { return std::move(get()); }

  // REQUIRES: holds an error.
  const Error& error() const& {
    CHECK(!*this);
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    CHECK(!*this);
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  T& get() {
    CHECK(*this);
    return *std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

using Status = Result<Ok>;

}  // namespace cairn

// CAIRN_TRY(declaration, expression): the value, or return the error to the caller.
// CAIRN_TRY(expression): the same for a Status.
#define CAIRN_TRY(...) CAIRN_TRY_PICK(__VA_ARGS__, CAIRN_TRY_VALUE, CAIRN_TRY_STATUS, )(__VA_ARGS__)
#define CAIRN_TRY_PICK(first, second, name, ...) name
#define CAIRN_TRY_STATUS(expression) \
  if (auto try_status = (expression); !try_status) return std::move(try_status).error()
#define CAIRN_TRY_VALUE(declaration, expression)                                         \
  auto CAIRN_JOIN(try_, __LINE__) = (expression);                                        \
  if (!CAIRN_JOIN(try_, __LINE__)) return std::move(CAIRN_JOIN(try_, __LINE__)).error(); \
  declaration = std::move(CAIRN_JOIN(try_, __LINE__)).value()
#define CAIRN_JOIN(a, b) CAIRN_JOIN_EXPANDED(a, b)
#define CAIRN_JOIN_EXPANDED(a, b) a##b
