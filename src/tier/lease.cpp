// A number, then keys.
#include "tier/lease.h"

#include "store/bytes.h"

namespace cairn::tier {
namespace {

// Of a prompt of two million tokens.
constexpr size_t kStepsMax = 4096;

}  // namespace

Lease lease_of(uint64_t node, const store::Chain& chain) {
  Lease lease{.node = node, .steps = {}};
  for (int32_t link = kLeaseLinks; link <= chain.link_count(); link += kLeaseLinks) {
    if (lease.steps.size() == kStepsMax) break;
    lease.steps.push_back(store::short_key(chain.link(link)));
  }
  return lease;
}

std::vector<std::byte> encode(const Lease& lease) {
  store::ByteWriter out;
  out.u64(lease.node);
  for (const uint64_t step : lease.steps) out.u64(step);
  return std::move(out).take();
}

Result<Lease> decode_lease(std::span<const std::byte> bytes) {
  if (bytes.size() % 8 != 0 || bytes.size() < 8 || bytes.size() > 8 * (kStepsMax + 1)) {
    return fail(ErrorCode::invalid_data, "lease: expected 8 to {} bytes, in eights, found {}",
                8 * (kStepsMax + 1), bytes.size());
  }
  store::ByteReader in(bytes);
  Lease lease{.node = in.u64(), .steps = {}};
  lease.steps.reserve(in.left() / 8);
  while (in.left() > 0) lease.steps.push_back(in.u64());
  return lease;
}

int32_t common_links(const Lease& lease, const store::Chain& chain) {
  int32_t common = 0;
  for (const uint64_t step : lease.steps) {
    const int32_t link = common + kLeaseLinks;
    if (link > chain.link_count() || store::short_key(chain.link(link)) != step) break;
    common = link;
  }
  return common;
}

std::optional<int32_t> lease_link(int32_t held_links, const store::Chain& chain) {
  const int32_t link = (held_links / kLeaseLinks + 1) * kLeaseLinks;
  if (link > chain.link_count()) return std::nullopt;
  return link;
}

}  // namespace cairn::tier
