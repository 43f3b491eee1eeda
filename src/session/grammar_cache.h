// Compiled grammars by what they were compiled from: whoever asks for one that is there shares its
// automaton, and compiles nothing. What a request adds to it, states and masks, is each Matcher's
// own, so that no request's errors depend on what others have asked for. What was compiled for one
// tenant is not there for another, who could tell by the time it takes; and where tenants have
// shares, what is within one is not dropped for others. Invariant: what is kept has at most as many
// bytes as the limit says; of that, what was used last. Thread-safe.
#pragma once

#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "base/sha256.h"
#include "grammar/grammar.h"
#include "memory/even_shares.h"

namespace cairn::session {

struct GrammarCacheStats {
  int64_t compiled = 0;  // How often a grammar was compiled, or turned out to be wrong.
  int64_t found = 0;     // How often one was there.
  size_t bytes = 0;      // Of those that are kept.
};

class GrammarCache {
 public:
  static constexpr size_t kBytesMax = size_t(64) << 20;

  explicit GrammarCache(size_t bytes_max = kBytesMax) : bytes_max_(bytes_max) {}

  // From now on each of these tenants keeps its share of the limit, whatever others compile.
  void set_shares(std::vector<uint64_t> tenants, double part);

  GrammarCacheStats stats() const;

 private:
  friend class TenantGrammars;
  struct Key {
    uint64_t tenant;
    Sha256Digest digest;

    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Entry {
    Key key;
    grammar::Grammar grammar;
  };
  using Entries = std::list<Entry>;

  Result<grammar::Grammar> get(const Key& key, FunctionRef<Result<grammar::Grammar>()> compile);
  void keep(const Key& key, const grammar::Grammar& grammar);

  const size_t bytes_max_;
  mutable std::mutex mutex_;
  std::condition_variable compiled_;
  Entries entries_;  // The most recently used first.
  std::map<Key, Entries::iterator> index_;
  std::set<Key> compiling_;
  std::map<uint64_t, size_t> held_bytes_;  // By tenant.
  memory::EvenShares shares_;
  GrammarCacheStats stats_;
};

// Those of a cache that were compiled for one tenant, or for everybody (0).
class TenantGrammars {
 public:
  TenantGrammars() = default;  // Nothing is kept.
  // The cache outlives it.
  explicit TenantGrammars(GrammarCache* cache, uint64_t tenant = 0)
      : cache_(cache), tenant_(tenant) {}

  // The grammar of this key, the digest of all that `compile` reads; compiled on the caller's
  // thread where it is not there. Who asks while another thread compiles it waits for that.
  // Errors: compile's, which are not kept.
  Result<grammar::Grammar> get(const Sha256Digest& key,
                               FunctionRef<Result<grammar::Grammar>()> compile) const;

 private:
  GrammarCache* cache_ = nullptr;
  uint64_t tenant_ = 0;
};

}  // namespace cairn::session
