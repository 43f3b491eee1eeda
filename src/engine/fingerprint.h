// What decides the bits of all that an engine computes, in one digest: two engines of one
// fingerprint may use each other's states, pages and logits; of two fingerprints they never may.
// Everything that changes a bit is a member of BitSources, and nothing else is: not the context's
// length, threads, batches or, under exact-1, the instruction set. Thread-safe: constant.
#pragma once

#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "base/sha256.h"
#include "device/numerics.h"
#include "device/page_format.h"
#include "memory/variant.h"
#include "models/program.h"

namespace cairn {

constexpr std::string_view kKvTypeNames[] = {"f32", "f16", "bf16", "q8_0", "q4_0"};  // By KvType.
static_assert(int(KvType::q4_0) + 1 == std::size(kKvTypeNames));
constexpr std::string_view name(KvType type) {
  return kKvTypeNames[size_t(type)];
}

struct AdapterSource {
  Sha256Digest adapter;  // Adapter::digest().
  float scale;
};

struct BitSources {
  Sha256Digest model{};  // gguf::File::identity().
  Numerics numerics = Numerics::exact_1;
  std::string_view isa;  // Counts under fast-1 alone.
  KvType key_type = KvType::f16;
  KvType value_type = KvType::f16;
  std::span<const AdapterSource> adapters;   // In the order in which they are added up.
  const models::Program* program = nullptr;  // Null: the model itself, as the default program.
};

class Fingerprint {
 public:
  static Fingerprint of(const BitSources& sources);

  const Sha256Digest& digest() const { return digest_; }
  std::string text() const { return hex_of(digest_); }
  // Its first bytes: enough among the sequences of one engine. Never `plain`.
  memory::Variant variant() const;

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;

 private:
  explicit Fingerprint(const Sha256Digest& digest) : digest_(digest) {}

  Sha256Digest digest_;
};

}  // namespace cairn
