// Bytes and seals.
#include "tier/peers/directory.h"

#include <utility>

#include "base/check.h"
#include "base/constant_time.h"
#include "base/text/byte_text.h"
#include "store/bytes.h"

namespace cairn::tier {
namespace {

std::vector<std::byte> with_seal(const Secret& secret, std::string_view key,
                                 store::ByteWriter value) {
  value.digest(secret.seal_of(key, value.bytes()));
  return std::move(value).take();
}

// What stands before the seal; none where that is another's.
std::optional<std::span<const std::byte>> sealed(const Secret& secret, std::string_view key,
                                                 std::span<const std::byte> value) {
  if (value.size() <= kSealBytes) return std::nullopt;
  const auto content = value.first(value.size() - kSealBytes);
  const Sha256Digest seal = secret.seal_of(key, content);
  if (!is_equal_in_constant_time(seal, value.last(kSealBytes))) return std::nullopt;
  return content;
}

}  // namespace

std::vector<std::byte> encode_holders(const Secret& secret, std::string_view key,
                                      std::span<const Holder> holders) {
  CHECK(!holders.empty() && holders.size() <= kHoldersMax);
  store::ByteWriter value;
  for (const Holder& holder : holders) {
    value.u64(holder.node);
    value.digest(holder.manifest);
  }
  return with_seal(secret, key, std::move(value));
}

std::vector<Holder> decode_holders(const Secret& secret, std::string_view key,
                                   std::span<const std::byte> value) {
  std::vector<Holder> holders;
  if (value.size() > kHoldersBytesMax) return holders;
  const auto content = sealed(secret, key, value);
  if (!content || content->size() % kHolderBytes != 0) return holders;
  store::ByteReader reader(*content);
  while (reader.left() > 0) {
    Holder& holder = holders.emplace_back();
    holder.node = reader.u64();
    holder.manifest = reader.digest();
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
  store::ByteWriter value;
  value.raw(bytes_of_text(address));
  return with_seal(secret, key, std::move(value));
}

std::optional<std::string> decode_node(const Secret& secret, std::string_view key,
                                       std::span<const std::byte> value) {
  if (value.size() > kNodeBytesMax) return std::nullopt;
  const auto content = sealed(secret, key, value);
  if (!content) return std::nullopt;
  return std::string(as_text(*content));
}

}  // namespace cairn::tier
