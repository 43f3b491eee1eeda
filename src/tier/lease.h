// What a machine says it is about to compute, for a while: advice to others, who may wait for it.
// Reads what strangers may have written. Thread-safe: pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/keys.h"

namespace cairn::tier {

// Leases stand for prompts in steps of so many links, which is 512 tokens.
inline constexpr int32_t kLeaseLinks = 16;

struct Lease {
  uint64_t node = 0;            // Whose it is; a number that the machine made up.
  std::vector<uint64_t> steps;  // Short keys of each sixteenth link of its prompt.

  bool operator==(const Lease&) const = default;
};

Lease lease_of(uint64_t node, const store::Chain& chain);
std::vector<std::byte> encode(const Lease& lease);
// Errors: invalid_data.
Result<Lease> decode_lease(std::span<const std::byte> bytes);
// So many links it has in common with a prompt, in whole steps.
int32_t common_links(const Lease& lease, const store::Chain& chain);
// The link whose key a prompt's lease has, of which the tier has so many links: none where too few
// tokens are left.
std::optional<int32_t> lease_link(int32_t held_links, const store::Chain& chain);

}  // namespace cairn::tier
