// GreedyDual-Size (Cao and Irani, 1997): what can be evicted has a value, the tokens that its loss
// is expected to cost per byte that it frees, added to the clock at its entry's last use. The least
// is evicted first and sets the clock to its value, so that what is not used ages however valuable
// it is.
#include "memory/cache/eviction.h"

#include <algorithm>
#include <utility>

namespace cairn::memory {

namespace {

// A valuation takes some microseconds, changing an entry some tens of them: these numbers bound the
// pause.
constexpr int32_t kFirstValuationsMax = 64;  // In the first search, once something was found,
constexpr int32_t kValuationsMax = 4;        // and in the others.
constexpr int32_t kAgainMax = 32;            // In value_again(), of those that it knows of,
constexpr int32_t kOthersMax = 32;           // and of all.
constexpr int32_t kFineMax = 32;             // Entries changed before only ends are evicted.
constexpr int32_t kSlackMax = 16;            // Entries changed for more room than is wanted.

}  // namespace

void Eviction::add(CacheEntry& entry) {
  entry.credit = clock_;
  // Whoever gives an entry often still holds it and soon lets go.
  put(entry, valuation_.least(entry, &entries_->evictable()));
}

void Eviction::use(CacheEntry& entry) {
  entry.is_announced = false;
  queue_.erase(&entry);
  entry.rank.worth += clock_ - entry.credit;
  entry.credit = clock_;
  entry.rank.last_use = entry.last_use;
  queue_.insert(&entry);
}

void Eviction::forget(CacheEntry& entry) {
  // What the two have in common may be the other's own now.
  if (!entry.is_active) {
    CacheEntry* const other = PrefixTree::neighbour(entry).entry;
    if (other != nullptr && !other->is_pinned) overrated_.insert(other->id);
  }
  queue_.erase(&entry);
  overrated_.erase(entry.id);
}

size_t Eviction::available_bytes() const {
  const Usage usage = memory_->usage();
  return usage.budget_bytes - usage.used_bytes();
}

bool Eviction::make_room(CacheEntry& active, const Room& room) {
  active.credit = clock_;
  entries_->enter(active);
  const size_t available = available_bytes();
  const size_t missing = room.needed_bytes - std::min(available, room.needed_bytes);
  if (entries_->evictable().exclusive_bytes(missing) >= missing) {
    valuation_.start(&active);
    value(active);
    value_again();
    evict(room);
    valuation_.start(nullptr);
    forget(active);
  }
  entries_->leave(active);
  return available_bytes() >= room.needed_bytes;
}

void Eviction::evict(const Room& room) {
  const size_t goal = room.wanted_bytes + room.slack_bytes;
  int32_t valuations_max = kFirstValuationsMax;
  int32_t changed_count = 0;  // Of entries.
  for (bool is_fine = true; available_bytes() < room.wanted_bytes;) {
    if (is_fine && changed_count >= kFineMax) {
      is_fine = false;
      valuation_.only_ends = true;
      valuations_max = kFirstValuationsMax;
    }
    if (const std::optional<Candidate> least = search(valuations_max)) {
      changed_count += int32_t(least->holders.size());
      valuations_max = kValuationsMax;
      let_go(*least, goal - available_bytes());
    } else if (valuation_.only_ends) {
      valuation_.only_ends = false;  // There is no end left that would free anything.
    } else if (entries_->evictable().exclusive_bytes(1) == 0 || !drop_least_used()) {
      break;
    }
  }
  valuation_.spares_active = true;
  for (changed_count = 0; changed_count < kSlackMax && available_bytes() < goal;) {
    const std::optional<Candidate> least = search(kValuationsMax);
    if (!least) break;
    changed_count += int32_t(least->holders.size());
    let_go(*least, goal - available_bytes());
  }
}

// Places the entry in the queue by the least of what it has.
void Eviction::put(CacheEntry& entry, const std::optional<Candidate>& least) {
  using Tier = EvictionRank::Tier;
  queue_.erase(&entry);
  entry.rank = {.tier = entry.is_active ? Tier::active : Tier::held,
                .worth = entry.credit,
                .last_use = entry.last_use,
                .id = entry.id};
  if (least) entry.rank = least->rank;
  queue_.insert(&entry);
}

std::optional<Candidate> Eviction::value(CacheEntry& entry) {
  std::optional<Candidate> least = valuation_.least(entry);
  put(entry, least);
  if (entry.is_active) return least;
  const BlockCounts& evictable = entries_->evictable();
  const bool is_held = memory_->exclusive_bytes(entry.sequence) !=
                       memory_->exclusive_bytes(entry.sequence, &evictable);
  if (is_held || valuation_.only_ends) {
    overrated_.insert(entry.id);
  } else {
    overrated_.erase(entry.id);
  }
  return least;
}

// Nobody says when a sequence in use lets go of blocks, or when entries that shared some have gone:
// what that makes worth less is seen here.
void Eviction::value_again() {
  for (int32_t count = std::min(kAgainMax, int32_t(overrated_.size())); count > 0; --count) {
    if (overrated_.empty()) break;
    auto at = overrated_.upper_bound(overrated_cursor_);
    if (at == overrated_.end()) at = overrated_.begin();
    overrated_cursor_ = *at;
    value(entries_->all().at(*at));
  }
  std::map<int64_t, CacheEntry>& all = entries_->all();
  for (int32_t count = std::min(kOthersMax, int32_t(all.size())); count > 0; --count) {
    auto at = all.upper_bound(all_cursor_);
    if (at == all.end()) at = all.begin();
    all_cursor_ = at->first;
    if (!at->second.is_pinned) value(at->second);
  }
}

// What stands first may be worth more by now: it is valued again, until what stands first was
// valued in this search, or enough were.
std::optional<Candidate> Eviction::search(int32_t valuations_max) {
  ++search_count_;
  std::optional<Candidate> least;
  for (int32_t count = 0; !queue_.empty(); ++count) {
    CacheEntry& first = **queue_.begin();
    if (first.valued_in == search_count_ || (least && count >= valuations_max)) break;
    first.valued_in = search_count_;
    std::optional<Candidate> candidate = value(first);
    if (candidate && (!least || candidate->rank < least->rank)) least = std::move(candidate);
  }
  return least;
}

void Eviction::let_go(const Candidate& candidate, size_t wanted_bytes) {
  using Kind = Candidate::Kind;
  if (candidate.kind != Kind::live_state) announce(candidate);
  if (candidate.rank.tier == EvictionRank::Tier::valued) {
    clock_ = std::max(clock_, candidate.rank.worth);
  }
  CacheEntry& entry = *candidate.holders.front();
  if (candidate.kind == Kind::anchor) return drop_anchor(candidate);
  if (candidate.kind == Kind::end) return cut_end(entry, candidate.position, wanted_bytes);
  entries_->unlink(entry);
  if (candidate.kind == Kind::live_state) {
    memory_->suspend(entry.sequence);
  } else {
    memory_->protect_from(entry.sequence, entry.sequence.length());
  }
  entries_->link(entry);
  value(entry);
}

void Eviction::drop_anchor(const Candidate& candidate) {
  for (CacheEntry* const entry : candidate.holders) {
    entries_->unlink(*entry);
    const std::span<const Anchor> anchors = entry->sequence.anchors();
    const auto anchor = std::find_if(anchors.begin(), anchors.end(), [&](const Anchor& each) {
      return each.position == candidate.position;
    });
    const Status dropped = memory_->drop_anchor(entry->sequence, size_t(anchor - anchors.begin()));
    DCHECK(dropped);  // Anchors that suspended sequences replay from are no candidates.
    entries_->link(*entry);
    valuation_.remember_losses(*entry);
  }
  for (CacheEntry* const entry : candidate.holders) value(*entry);
}

// Cuts off as little as frees wanted_bytes; removes an entry of which nothing of its own would be
// left.
void Eviction::cut_end(CacheEntry& entry, int32_t branch, size_t wanted_bytes) {
  const auto freed_bytes = [&](int32_t position) {
    const Result<Sequence> shorter = memory_->at(entry.sequence, position);
    DCHECK(shorter);
    return memory_->exclusive_bytes(entry.sequence);
  };
  int32_t kept = branch, end = entry.sequence.length();  // kept frees enough, end does not.
  if (freed_bytes(kept) < wanted_bytes) return remove(entry);
  while (kept + 1 < end) {
    const int32_t middle = kept + (end - kept) / 2;
    (freed_bytes(middle) >= wanted_bytes ? kept : end) = middle;
  }
  Result<Sequence> shorter = memory_->at(entry.sequence, kept);
  if (!shorter || (*shorter).length() <= std::max(branch, kPageTokens)) return remove(entry);
  entries_->unlink(entry);
  entry.sequence = std::move(shorter).value();
  std::erase_if(entry.places,
                [&](const Place& place) { return place.position > entry.sequence.length(); });
  entries_->link(entry);
  value(entry);
}

// A whole entry, where nothing that can be evicted would free anything alone.
bool Eviction::drop_least_used() {
  if (queue_.empty() || (*queue_.begin())->is_active) return false;
  CacheEntry& entry = **queue_.begin();
  announce({.holders = {&entry}});
  clock_ = std::max(clock_, entry.credit);
  remove(entry);
  return true;
}

void Eviction::remove(CacheEntry& entry) {
  forget(entry);
  entries_->remove(entry);
}

// What several entries hold was told with any of them, as long as it has not been used since: the
// whole of it was there then.
void Eviction::announce(const Candidate& candidate) {
  if (!announce_) return;
  CacheEntry* latest = nullptr;
  for (CacheEntry* const holder : candidate.holders) {
    if (holder->is_announced) return;
    if (holder->is_active) continue;
    if (latest == nullptr || holder->last_use > latest->last_use) latest = holder;
  }
  if (latest == nullptr) return;
  latest->is_announced = true;
  announce_(latest->sequence);
}

}  // namespace cairn::memory
