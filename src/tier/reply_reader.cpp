// Lines, lengths and payloads.
#include "tier/reply_reader.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace cairn::tier {
namespace {

constexpr std::string_view kEnd = "\r\n";

Error refused(std::string_view expected) {
  return fail(ErrorCode::invalid_data, "tier: expected {} in a reply", expected);
}

// Digits, and a minus before them: nothing else.
bool read_number(std::string_view text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

Error refusal(const Reply& reply) {
  return fail(ErrorCode::io, "tier: {}", reply.text.substr(0, 100));
}

void ReplyReader::begin(size_t bytes_max, size_t items_max) {
  stage_ = Stage::line;
  bytes_max_ = bytes_max;
  has_lists_ = items_max > 0;
  items_left_ = items_max;
  list_bytes_left_ = kListBytesMax;
  lists_.clear();
  line_.clear();
  reply_ = {};
}

Result<size_t> ReplyReader::take(std::span<const std::byte> bytes) {
  CHECK(!has_ended());
  size_t taken = 0;
  while (taken < bytes.size() && !has_ended()) {
    if (stage_ == Stage::payload) {
      const size_t count = std::min(length_ - reply_.bytes.size(), bytes.size() - taken);
      const auto part = bytes.subspan(taken, count);
      reply_.bytes.insert(reply_.bytes.end(), part.begin(), part.end());
      taken += count;
      if (reply_.bytes.size() == length_) stage_ = Stage::end_of_payload;
      continue;
    }
    line_.push_back(char(bytes[taken++]));
    if (stage_ == Stage::end_of_payload) {
      if (!kEnd.starts_with(line_)) return refused("an end of line behind bytes");
      if (line_.size() < kEnd.size()) continue;
      line_.clear();
      end_one();
    } else if (line_.ends_with(kEnd)) {
      CAIRN_TRY(take_line());
    } else if (line_.size() >= kLineBytesMax) {
      return refused("a line of at most 4096 bytes");
    }
  }
  return taken;
}

Status ReplyReader::take_line() {
  const std::string line = std::exchange(line_, {});
  const std::string_view text = std::string_view(line).substr(0, line.size() - kEnd.size());
  if (text.empty()) return refused("a kind");
  const std::string_view rest = text.substr(1);
  switch (text.front()) {
    case '+':
      CAIRN_TRY(take_room(lists_.empty() ? 0 : rest.size()));
      reply_.kind = Reply::Kind::text;
      reply_.text = rest;
      break;
    case '-':
      CAIRN_TRY(take_room(lists_.empty() ? 0 : rest.size()));
      reply_.kind = Reply::Kind::error;
      reply_.text = rest;
      break;
    case ':':
      reply_.kind = Reply::Kind::number;
      if (!read_number(rest, reply_.number)) return refused("a number");
      break;
    case '$':
      return take_length(rest);
    case '*':
      return take_count(rest);
    default:
      return refused("a text, an error, a number or bytes");
  }
  end_one();
  return Ok{};
}

// Of a list in a list the outer one may have ended as well.
void ReplyReader::end_one() {
  while (!lists_.empty()) {
    OpenList& list = lists_.back();
    list.reply.items.push_back(std::exchange(reply_, {}));
    if (--list.left > 0) {
      stage_ = Stage::line;
      return;
    }
    reply_ = std::move(list.reply);
    lists_.pop_back();
  }
  stage_ = Stage::ended;
}

Status ReplyReader::take_count(std::string_view digits) {
  int64_t count = 0;
  if (!read_number(digits, count) || count < -1) return refused("a count");
  const size_t depth_max = has_lists_ ? kDepthMax : 0;
  if (count > int64_t(items_left_) || lists_.size() >= depth_max) {
    return fail(ErrorCode::invalid_data,
                "tier: expected lists of at most {} items in a reply, {} deep, found {}",
                items_left_, depth_max, count);
  }
  if (count >= 0) reply_.kind = Reply::Kind::list;
  if (count > 0) {
    items_left_ -= size_t(count);
    lists_.push_back({.reply = std::exchange(reply_, {}), .left = size_t(count)});
  } else {
    end_one();
  }
  return Ok{};
}

// Of what is kept, but of a text that is all of a reply: those have a limit of their own.
Status ReplyReader::take_room(uint64_t bytes) {
  if (bytes > bytes_max_) {
    return fail(ErrorCode::invalid_data, "tier: expected at most {} bytes in a reply, found {}",
                bytes_max_, bytes);
  }
  if (lists_.empty()) return Ok{};
  if (bytes > list_bytes_left_) {
    return fail(ErrorCode::invalid_data,
                "tier: expected at most {} bytes in the lists of a reply, found more",
                kListBytesMax);
  }
  list_bytes_left_ -= size_t(bytes);
  return Ok{};
}

// Memory grows with what has come, but for what was asked for: that is known to be wanted.
Status ReplyReader::take_length(std::string_view digits) {
  int64_t length = 0;
  if (!read_number(digits, length) || length < -1) return refused("a length");
  if (length == -1) {
    end_one();
    return Ok{};
  }
  CAIRN_TRY(take_room(uint64_t(length)));
  reply_.kind = Reply::Kind::bytes;
  length_ = size_t(length);
  constexpr size_t kAtOnce = size_t(4) << 20;
  reply_.bytes.reserve(std::min(length_, kAtOnce));
  stage_ = length_ == 0 ? Stage::end_of_payload : Stage::payload;
  return Ok{};
}

}  // namespace cairn::tier
