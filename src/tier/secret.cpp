// Digests of digests.
#include "tier/secret.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "base/text/byte_text.h"

namespace cairn::tier {
namespace {

// A new secret begins anew: what was written with the old one is not found, and goes by itself.
std::string beginning_of_keys(const std::string& secret) {
  if (secret.empty()) return "c1:";
  return "c1:" + hex_of(keyed_digest(secret, bytes_of_text("cairn tier keys"), {})).substr(0, 8) +
         ":";
}

}  // namespace

Sha256Digest keyed_digest(std::string_view key, std::span<const std::byte> first,
                          std::span<const std::byte> second) {
  constexpr size_t kBlockBytes = 64;
  std::array<uint8_t, kBlockBytes> block{};
  if (key.size() > kBlockBytes) {
    const Sha256Digest shorter = Sha256().add(key).finish();
    std::ranges::copy(shorter, block.begin());
  } else {
    std::ranges::transform(key, block.begin(), [](char sign) { return uint8_t(sign); });
  }
  const auto mixed = [&](uint8_t with) {
    std::array<uint8_t, kBlockBytes> bytes = block;
    for (uint8_t& byte : bytes) byte ^= with;
    return bytes;
  };
  const auto inner_key = mixed(0x36), outer_key = mixed(0x5c);
  const Sha256Digest inner =
      Sha256().add(std::as_bytes(std::span(inner_key))).add(first).add(second).finish();
  return Sha256()
      .add(std::as_bytes(std::span(outer_key)))
      .add(std::as_bytes(std::span(inner)))
      .finish();
}

Secret::Secret(std::string secret)
    : secret_(std::move(secret)), key_beginning_(beginning_of_keys(secret_)) {}

std::string Secret::key_of(std::string_view kind, const Sha256Digest& digest) const {
  return fmt::format("{}{}{}", key_beginning_, kind, hex_of(digest));
}

std::string Secret::key_of(std::string_view kind, uint64_t number) const {
  return fmt::format("{}{}{:016x}", key_beginning_, kind, number);
}

// Of the digest of the record, so that its parts need not lie together.
Sha256Digest Secret::seal_of(const Sha256Digest& name,
                             std::span<const std::span<const std::byte>> parts) const {
  Sha256 sha;
  for (const std::span<const std::byte>& part : parts) sha.add(part);
  const Sha256Digest digest = sha.finish();
  return keyed_digest(secret_, std::as_bytes(std::span(name)), std::as_bytes(std::span(digest)));
}

Sha256Digest Secret::seal_of(std::string_view key, std::span<const std::byte> value) const {
  return keyed_digest(secret_, bytes_of_text(key), value);
}

// A name for each side: nobody's proof is the other one's.
Sha256Digest Secret::proof_of(Side side, const Sha256Digest& asker,
                              const Sha256Digest& lender) const {
  std::array<std::byte, 2 * sizeof(Sha256Digest)> numbers;
  std::ranges::copy(std::as_bytes(std::span(asker)), numbers.begin());
  std::ranges::copy(std::as_bytes(std::span(lender)), numbers.begin() + sizeof(Sha256Digest));
  const std::string_view name =
      side == Side::lender ? "cairn peer, who lends" : "cairn peer, who asks";
  return keyed_digest(secret_, bytes_of_text(name), numbers);
}

Sha256Digest new_number() {
  std::random_device device;
  Sha256 sha;
  for (int part = 0; part < 8; ++part) sha.add((uint64_t(device()) << 32) | device());
  return sha.finish();
}

}  // namespace cairn::tier
