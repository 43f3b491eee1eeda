// Compiling goes on without the lock; the least recently used are dropped.
#include "session/grammar_cache.h"

#include "grammar/automaton.h"

namespace cairn::session {

namespace {

using grammar::Grammar;

// Small grammars are mostly what surrounds them.
size_t bytes_of(const Grammar& grammar) {
  constexpr size_t kAround = 2 * sizeof(Sha256Digest) + sizeof(Grammar) + 16 * sizeof(void*);
  return kAround + sizeof(grammar::Automaton) + grammar.byte_size();
}

}  // namespace

Result<Grammar> GrammarCache::get(const Sha256Digest& key, FunctionRef<Result<Grammar>()> compile) {
  std::unique_lock lock(mutex_);
  compiled_.wait(lock, [&] { return !compiling_.contains(key); });
  if (const auto known = index_.find(key); known != index_.end()) {
    ++stats_.found;
    entries_.splice(entries_.begin(), entries_, known->second);
    return entries_.front().grammar;
  }
  compiling_.insert(key);
  ++stats_.compiled;
  lock.unlock();
  Result<Grammar> made = compile();
  lock.lock();
  if (made) keep(key, *made);
  compiling_.erase(key);
  compiled_.notify_all();
  return made;
}

void GrammarCache::keep(const Sha256Digest& key, const Grammar& grammar) {
  entries_.push_front({key, grammar});
  index_[key] = entries_.begin();
  stats_.bytes += bytes_of(grammar);
  while (stats_.bytes > bytes_max_) {
    const Entry& last = entries_.back();
    stats_.bytes -= bytes_of(last.grammar);
    index_.erase(last.key);
    entries_.pop_back();
  }
}

GrammarCacheStats GrammarCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace cairn::session
