// What a tier may send: replies, in pieces that the first bytes choose, and what they carry:
// leases, manifests. The reader keeps no more than was asked for, and says the same whatever the
// pieces are.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "store/encoded_record.h"
#include "tier/cluster.h"
#include "tier/lease.h"
#include "tier/reply_reader.h"
#include "tier/tier_address.h"

namespace store = cairn::store;
namespace tier = cairn::tier;

namespace {

constexpr size_t kBytesMax = 100, kItemsMax = 20;

size_t items_of(const tier::Reply& reply) {
  size_t count = reply.items.size();
  for (const tier::Reply& item : reply.items) {
    CHECK(item.bytes.size() <= kBytesMax);
    count += items_of(item);
  }
  return count;
}

// All replies up to the first error, or to the end; none is added for an error.
std::vector<tier::Reply> read(std::span<const std::byte> bytes, size_t piece, bool& is_refused) {
  std::vector<tier::Reply> replies;
  tier::ReplyReader reader;
  reader.begin(kBytesMax, kItemsMax);
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(piece, bytes.size()));
    auto taken = reader.take(part);
    is_refused = !taken;
    if (is_refused) return replies;
    CHECK(*taken > 0 && *taken <= part.size());
    bytes = bytes.subspan(*taken);
    if (!reader.has_ended()) {
      CHECK(*taken == part.size());
      continue;
    }
    replies.push_back(reader.result());
    CHECK(replies.back().bytes.size() <= kBytesMax);
    CHECK(items_of(replies.back()) <= kItemsMax);
    CHECK(replies.back().text.size() <= tier::ReplyReader::kLineBytesMax);
    reader.begin(kBytesMax, kItemsMax);
  }
  return replies;
}

void try_replies(std::span<const std::byte> bytes, size_t piece) {
  bool is_refused = false, is_refused_whole = false;
  const auto in_pieces = read(bytes, piece, is_refused);
  const auto whole = read(bytes, bytes.size() + 1, is_refused_whole);
  CHECK(is_refused == is_refused_whole);
  CHECK(in_pieces == whole);
  // A cluster has thousands of slots: only for what may change one.
  std::optional<tier::Cluster> cluster;
  const tier::TierAddress home;
  for (const tier::Reply& reply : whole) {
    (void)tier::decode_lease(reply.bytes);
    const auto redirect = tier::Redirect::read(reply);
    if (reply.items.empty() && !redirect) continue;
    if (!cluster) cluster.emplace(&home, 1);
    (void)cluster->take(reply);
    if (redirect) cluster->note_moved(*redirect);
  }
}

void try_lease(std::span<const std::byte> bytes) {
  auto lease = tier::decode_lease(bytes);
  if (!lease) return;
  const std::vector<std::byte> again = tier::encode(*lease);
  CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  const std::vector<cairn::Token> tokens(1000, cairn::Token(3));
  const int32_t common = tier::common_tokens(*lease, store::Chain({}, tokens), 1000);
  CHECK(common >= 0 && common <= 1000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  switch (data[0] % 4) {
    case 0:
    case 1:
      try_replies(bytes.subspan(2), size_t(data[1]) + 1);
      break;
    case 2:
      try_lease(bytes.subspan(1));
      break;
    case 3:
      (void)tier::TierUrl::parse({reinterpret_cast<const char*>(data) + 1, size - 1});
      (void)store::decode_manifest_record({}, bytes.subspan(1));
      break;
  }
  return 0;
}
