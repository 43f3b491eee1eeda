// "*2\r\n$6\r\nEXISTS\r\n$69\r\nc1:r:…\r\n", and few others.
#include "tier/peers/request_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/text/byte_text.h"
#include "store/folder.h"

namespace cairn::tier {
namespace {

// "GETEX KEY PX MILLISECONDS" has four.
constexpr size_t kWordsMax = 4;

Error no_command() {
  return fail(ErrorCode::invalid_data, "peers: expected a command for records, found another");
}

// A line of the kind and a number; none where it has not come. Errors: it is none.
Result<std::optional<size_t>> take_number(std::string_view& rest, char kind, size_t max) {
  if (!rest.empty() && rest.front() != kind) return no_command();
  const size_t end = rest.find("\r\n");
  constexpr size_t kDigitsMax = 3;
  if (end == std::string_view::npos) {
    if (rest.size() > 1 + kDigitsMax + 1) return no_command();
    return std::optional<size_t>();
  }
  const std::string_view digits = rest.substr(1, end - 1);
  size_t number = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = error == std::errc() && stop == digits.data() + digits.size();
  if (!is_number || digits.size() > kDigitsMax || number == 0 || number > max) return no_command();
  rest.remove_prefix(end + 2);
  return std::optional(number);
}

Result<Request> request_of(std::span<const std::string_view> words) {
  const std::string_view name = words.front();
  Request request;
  if ((name == "PEER" || name == "AUTH") && words.size() == 2) {
    request.kind = name == "PEER" ? Request::Kind::greet : Request::Kind::prove;
    const std::optional<Sha256Digest> digest = store::digest_of_hex(words[1]);
    if (!digest) return no_command();
    request.digest = *digest;
    return request;
  }
  const bool reads = name == "GETEX" && words.size() == 4 && words[2] == "PX";
  if (!reads && (name != "EXISTS" || words.size() != 2)) return no_command();
  request.kind = reads ? Request::Kind::read : Request::Kind::exists;
  request.key = words[1];
  return request;
}

}  // namespace

Result<size_t> RequestReader::take(std::span<const std::byte> bytes) {
  CHECK(!has_ended_);
  const size_t before = text_.size();
  const size_t count = std::min(bytes.size(), kBytesMax - before);
  text_ += as_text(bytes.first(count));
  CAIRN_TRY(has_ended_, read());
  if (has_ended_) return text_.size() - before;
  if (text_.size() == kBytesMax) return no_command();
  return count;
}

// Whether all of a command is there: then the text is it, and what came behind it is not taken.
Result<bool> RequestReader::read() {
  std::string_view rest = text_;
  CAIRN_TRY(const std::optional<size_t> count, take_number(rest, '*', kWordsMax));
  if (!count) return false;
  std::array<std::string_view, kWordsMax> words;
  for (size_t word = 0; word < *count; ++word) {
    CAIRN_TRY(const std::optional<size_t> length, take_number(rest, '$', kBytesMax));
    if (!length || rest.size() < *length + 2) return false;
    if (rest.substr(*length, 2) != "\r\n") return no_command();
    words[word] = rest.substr(0, *length);
    rest.remove_prefix(*length + 2);
  }
  CAIRN_TRY(request_, request_of(std::span(words).first(*count)));
  text_.resize(text_.size() - rest.size());
  return true;
}

Request RequestReader::result() {
  CHECK(has_ended_);
  has_ended_ = false;
  text_.clear();
  return std::exchange(request_, {});
}

}  // namespace cairn::tier
