// Codes and sentences.
#include "capi/border.h"

#include <fmt/core.h>

#include <algorithm>

namespace cairn::capi {

namespace {

cairn_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return CAIRN_E_INVALID;
    case ErrorCode::invalid_data:
      return CAIRN_E_FORMAT;
    case ErrorCode::not_found:
    case ErrorCode::io:
      return CAIRN_E_IO;
    case ErrorCode::unsupported:
      return CAIRN_E_UNSUPPORTED;
    case ErrorCode::no_room:
    case ErrorCode::context_full:
    case ErrorCode::memory_full:
      return CAIRN_E_NO_ROOM;
    case ErrorCode::cancelled:
      return CAIRN_CANCELLED;
  }
  return CAIRN_E_INTERNAL;
}

// As many bytes as fit, and no half character at their end.
std::string_view shortened(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  while (end > 0 && (uint8_t(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

Answer::Answer(const Error& error) : status(status_of(error.code)), message(error.message) {}

Answer invalid(std::string message) {
  return {CAIRN_E_INVALID, std::move(message)};
}

Answer no_handle(std::string_view what) {
  return invalid(fmt::format("{}: expected an open one, found none", what));
}

cairn_status tell(const Answer& answer, cairn_error* e) {
  if (e == nullptr || !has_size<cairn_error>(e->struct_size)) return answer.status;
  e->code = answer.status;
  const std::string_view text = shortened(answer.message, sizeof e->message - 1);
  std::copy(text.begin(), text.end(), e->message);
  e->message[text.size()] = '\0';
  return answer.status;
}

Answer caught() {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    // Short enough for std::string to need no memory for it.
    return {CAIRN_E_NO_ROOM, "no memory"};
  } catch (const std::exception& thrown) {
    return {CAIRN_E_INTERNAL, thrown.what()};
  } catch (...) {
    return {CAIRN_E_INTERNAL, "unknown"};
  }
}

}  // namespace cairn::capi
