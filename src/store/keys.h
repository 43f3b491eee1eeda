// Names of what is stored: digests of what decides its bytes, so that a look-up needs no index and
// equal names are equal bytes. A key of a chain stands for all tokens up to a position, under one
// fingerprint. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/sha256.h"
#include "memory/layout.h"

namespace cairn::store {

inline constexpr int32_t kChainTokens = 32;  // Of a link of the chain.

// The keys of one list of tokens: link i stands for the first 32 i tokens.
class Chain {
 public:
  Chain(const Sha256Digest& fingerprint, std::span<const Token> tokens);

  const Sha256Digest& fingerprint() const { return fingerprint_; }
  int32_t link_count() const { return int32_t(keys_.size()) - 1; }  // Without the first.
  const Sha256Digest& link(int32_t index) const { return keys_[size_t(index)]; }
  // Of any position of the list. REQUIRES: the tokens it was made of live.
  Sha256Digest key_at(int32_t position) const;

 private:
  Sha256Digest fingerprint_;
  std::span<const Token> tokens_;
  std::vector<Sha256Digest> keys_;
};

// What a name is made of, beside the chain.
struct NameSource {
  uint16_t type = 0;
  int32_t group = 0, begin = 0, end = 0;
  uint32_t layout = 0;
  Sha256Digest content{};  // Of manifests; else zeros: what decides the bytes is in the key.
};
Sha256Digest name_of(const Sha256Digest& fingerprint, const Sha256Digest& key_at_end,
                     const NameSource& source);

// Everything that decides how a group's blocks lie in a payload. Two layouts of one id exchange
// payloads; a change of how a backend lays out pages needs another version in it.
uint32_t layout_id(const memory::Layout& layout);

// The first eight bytes, for tables.
uint64_t short_key(const Sha256Digest& digest);

}  // namespace cairn::store
