// Bytes to and from a tier: a socket, under TLS where that is wanted, and no call that lasts longer
// than its deadline or than whoever waits wants to wait. Knows nothing of what is said.
// Thread rule: one thread; `is_given_up` may be set by any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "base/machine/descriptor.h"
#include "base/result.h"
#include "tier/tier_address.h"

namespace cairn::tier {

using Clock = std::chrono::steady_clock;

class Wire {
 public:
  // `is_given_up` ends whatever waits, within some 20 ms; null: nothing does. Both outlive it.
  // Errors: io, invalid_data (a certificate that is not believed), cancelled.
  static Result<std::unique_ptr<Wire>> connect(const TierAddress& address,
                                               Clock::time_point deadline,
                                               const std::atomic<bool>* is_given_up);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // All of them. Errors: io, cancelled; then the wire is of no use any more.
  Status write(std::span<const std::byte> bytes, Clock::time_point deadline);
  // Some, one at least. Errors: as write().
  Result<size_t> read(std::span<std::byte> bytes, Clock::time_point deadline);

 private:
  explicit Wire(const std::atomic<bool>* is_given_up) : is_given_up_(is_given_up) {}
  Status open(const SocketAddress& address, Clock::time_point deadline);
  Status shake_hands(const TierAddress& address, Clock::time_point deadline);
  Status wait_for(short events, Clock::time_point deadline) const;
  // Until `attempt`, which says how many bytes it moved, moves some or needs no more waiting.
  template <class Attempt>
  Result<size_t> retry(Attempt attempt, short events, Clock::time_point deadline);
  Status wait_for_tls(int code, Clock::time_point deadline) const;

  const std::atomic<bool>* is_given_up_;
  Descriptor socket_;
  ssl_st* session_ = nullptr;  // Null: no TLS.
};

}  // namespace cairn::tier
