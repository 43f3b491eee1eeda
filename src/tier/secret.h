// What follows from the secret that machines share: how all that they keep is named, the seals
// behind it, and the words by which two of them prove to each other that they know it. Without a
// secret it is the same under an empty one, which finds damage and no forgery.
// Thread-safe: constant.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/sha256.h"

namespace cairn::tier {

// HMAC-SHA-256 (RFC 2104) of two texts, one behind the other.
Sha256Digest keyed_digest(std::string_view key, std::span<const std::byte> first,
                          std::span<const std::byte> second);

// Kinds of what is kept.
inline constexpr std::string_view kRecordKey = "r:", kPointerKey = "m:", kEndKey = "e:",
                                  kLeaseKey = "l:", kWantedKey = "w:";
// Of machines that lend their records (tier/peers/directory.h).
inline constexpr std::string_view kHoldersKey = "d:", kEndHoldersKey = "f:", kNodeKey = "n:";

// Behind a value.
inline constexpr size_t kSealBytes = sizeof(Sha256Digest);

class Secret {
 public:
  explicit Secret(std::string secret);

  bool is_empty() const { return secret_.empty(); }
  // The name of what is kept. Those of another secret are others. No braces: in a cluster these
  // would put all of it into one place.
  std::string key_of(std::string_view kind, const Sha256Digest& digest) const;
  std::string key_of(std::string_view kind, uint64_t number) const;

  // What stands behind a record's bytes.
  Sha256Digest seal_of(const Sha256Digest& name,
                       std::span<const std::span<const std::byte>> parts) const;
  // What stands behind a short value: of its key, too, so that none can take another's place.
  Sha256Digest seal_of(std::string_view key, std::span<const std::byte> value) const;

  // Who lends, or who asks, knows the secret: of two numbers that both have just made up, the
  // asker's first.
  enum class Side : uint8_t { lender, asker };
  Sha256Digest proof_of(Side side, const Sha256Digest& asker, const Sha256Digest& lender) const;

 private:
  std::string secret_, key_beginning_;
};

// A number that nobody has had before, and nobody can guess.
Sha256Digest new_number();

}  // namespace cairn::tier
