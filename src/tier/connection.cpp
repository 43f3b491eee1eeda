// Words become a command, bytes become replies.
#include "tier/connection.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/constant_time.h"
#include "base/text/byte_text.h"

namespace cairn::tier {
namespace {

constexpr size_t kBufferBytes = size_t(256) << 10;
// Words are put together; a payload is sent as it lies.
constexpr size_t kTogetherBytes = 4096;

}  // namespace

Connection::Connection(std::unique_ptr<Wire> wire)
    : wire_(std::move(wire)), buffer_(kBufferBytes) {}

Result<std::unique_ptr<Connection>> Connection::open(const TierAddress& address,
                                                     Clock::time_point deadline,
                                                     const std::atomic<bool>* is_given_up) {
  CAIRN_TRY(std::unique_ptr<Wire> wire, Wire::connect(address, deadline, is_given_up));
  std::unique_ptr<Connection> made(new Connection(std::move(wire)));
  if (address.is_peer) {
    CAIRN_TRY(made->prove(Secret(address.key), deadline));
    return made;
  }
  if (address.password.empty()) return made;
  std::vector<std::string_view> words = {"AUTH"};
  if (!address.user.empty()) words.push_back(address.user);
  words.push_back(address.password);
  CAIRN_TRY(const Reply reply, made->ask(words, 0, deadline));
  if (reply.kind == Reply::Kind::text) return made;
  return fail(ErrorCode::invalid_argument, "tier: the login was refused");
}

// Its number and its proof come first: who does not know the secret learns nothing.
Status Connection::prove(const Secret& secret, Clock::time_point deadline) {
  const Sha256Digest own = new_number();
  const std::string number = hex_of(own);
  const std::array<std::string_view, 2> greeting = {"PEER", number};
  CAIRN_TRY(const Reply reply, ask(greeting, 2 * sizeof(Sha256Digest), deadline));
  if (reply.bytes.size() != 2 * sizeof(Sha256Digest)) {
    return fail(ErrorCode::io, "tier: expected another machine's proof, found {} bytes",
                reply.bytes.size());
  }
  Sha256Digest other{};
  std::ranges::transform(std::span(reply.bytes).first(other.size()), other.begin(),
                         [](std::byte byte) { return uint8_t(byte); });
  const Sha256Digest expected = secret.proof_of(Secret::Side::lender, own, other);
  const auto proof = std::span(reply.bytes).subspan(other.size());
  if (!is_equal_in_constant_time(expected, proof)) {
    return fail(ErrorCode::io, "tier: the other machine has not this tier's key");
  }
  const std::string answer = hex_of(secret.proof_of(Secret::Side::asker, own, other));
  const std::array<std::string_view, 2> words = {"AUTH", answer};
  CAIRN_TRY(const Reply taken, ask(words, 0, deadline));
  if (taken.kind == Reply::Kind::text) return Ok{};
  return fail(ErrorCode::io, "tier: the other machine refused: {}", taken.text.substr(0, 100));
}

Result<ExpectedReply> Connection::send(std::span<const std::string_view> words, size_t bytes_max,
                                       Clock::time_point deadline,
                                       std::span<const std::span<const std::byte>> parts,
                                       size_t items_max) {
  if (is_broken_) return fail(ErrorCode::io, "tier: the connection is broken");
  std::string text = fmt::format("*{}\r\n", words.size() + size_t(!parts.empty()));
  for (const std::string_view word : words) {
    text += fmt::format("${}\r\n", word.size());
    text += word;
    text += "\r\n";
  }
  auto expected = std::make_shared<Expected>(Expected{.bytes_max = bytes_max,
                                                      .items_max = items_max,
                                                      .has_come = false,
                                                      .reply = {},
                                                      .sent_at = Clock::now(),
                                                      .came_at = {}});
  const auto write_all = [&]() -> Status {
    if (parts.empty()) return wire_->write(bytes_of_text(text), deadline);
    size_t size = 0;
    for (const std::span<const std::byte>& part : parts) size += part.size();
    text += fmt::format("${}\r\n", size);
    for (const std::span<const std::byte>& part : parts) {
      if (part.size() <= kTogetherBytes) {
        text += as_text(part);
        continue;
      }
      CAIRN_TRY(wire_->write(bytes_of_text(std::exchange(text, {})), deadline));
      CAIRN_TRY(wire_->write(part, deadline));
    }
    text += "\r\n";
    return wire_->write(bytes_of_text(text), deadline);
  };
  if (Status written = write_all(); !written) {
    is_broken_ = true;
    return std::move(written).error();
  }
  if (expected_.empty()) reader_.begin(bytes_max, items_max);
  expected_.push_back(expected);
  return expected;
}

Result<Reply*> Connection::wait(const ExpectedReply& expected, Clock::time_point deadline) {
  while (!expected->has_come) {
    if (is_broken_) return fail(ErrorCode::io, "tier: the connection is broken");
    if (Status received = receive(deadline); !received) {
      is_broken_ = true;
      return std::move(received).error();
    }
  }
  return &expected->reply;
}

Status Connection::receive(Clock::time_point deadline) {
  CAIRN_TRY(const size_t count, wire_->read(buffer_, deadline));
  std::span<const std::byte> bytes = std::span(buffer_).first(count);
  while (!bytes.empty()) {
    if (expected_.empty()) {
      return fail(ErrorCode::invalid_data, "tier: a reply to nothing that was asked");
    }
    CAIRN_TRY(const size_t taken, reader_.take(bytes));
    bytes = bytes.subspan(taken);
    if (!reader_.has_ended()) continue;
    Expected& come = *expected_.front();
    come.reply = reader_.result();
    come.has_come = true;
    come.came_at = Clock::now();
    expected_.pop_front();
    if (expected_.empty()) continue;
    reader_.begin(expected_.front()->bytes_max, expected_.front()->items_max);
  }
  return Ok{};
}

Result<Reply> Connection::ask(std::span<const std::string_view> words, size_t bytes_max,
                              Clock::time_point deadline,
                              std::span<const std::span<const std::byte>> parts) {
  CAIRN_TRY(const ExpectedReply expected, send(words, bytes_max, deadline, parts));
  CAIRN_TRY(Reply* const reply, wait(expected, deadline));
  return std::move(*reply);
}

}  // namespace cairn::tier
