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
  int32_t length = 0;           // Of its prompt.
  uint64_t end = 0;             // The short key of all of it …
  std::vector<uint64_t> steps;  // … and those of each sixteenth link.

  bool operator==(const Lease&) const = default;
};

inline constexpr size_t kLeaseBytesMax = 8 * (3 + 4096);  // Of a prompt of two million tokens.

// `length`: of the prompt that the chain is of.
Lease lease_of(uint64_t node, const store::Chain& chain, int32_t length);
std::vector<std::byte> encode(const Lease& lease);
// Errors: invalid_data.
Result<Lease> decode_lease(std::span<const std::byte> bytes);
// So many tokens a prompt has in common with it: all of its own, or whole steps.
int32_t common_tokens(const Lease& lease, const store::Chain& chain, int32_t length);
// The link whose key a prompt's lease has, of which the tier has so many links: none where too few
// tokens are left.
std::optional<int32_t> lease_link(int32_t held_links, const store::Chain& chain);

}  // namespace cairn::tier
