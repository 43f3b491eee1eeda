// Words for what became of look-ups.
#include "store/shared_tier.h"

namespace cairn::store {

std::string_view name_of(TierOutcome outcome) {
  constexpr std::array<std::string_view, kTierOutcomes> kNames = {
      "fetched", "absent",     "slower",  "late",     "unreachable",
      "paused",  "incomplete", "damaged", "computed", "busy"};
  return kNames[size_t(outcome)];
}

}  // namespace cairn::store
