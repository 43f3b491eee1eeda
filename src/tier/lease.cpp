// A number, then keys.
#include "tier/lease.h"

#include "store/bytes.h"

namespace cairn::tier {
namespace {

constexpr size_t kFixedBytes = 24;
constexpr size_t kStepsMax = (kLeaseBytesMax - kFixedBytes) / 8;

}  // namespace

Lease lease_of(uint64_t node, const store::Chain& chain, int32_t length) {
  Lease lease{
      .node = node, .length = length, .end = store::short_key(chain.key_at(length)), .steps = {}};
  for (int32_t link = kLeaseLinks; link <= chain.link_count(); link += kLeaseLinks) {
    if (lease.steps.size() == kStepsMax) break;
    lease.steps.push_back(store::short_key(chain.link(link)));
  }
  return lease;
}

std::vector<std::byte> encode(const Lease& lease) {
  store::ByteWriter out;
  out.u64(lease.node);
  out.u64(uint64_t(lease.length));
  out.u64(lease.end);
  for (const uint64_t step : lease.steps) out.u64(step);
  return std::move(out).take();
}

Result<Lease> decode_lease(std::span<const std::byte> bytes) {
  if (bytes.size() % 8 != 0 || bytes.size() < kFixedBytes || bytes.size() > kLeaseBytesMax) {
    return fail(ErrorCode::invalid_data, "lease: expected {} to {} bytes, in eights, found {}",
                kFixedBytes, kLeaseBytesMax, bytes.size());
  }
  store::ByteReader in(bytes);
  Lease lease{.node = in.u64(), .length = 0, .end = 0, .steps = {}};
  const uint64_t length = in.u64();
  if (length > uint64_t(INT32_MAX)) {
    return fail(ErrorCode::invalid_data, "lease: expected at most {} tokens, found {}", INT32_MAX,
                length);
  }
  lease.length = int32_t(length);
  lease.end = in.u64();
  lease.steps.reserve(in.left() / 8);
  while (in.left() > 0) lease.steps.push_back(in.u64());
  return lease;
}

int32_t common_tokens(const Lease& lease, const store::Chain& chain, int32_t length) {
  const bool is_whole = lease.length > 0 && lease.length <= length &&
                        store::short_key(chain.key_at(lease.length)) == lease.end;
  if (is_whole) return lease.length;
  int32_t link = 0;
  for (const uint64_t step : lease.steps) {
    const int32_t next = link + kLeaseLinks;
    if (next > chain.link_count() || store::short_key(chain.link(next)) != step) break;
    link = next;
  }
  return link * store::kChainTokens;
}

std::optional<int32_t> lease_link(int32_t held_links, const store::Chain& chain) {
  const int32_t link = (held_links / kLeaseLinks + 1) * kLeaseLinks;
  if (link > chain.link_count()) return std::nullopt;
  return link;
}

}  // namespace cairn::tier
