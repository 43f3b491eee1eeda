// Decodes a body that comes in chunks (RFC 9112, 7.1), as strictly as http/head.h reads heads.
// Trailers are read and dropped. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "serve/http/head.h"

namespace cairn::serve::http {

class ChunkDecoder {
 public:
  explicit ChunkDecoder(size_t body_bytes_max) : body_bytes_max_(body_bytes_max) {}

  // Takes what it can of `input`, appends the body's bytes to `body`, and returns how many bytes of
  // the input are used up. What is left is the beginning of what comes next. Errors: 400, 413.
  std::variant<size_t, Malformed> push(std::string_view input, std::string& body);
  bool is_done() const { return state_ == State::done; }

 private:
  enum class State : uint8_t { size, data, data_end, trailer, done };

  std::variant<size_t, Malformed> take_line(std::string_view input, std::string& body);
  std::variant<size_t, Malformed> take_size(std::string_view line, size_t body_bytes);

  size_t body_bytes_max_;
  State state_ = State::size;
  uint64_t left_ = 0;  // Of the chunk.
  size_t trailer_bytes_ = 0;
};

}  // namespace cairn::serve::http
