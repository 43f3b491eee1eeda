// Compiling goes on without the lock; the least recently used are dropped.
#include "session/grammar_cache.h"

#include <utility>

#include "grammar/automaton.h"

namespace cairn::session {

namespace {

using grammar::Grammar;

// Small grammars are mostly what surrounds them.
size_t bytes_of(const Grammar& grammar) {
  constexpr size_t kKeys = 2 * (sizeof(Sha256Digest) + sizeof(uint64_t));
  constexpr size_t kAround = kKeys + sizeof(Grammar) + 16 * sizeof(void*);
  return kAround + sizeof(grammar::Automaton) + grammar.byte_size();
}

}  // namespace

Result<Grammar> GrammarCache::get(const Key& key, FunctionRef<Result<Grammar>()> compile) {
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

// While there is too much, somebody is above its share: all shares are not more than the limit.
void GrammarCache::keep(const Key& key, const Grammar& grammar) {
  entries_.push_front({key, grammar});
  index_[key] = entries_.begin();
  held_bytes_[key.tenant] += bytes_of(grammar);
  stats_.bytes += bytes_of(grammar);
  for (auto entry = entries_.end(); stats_.bytes > bytes_max_;) {
    --entry;
    size_t& held = held_bytes_[entry->key.tenant];
    if (!shares_.is_above(entry->key.tenant, held)) continue;
    stats_.bytes -= bytes_of(entry->grammar);
    held -= bytes_of(entry->grammar);
    if (held == 0) held_bytes_.erase(entry->key.tenant);
    index_.erase(entry->key);
    entry = entries_.erase(entry);
  }
}

void GrammarCache::set_shares(std::vector<uint64_t> tenants, double part) {
  const std::lock_guard lock(mutex_);
  shares_.set(std::move(tenants), part, bytes_max_);
}

Result<Grammar> TenantGrammars::get(const Sha256Digest& key,
                                    FunctionRef<Result<Grammar>()> compile) const {
  return cache_ == nullptr ? compile() : cache_->get({tenant_, key}, compile);
}

GrammarCacheStats GrammarCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace cairn::session
