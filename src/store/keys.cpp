// Chains, names and layout ids, each with a text before it that no other digest begins with.
#include "store/keys.h"

#include <cstring>

#include "memory/outline.h"

namespace cairn::store {
namespace {

std::span<const std::byte> bytes_of(const Sha256Digest& digest) {
  return std::as_bytes(std::span(digest));
}

// Token ids are u32 in little endian, whatever the machine.
void add_tokens(std::span<const Token> tokens, Sha256& sha) {
  std::array<uint8_t, 4 * kChainTokens> bytes;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint32_t id = uint32_t(index_of(tokens[i]));
    for (size_t byte = 0; byte < 4; ++byte) bytes[4 * i + byte] = uint8_t(id >> (8 * byte));
  }
  sha.add(std::as_bytes(std::span(bytes)).first(4 * tokens.size()));
}

Sha256Digest linked(const Sha256Digest& before, std::span<const Token> tokens) {
  Sha256 sha;
  sha.add(bytes_of(before));
  add_tokens(tokens, sha);
  return sha.finish();
}

}  // namespace

Chain::Chain(const Sha256Digest& fingerprint, std::span<const Token> tokens)
    : fingerprint_(fingerprint), tokens_(tokens) {
  const size_t link_count = tokens.size() / kChainTokens;
  keys_.reserve(link_count + 1);
  keys_.push_back(Sha256().add("cairn-chain/1").add(bytes_of(fingerprint)).finish());
  for (size_t index = 0; index < link_count; ++index) {
    keys_.push_back(linked(keys_.back(), tokens.subspan(index * kChainTokens, kChainTokens)));
  }
}

Sha256Digest Chain::key_at(int32_t position) const {
  const int32_t link_index = position / kChainTokens;
  const int32_t rest = position % kChainTokens;
  if (rest == 0) return link(link_index);
  return linked(link(link_index), tokens_.subspan(size_t(position - rest), size_t(rest)));
}

Sha256Digest name_of(const Sha256Digest& fingerprint, const Sha256Digest& key_at_end,
                     const NameSource& source) {
  Sha256 sha;
  sha.add("cairn/1").add(uint64_t(source.type));
  sha.add(bytes_of(fingerprint)).add(bytes_of(key_at_end)).add(bytes_of(source.content));
  sha.add(uint64_t(source.group)).add(uint64_t(source.begin)).add(uint64_t(source.end));
  return sha.add(uint64_t(source.layout)).finish();
}

uint32_t layout_id(const memory::Layout& layout) {
  Sha256 sha;
  sha.add("cairn-layout/1").add(uint64_t(kPageTokens)).add(uint64_t(kLogPageTokens));
  sha.add(uint64_t(layout.groups.size()));
  for (size_t group = 0; group < layout.groups.size(); ++group) {
    const memory::GroupSpec& spec = layout.groups[group];
    sha.add(uint64_t(spec.kind)).add(uint64_t(spec.window));
    const std::vector<memory::BlockPart> parts = block_parts(layout, int32_t(group));
    sha.add(uint64_t(parts.size()));
    for (const memory::BlockPart& part : parts) sha.add(uint64_t(part.bytes));
  }
  sha.add(uint64_t(layout.kv_planes.size()));
  for (const KvPlane& plane : layout.kv_planes) {
    sha.add(uint64_t(plane.group)).add(uint64_t(plane.kv_head_count));
    sha.add(uint64_t(plane.key_dim)).add(uint64_t(plane.value_dim));
    sha.add(uint64_t(plane.key_type)).add(uint64_t(plane.value_type));
    sha.add(uint64_t(plane.values_in_keys));
  }
  // The version of how a log's record is named, whose payload depends on where the log begins.
  if (!layout.log_planes.empty()) sha.add("log/2");
  for (const LogPlane& plane : layout.log_planes) sha.add(uint64_t(plane.width));
  for (const StateTensor& tensor : layout.state_tensors) sha.add(uint64_t(tensor.bytes));
  return uint32_t(short_key(sha.finish()));
}

uint64_t short_key(const Sha256Digest& digest) {
  uint64_t key = 0;
  for (size_t byte = 0; byte < sizeof key; ++byte) key |= uint64_t(digest[byte]) << (8 * byte);
  return key;
}

}  // namespace cairn::store
