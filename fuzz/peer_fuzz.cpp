// What strangers may say to a machine that lends records, and what they may write into the
// directory of who lends what: commands in pieces that the first bytes choose, before a proof and
// behind one. Nothing is lent without a proof, no more is kept than a command has, and it is the
// same whatever the pieces are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tier/peers/directory.h"
#include "tier/peers/peer_session.h"
#include "tier/peers/request_reader.h"
#include "tier/tier_address.h"

namespace tier = cairn::tier;
using cairn::Result;
using cairn::Sha256Digest;

namespace {

// All commands up to the first that is none.
std::vector<tier::Request> read(std::span<const std::byte> bytes, size_t piece, bool& is_refused) {
  std::vector<tier::Request> requests;
  tier::RequestReader reader;
  is_refused = false;
  while (!bytes.empty()) {
    Result<size_t> taken = reader.take(bytes.first(std::min(piece, bytes.size())));
    is_refused = !taken;
    if (is_refused) return requests;
    CHECK(*taken > 0 && *taken <= std::min(piece, bytes.size()));
    bytes = bytes.subspan(*taken);
    if (!reader.has_ended()) continue;
    requests.push_back(reader.result());
    CHECK(requests.back().key.size() <= tier::RequestReader::kBytesMax);
  }
  return requests;
}

void try_requests(std::span<const std::byte> bytes, size_t piece) {
  bool is_refused = false, is_refused_whole = false;
  const auto in_pieces = read(bytes, piece, is_refused);
  const auto whole = read(bytes, bytes.size() + 1, is_refused_whole);
  CHECK(in_pieces == whole);
  CHECK(is_refused == is_refused_whole);
}

class Records : public tier::PeerSession::Records {
 public:
  bool has(const Sha256Digest& name) override {
    ++asked;
    return (name[0] & 1) != 0;
  }
  Result<std::vector<std::byte>> read(const Sha256Digest& name) override {
    if (!has(name)) return cairn::fail(cairn::ErrorCode::not_found, "no such record");
    return std::vector<std::byte>(size_t(name[1]) * 1024);
  }
  bool admits(tier::PeerSession&) override { return (++asked & 3) != 0; }

  size_t asked = 0;
};

void try_session(std::span<const std::byte> bytes, size_t piece, bool is_known) {
  const tier::Secret secret("a secret of 32 bytes, or of some more");
  Records records;
  tier::PeerSession session(&secret, &records);
  if (is_known) {
    const Sha256Digest own{};
    const std::string greeting = "*2\r\n$4\r\nPEER\r\n$64\r\n" + cairn::hex_of(own) + "\r\n";
    CHECK(bool(session.take(std::as_bytes(std::span(greeting)))));
    Sha256Digest other{};
    std::ranges::transform(session.output().subspan(5, other.size()), other.begin(),
                           [](std::byte byte) { return uint8_t(byte); });
    const std::string proof =
        "*2\r\n$4\r\nAUTH\r\n$64\r\n" +
        cairn::hex_of(secret.proof_of(tier::Secret::Side::asker, own, other)) + "\r\n";
    CHECK(bool(session.note_sent(session.output_bytes())));
    CHECK(bool(session.take(std::as_bytes(std::span(proof)))));
    CHECK(session.is_let_in());
  }
  while (!bytes.empty()) {
    while (!session.wants_bytes()) {
      if (!session.note_sent(std::min<size_t>(session.output_bytes(), 4096))) return;
    }
    const size_t count = std::min(piece, bytes.size());
    if (!session.take(bytes.first(count))) break;
    bytes = bytes.subspan(count);
  }
  // Nobody guesses a proof.
  CHECK(session.is_let_in() == is_known);
  CHECK(is_known || records.asked == 0);
}

void try_directory(std::span<const std::byte> bytes) {
  const tier::Secret secret(""), other("another secret of 32 bytes or more");
  CHECK(decode_holders(other, "key", bytes).empty());
  CHECK(!decode_node(other, "key", bytes).has_value());
  const auto holders = decode_holders(secret, "key", bytes);
  if (!holders.empty()) CHECK(encode_holders(secret, "key", holders).size() == bytes.size());
  const auto node = decode_node(secret, "key", bytes);
  if (node) CHECK(node->size() + tier::kSealBytes == bytes.size());
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto address = tier::peer_address({}, text)) {
    CHECK(tier::is_loopback(address->sockets.front()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const size_t piece = size_t(data[1]) + 1;
  switch (data[0] % 4) {
    case 0:
      try_requests(bytes.subspan(2), piece);
      break;
    case 1:
      try_session(bytes.subspan(2), piece, false);
      break;
    case 2:
      try_session(bytes.subspan(2), piece, true);
      break;
    case 3:
      try_directory(bytes.subspan(1));
      break;
  }
  return 0;
}
