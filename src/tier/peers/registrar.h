// Tells other machines what this one lends (tier/peers/directory.h): at each link of a sequence
// that it has it, and where it is as long as it lives. What two machines say of one link at the
// same time may be lost: then it is not found there. Thread rule: one thread.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/keys.h"
#include "tier/peers/directory.h"
#include "tier/servers.h"
#include "tier/tier.h"

namespace cairn::tier {

class Registrar {
 public:
  // Of a sequence: its links, its end, and the manifest by which its records are found.
  struct Entry {
    std::vector<Sha256Digest> links;
    Sha256Digest end{};
    Sha256Digest manifest{};
  };
  static Entry entry_of(const store::Chain& chain, int32_t length, const Sha256Digest& manifest);

  // The tier, which has peers, outlives it.
  explicit Registrar(Tier* tier) : tier_(tier) {}

  Clock::time_point next_beat() const { return next_beat_; }
  // Says that it lives, if it is time. Errors: those of Servers.
  Status beat(Servers& servers);
  // Errors: those of Servers; cancelled.
  Status add(Servers& servers, const Entry& entry, const std::atomic<bool>& gives_up);

 private:
  struct Place {
    std::string key;
    Holder holder;
  };
  Status add_some(Servers& servers, std::span<const Place> places);

  Tier* tier_;
  Clock::time_point next_beat_{};
};

}  // namespace cairn::tier
