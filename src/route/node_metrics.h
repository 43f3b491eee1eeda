// What a node's /metrics say of its requests, in the text form of Prometheus. Nothing in it is
// believed but numbers of requests that there can be. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace cairn::route {

// More requests than these no node has.
inline constexpr int32_t kNodeRequestsMax = 1'000'000;

// The sum of a gauge over all its labels. What is no number of requests (below 0, infinite, none)
// counts as 0, the sum as kNodeRequestsMax at most.
int32_t gauge_sum(std::string_view text, std::string_view name);

}  // namespace cairn::route
