// The border between a caller's program and the library: no exception crosses it, errors become
// numbers and sentences, structs have the sizes that callers say, and the caller's floating-point
// state does not count within. Thread-safe: pure.
#pragma once

#include <cairn.h>

#include <algorithm>
#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "capi/handles.h"

namespace cairn::capi {

// Rounding, denormals and traps as every program begins with; afterwards as they were, the flags of
// what was computed meanwhile included.
class UsualFloats {
 public:
  UsualFloats() {
    std::feholdexcept(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~UsualFloats() { std::fesetenv(&before_); }
  UsualFloats(const UsualFloats&) = delete;
  UsualFloats& operator=(const UsualFloats&) = delete;

 private:
  std::fenv_t before_;
};

// Statuses beside those that a Result can have.
struct Answer {
  cairn_status status = CAIRN_OK;
  std::string message = {};

  Answer(cairn_status given = CAIRN_OK, std::string text = {})
      : status(given), message(std::move(text)) {}
  Answer(const Error& error);
  Answer(const Status& done) {
    if (!done) *this = Answer(done.error());
  }
};

Answer invalid(std::string message);
// "engine: expected an open one, found none".
Answer no_handle(std::string_view what);

cairn_status tell(const Answer& answer, cairn_error* e);
// REQUIRES: within a catch. What was thrown.
Answer caught();

// Runs the body of a function that returns a status. REQUIRES: it returns an Answer.
template <class Body>
cairn_status guarded(cairn_error* e, Body body) noexcept {
  const UsualFloats floats;
  if (InCallback::is_here()) {
    return tell(invalid("this thread is in a function that the library called: it cannot call the "
                        "library"),
                e);
  }
  try {
    return tell(body(), e);
  } catch (...) {
    return tell(caught(), e);
  }
}

// The same for functions that return something else: `otherwise` after an exception.
template <class Value, class Body>
Value guarded_value(Value otherwise, Body body) noexcept {
  const UsualFloats floats;
  if (InCallback::is_here()) return otherwise;
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}

// The size that a struct had when it first was in the header: callers may be as old as that.
template <class Struct>
constexpr uint32_t kFirstBytes = sizeof(Struct);
template <>
inline constexpr uint32_t kFirstBytes<cairn_engine_facts> = offsetof(cairn_engine_facts,
                                                                     native_capabilities);
template <>
inline constexpr uint32_t kFirstBytes<cairn_sampling> = offsetof(cairn_sampling, draft);
template <>
inline constexpr uint32_t kFirstBytes<cairn_event> = offsetof(cairn_event, drafted);

// A struct of this size can be read or written by this library. `size`: as the caller says.
constexpr uint32_t kStructBytesMax = 4096;
template <class Struct>
bool has_size(uint32_t size) {
  return size >= kFirstBytes<Struct> && size <= kStructBytesMax;
}

// What the caller has given, known to its end; members that are younger than the caller are 0.
// Errors: invalid_argument: another size; members that
// this library does not know, and that are set.
template <class Struct>
Status take_struct(const Struct* given, std::string_view name, Struct& taken) {
  if (!has_size<Struct>(given->struct_size)) {
    return fail(ErrorCode::invalid_argument, "{}: expected struct_size {}, found {}", name,
                sizeof(Struct), given->struct_size);
  }
  taken = {};
  std::memcpy(&taken, given, std::min<size_t>(sizeof taken, given->struct_size));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t at = sizeof taken; at < given->struct_size; ++at) {
    if (bytes[at] == 0) continue;
    return fail(ErrorCode::invalid_argument,
                "{}: expected zeros behind the {} bytes that this library knows, found other ones",
                name, sizeof(Struct));
  }
  return Ok{};
}

// Whether `out` can be filled; null can where it `may_lack`.
template <class Struct>
Status check_out(const Struct* out, std::string_view name, bool may_lack = false) {
  if (out == nullptr && may_lack) return Ok{};
  if (out == nullptr) {
    return fail(ErrorCode::invalid_argument, "{}: expected a struct, found NULL", name);
  }
  if (has_size<Struct>(out->struct_size)) return Ok{};
  return fail(ErrorCode::invalid_argument, "{}: expected struct_size {}, found {}", name,
              sizeof(Struct), out->struct_size);
}

// REQUIRES: check_out(). Members of later versions become 0.
template <class Struct>
void fill(Struct* out, Struct value) {
  if (out == nullptr) return;
  const uint32_t size = out->struct_size;
  value.struct_size = size;
  std::memset(static_cast<void*>(out), 0, size);
  std::memcpy(static_cast<void*>(out), &value, std::min<size_t>(size, sizeof value));
}

// REQUIRES: nothing: a size that is none writes nothing.
template <class Struct>
void initialise(Struct* out, uint32_t size, Struct value) {
  if (out == nullptr || !has_size<Struct>(size)) return;
  out->struct_size = size;
  fill(out, std::move(value));
}

}  // namespace cairn::capi
