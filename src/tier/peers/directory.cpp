// Bytes and seals.
#include "tier/peers/directory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::tier {
namespace {

void add_seal(const Secret& secret, std::string_view key, std::vector<std::byte>& value) {
  const Sha256Digest seal = secret.seal_of(key, value);
  const auto bytes = std::as_bytes(std::span(seal));
  value.insert(value.end(), bytes.begin(), bytes.end());
}

// What stands before the seal; none where that is another's.
std::optional<std::span<const std::byte>> sealed(const Secret& secret, std::string_view key,
                                                 std::span<const std::byte> value) {
  if (value.size() <= kSealBytes) return std::nullopt;
  const auto content = value.first(value.size() - kSealBytes);
  const Sha256Digest seal = secret.seal_of(key, content);
  if (!are_equal(std::as_bytes(std::span(seal)), value.last(kSealBytes))) return std::nullopt;
  return content;
}

}  // namespace

std::vector<std::byte> encode_holders(const Secret& secret, std::string_view key,
                                      std::span<const Holder> holders) {
  CHECK(!holders.empty() && holders.size() <= kHoldersMax);
  std::vector<std::byte> value;
  for (const Holder& holder : holders) {
    for (int shift = 0; shift < 64; shift += 8) value.push_back(std::byte(holder.node >> shift));
    const auto manifest = std::as_bytes(std::span(holder.manifest));
    value.insert(value.end(), manifest.begin(), manifest.end());
  }
  add_seal(secret, key, value);
  return value;
}

std::vector<Holder> decode_holders(const Secret& secret, std::string_view key,
                                   std::span<const std::byte> value) {
  std::vector<Holder> holders;
  if (value.size() > kHoldersBytesMax) return holders;
  const auto content = sealed(secret, key, value);
  if (!content || content->size() % kHolderBytes != 0) return holders;
  for (size_t place = 0; place < content->size(); place += kHolderBytes) {
    Holder holder;
    for (int byte = 0; byte < 8; ++byte) {
      holder.node |= uint64_t((*content)[place + size_t(byte)]) << (8 * byte);
    }
    std::ranges::transform(content->subspan(place + 8, sizeof(Sha256Digest)),
                           holder.manifest.begin(), [](std::byte byte) { return uint8_t(byte); });
    holders.push_back(holder);
  }
  return holders;
}

std::vector<Holder> with_newest(const Holder& newest, std::span<const Holder> others) {
  std::vector<Holder> holders = {newest};
  for (const Holder& other : others) {
    if (other.node != newest.node && holders.size() < kHoldersMax) holders.push_back(other);
  }
  return holders;
}

std::vector<std::byte> encode_node(const Secret& secret, std::string_view key,
                                   std::string_view address) {
  CHECK(!address.empty() && address.size() <= kNodeAddressBytesMax);
  const auto bytes = std::as_bytes(std::span(address));
  std::vector<std::byte> value(bytes.begin(), bytes.end());
  add_seal(secret, key, value);
  return value;
}

std::optional<std::string> decode_node(const Secret& secret, std::string_view key,
                                       std::span<const std::byte> value) {
  if (value.size() > kNodeBytesMax) return std::nullopt;
  const auto content = sealed(secret, key, value);
  if (!content) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(content->data()), content->size());
}

}  // namespace cairn::tier
