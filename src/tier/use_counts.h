// How often beginnings of prompts were used: what was used once is not sent to a tier, since most
// of it never comes again. Old ones are forgotten. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "store/keys.h"

namespace cairn::tier {

class UseCounts {
 public:
  explicit UseCounts(size_t newest_max = size_t(1) << 17) : newest_max_(newest_max) {}

  // A prompt of these tokens, so many of them. Returns up to where it was used before.
  int32_t add_prompt(const store::Chain& chain, int32_t length);
  // An answer's end: what is new of it was used for the first time.
  void add_answer(const store::Chain& chain, int32_t length);

 private:
  int32_t add(const Sha256Digest& key, bool counts_again);

  size_t newest_max_;
  // By the first bytes of a chain's key: the newest, and those of before.
  std::unordered_map<uint64_t, int32_t> newest_, older_;
};

}  // namespace cairn::tier
