// Greetings, proofs, records.
#include "tier/peers/peer_session.h"

#include <fmt/core.h>

#include <array>
#include <optional>
#include <utility>

#include "base/constant_time.h"
#include "base/text/byte_text.h"
#include "store/folder.h"

namespace cairn::tier {

PeerSession::PeerSession(const Secret* secret, Records* records)
    : secret_(secret),
      records_(records),
      key_beginning_(secret->key_of(kRecordKey, Sha256Digest{})) {
  key_beginning_.resize(key_beginning_.size() - 2 * sizeof(Sha256Digest));
}

Status PeerSession::take(std::span<const std::byte> bytes) {
  input_.insert(input_.end(), bytes.begin(), bytes.end());
  return answer_waiting();
}

Status PeerSession::note_sent(size_t count) {
  sent_ += count;
  if (sent_ < output_.size()) return Ok{};
  // What a large record took is given back.
  output_ = {};
  sent_ = 0;
  return answer_waiting();
}

Status PeerSession::answer_waiting() {
  size_t taken = 0;
  Status status = Ok{};
  while (status && taken < input_.size() && output_bytes() < kWaitingMax) {
    Result<size_t> count = reader_.take(std::span(input_).subspan(taken));
    if (!count) {
      status = count.error();
      break;
    }
    taken += *count;
    if (reader_.has_ended()) status = answer(reader_.result());
  }
  // Nothing that follows a mistake means anything.
  if (!status) taken = input_.size();
  input_.erase(input_.begin(), input_.begin() + std::ptrdiff_t(taken));
  return status;
}

Status PeerSession::answer(const Request& request) {
  if (request.kind == Request::Kind::greet && stage_ == Stage::unknown) {
    const Sha256Digest own = new_number();
    const Sha256Digest proof = secret_->proof_of(Secret::Side::lender, request.digest, own);
    expected_ = secret_->proof_of(Secret::Side::asker, request.digest, own);
    stage_ = Stage::greeted;
    say_bytes(std::as_bytes(std::span(own)), std::as_bytes(std::span(proof)));
    return Ok{};
  }
  if (request.kind == Request::Kind::prove && stage_ == Stage::greeted) {
    const bool is_proof = is_equal_in_constant_time(expected_, request.digest);
    say(is_proof ? "+OK\r\n" : "-NOAUTH it has not this tier's key\r\n");
    if (!is_proof) return fail(ErrorCode::invalid_data, "peers: a wrong proof");
    stage_ = Stage::let_in;
    return Ok{};
  }
  const bool asks = request.kind == Request::Kind::exists || request.kind == Request::Kind::read;
  if (!asks || stage_ != Stage::let_in) {
    return fail(ErrorCode::invalid_data, "peers: a command out of its turn");
  }
  std::optional<Sha256Digest> name;
  if (request.key.starts_with(key_beginning_)) {
    name = store::digest_of_hex(std::string_view(request.key).substr(key_beginning_.size()));
  }
  if (request.kind == Request::Kind::exists) {
    say(name && records_->has(*name) ? ":1\r\n" : ":0\r\n");
  } else if (name) {
    answer_read(*name);
  } else {
    say("$-1\r\n");
  }
  return Ok{};
}

void PeerSession::answer_read(const Sha256Digest& name) {
  if (!records_->admits(*this)) return say("-BUSY others are lent to\r\n");
  Result<std::vector<std::byte>> record = records_->read(name);
  if (!record) return say("$-1\r\n");
  const std::span<const std::byte> bytes = *record;
  const Sha256Digest seal = secret_->seal_of(name, std::span(&bytes, 1));
  say_bytes(bytes, std::as_bytes(std::span(seal)));
}

void PeerSession::say(std::string_view text) {
  const std::span<const std::byte> bytes = bytes_of_text(text);
  output_.insert(output_.end(), bytes.begin(), bytes.end());
}

void PeerSession::say_bytes(std::span<const std::byte> bytes, std::span<const std::byte> more) {
  const std::string head = fmt::format("${}\r\n", bytes.size() + more.size());
  output_.reserve(output_.size() + head.size() + bytes.size() + more.size() + 2);
  say(head);
  output_.insert(output_.end(), bytes.begin(), bytes.end());
  output_.insert(output_.end(), more.begin(), more.end());
  say("\r\n");
}

}  // namespace cairn::tier
