// A line with a size, the bytes, an empty line; at the end a size of 0, trailers, an empty line.
#include "serve/http/chunks.h"

#include <algorithm>
#include <charconv>

namespace cairn::serve::http {

namespace {

// A size and its extensions.
constexpr size_t kLineBytesMax = 272;
constexpr size_t kTrailerBytesMax = 8 << 10;

}  // namespace

std::variant<size_t, Malformed> ChunkDecoder::push(std::string_view input, std::string& body) {
  size_t used = 0;
  while (state_ != State::done && used < input.size()) {
    const std::string_view rest = input.substr(used);
    if (state_ == State::data) {
      const size_t count = size_t(std::min<uint64_t>(left_, rest.size()));
      body += rest.substr(0, count);
      used += count;
      left_ -= count;
      if (left_ == 0) state_ = State::data_end;
      continue;
    }
    auto taken = take_line(rest, body);
    if (std::holds_alternative<Malformed>(taken)) return taken;
    if (std::get<size_t>(taken) == 0) break;
    used += std::get<size_t>(taken);
  }
  return used;
}

// 0: the line is not complete.
std::variant<size_t, Malformed> ChunkDecoder::take_line(std::string_view input, std::string& body) {
  const size_t limit = state_ == State::trailer ? kTrailerBytesMax : kLineBytesMax;
  const size_t feed = input.substr(0, limit).find('\n');
  if (feed == input.npos) {
    if (input.size() >= limit) return Malformed{400, "chunk: expected a shorter line"};
    return size_t(0);
  }
  if (feed == 0 || input[feed - 1] != '\r') {
    return Malformed{400, "chunk: expected lines that end with CR LF"};
  }
  const std::string_view line = input.substr(0, feed - 1);
  if (line.find('\r') != line.npos) return Malformed{400, "chunk: expected no CR alone"};
  switch (state_) {
    case State::size: {
      auto taken = take_size(line, body.size());
      if (std::holds_alternative<Malformed>(taken)) return taken;
      break;
    }
    case State::data_end:
      if (!line.empty()) return Malformed{400, "chunk: expected its end, found more bytes"};
      state_ = State::size;
      break;
    default:
      trailer_bytes_ += line.size();
      if (trailer_bytes_ > kTrailerBytesMax) return Malformed{431, "trailer: expected fewer bytes"};
      if (line.empty()) state_ = State::done;
      break;
  }
  return feed + 1;
}

std::variant<size_t, Malformed> ChunkDecoder::take_size(std::string_view line, size_t body_bytes) {
  const std::string_view digits = line.substr(0, line.find(';'));
  uint64_t size = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
  if (digits.empty() || digits.front() == '-' || read.ec != std::errc() ||
      read.ptr != digits.data() + digits.size()) {
    return Malformed{400, "chunk: expected a size in hexadecimal digits"};
  }
  if (size > body_bytes_max_ - std::min(body_bytes, body_bytes_max_)) {
    return Malformed{413, "body: too large"};
  }
  left_ = size;
  state_ = size == 0 ? State::trailer : State::data;
  return size_t(0);
}

}  // namespace cairn::serve::http
