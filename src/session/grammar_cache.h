// Compiled grammars by what they were compiled from: whoever asks for one that is there shares its
// automaton, and compiles nothing. What a request adds to it, states and masks, is each Matcher's
// own, so that no request's errors depend on what others have asked for. Invariant: what is kept
// has at most as many bytes as the limit says; of that, what was used last. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <set>

#include "base/function_ref.h"
#include "base/result.h"
#include "base/sha256.h"
#include "grammar/grammar.h"

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

  // The grammar of this key, the digest of all that `compile` reads; compiled on the caller's
  // thread where it is not there. Who asks while another thread compiles it waits for that.
  // Errors: compile's, which are not kept.
  Result<grammar::Grammar> get(const Sha256Digest& key,
                               FunctionRef<Result<grammar::Grammar>()> compile);

  GrammarCacheStats stats() const;

 private:
  struct Entry {
    Sha256Digest key;
    grammar::Grammar grammar;
  };
  using Entries = std::list<Entry>;

  void keep(const Sha256Digest& key, const grammar::Grammar& grammar);

  const size_t bytes_max_;
  mutable std::mutex mutex_;
  std::condition_variable compiled_;
  Entries entries_;  // The most recently used first.
  std::map<Sha256Digest, Entries::iterator> index_;
  std::set<Sha256Digest> compiling_;
  GrammarCacheStats stats_;
};

}  // namespace cairn::session
