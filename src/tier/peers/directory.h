// Which machines lend what: at each link of a chain stands who has a sequence that begins so, the
// newest first, and for each machine where it can be asked, which it says again and again while it
// lives. Kept in the tier, where strangers may write: what has not the right seal is nobody's.
// Thread-safe: pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "tier/secret.h"

namespace cairn::tier {

// A machine, and the manifest of what it has.
struct Holder {
  uint64_t node = 0;  // A number of its process alone.
  Sha256Digest manifest{};

  bool operator==(const Holder&) const = default;
};

inline constexpr size_t kHoldersMax = 4;
inline constexpr size_t kHolderBytes = 8 + sizeof(Sha256Digest);
inline constexpr size_t kHoldersBytesMax = kHoldersMax * kHolderBytes + kSealBytes;
// HOST:PORT, by numbers.
inline constexpr size_t kNodeAddressBytesMax = 64;
inline constexpr size_t kNodeBytesMax = kNodeAddressBytesMax + kSealBytes;
// So often a machine says that it lives, and so long that is believed.
inline constexpr std::chrono::seconds kNodeBeat(3), kNodeKept(10);

// The value of a key. REQUIRES: 1 to kHoldersMax of them.
std::vector<std::byte> encode_holders(const Secret& secret, std::string_view key,
                                      std::span<const Holder> holders);
// None where it is not what somebody who knows the secret wrote under this key.
std::vector<Holder> decode_holders(const Secret& secret, std::string_view key,
                                   std::span<const std::byte> value);
// With this one first, and nothing else of its machine.
std::vector<Holder> with_newest(const Holder& newest, std::span<const Holder> others);

std::vector<std::byte> encode_node(const Secret& secret, std::string_view key,
                                   std::string_view address);
std::optional<std::string> decode_node(const Secret& secret, std::string_view key,
                                       std::span<const std::byte> value);

}  // namespace cairn::tier
