// By which name the store knows what a variant has computed, of those that were used last: a client
// can ask for any scale of an adapter, so there is no end of variants. Thread rule: the engine's
// thread.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <utility>

#include "base/sha256.h"
#include "memory/variant.h"

namespace cairn {

class KnownFingerprints {
 public:
  // A server's tenants, with some selections of adapters each; about half a MiB.
  static constexpr size_t kCountMax = 4096;

  explicit KnownFingerprints(size_t count_max = kCountMax) : count_max_(count_max) {}

  // Null: it was never added, or long not used. Valid until the next add().
  const Sha256Digest* find(memory::Variant variant) {
    const auto found = by_variant_.find(variant);
    if (found == by_variant_.end()) return nullptr;
    last_used_first_.splice(last_used_first_.begin(), last_used_first_, found->second);
    return &found->second->digest;
  }
  // REQUIRES: it is not known.
  const Sha256Digest& add(memory::Variant variant, const Sha256Digest& digest) {
    if (by_variant_.size() >= count_max_) {
      by_variant_.erase(last_used_first_.back().variant);
      last_used_first_.pop_back();
    }
    last_used_first_.push_front({variant, digest});
    by_variant_.emplace(variant, last_used_first_.begin());
    return last_used_first_.front().digest;
  }
  size_t count() const { return by_variant_.size(); }

 private:
  struct Known {
    memory::Variant variant;
    Sha256Digest digest;
  };

  size_t count_max_;
  std::list<Known> last_used_first_;
  std::map<memory::Variant, std::list<Known>::iterator> by_variant_;
};

}  // namespace cairn
