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

void Eviction::enqueue(CacheEntry& entry) {
  queues_[entry.sequence.variant().tenant].insert(&entry);
}

// Where it stands in the queue, or not.
void Eviction::dequeue(CacheEntry& entry) {
  const auto found = queues_.find(entry.sequence.variant().tenant);
  if (found == queues_.end()) return;
  found->second.erase(&entry);
  if (found->second.empty()) queues_.erase(found);
}

// Who asks takes what it asks for, which may be more than its share.
bool Eviction::is_asked(uint64_t tenant) const {
  if (turn_ == Turn::anyone) return true;
  const bool asks = tenant == asking_tenant_;
  return (asks && turn_ == Turn::own) || shares_.is_above(tenant, asks ? asked_bytes_ : 0);
}

// Of those that are asked; null: there is none.
CacheEntry* Eviction::first() const {
  CacheEntry* first = nullptr;
  for (const auto& [tenant, queue] : queues_) {
    CacheEntry* const one = *queue.begin();
    const bool is_less = first == nullptr || one->rank < first->rank;
    if (is_less && is_asked(tenant)) first = one;
  }
  return first;
}

void Eviction::use(CacheEntry& entry) {
  entry.is_announced = false;
  dequeue(entry);
  entry.rank.worth += clock_ - entry.credit;
  entry.credit = clock_;
  entry.rank.last_use = entry.last_use;
  enqueue(entry);
}

void Eviction::forget(CacheEntry& entry) {
  // What the two have in common may be the other's own now.
  if (!entry.is_active) {
    CacheEntry* const other = PrefixTree::neighbour(entry).entry;
    if (other != nullptr && !other->is_pinned) overrated_.insert(other->id);
  }
  dequeue(entry);
  overrated_.erase(entry.id);
}

size_t Eviction::available_bytes() const {
  const Usage usage = memory_->usage();
  return usage.budget_bytes - usage.used_bytes();
}

bool Eviction::make_room(CacheEntry& active, const Room& room) {
  active.credit = clock_;
  asking_tenant_ = active.sequence.variant().tenant;
  entries_->enter(active);
  const size_t available = available_bytes();
  const size_t missing = room.needed_bytes - std::min(available, room.needed_bytes);
  asked_bytes_ = room.wanted_bytes - std::min(available, room.wanted_bytes);
  if (has_enough(room, missing)) {
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

// Whether so many bytes can be evicted at all.
bool Eviction::has_enough(const Room& room, size_t missing) const {
  const BlockCounts& evictable = entries_->evictable();
  if (!shares_.are_set() || !room.spares_shares) {
    return evictable.exclusive_bytes(missing) >= missing;
  }
  return shares_.evictable_bytes(asking_tenant_, evictable) >= missing;
}

// Whether those that are asked have anything that would be free.
bool Eviction::has_evictable() const {
  const BlockCounts& evictable = entries_->evictable();
  if (turn_ == Turn::anyone) return evictable.exclusive_bytes(1) > 0;
  if (first() == nullptr) return false;
  const std::vector<size_t> bytes = evictable.exclusive_bytes_by_account();
  return std::ranges::any_of(queues_, [&](const auto& queue) {
    const int32_t account = memory_->ledger().account_of(queue.first);
    return account >= 0 && size_t(account) < bytes.size() && bytes[size_t(account)] > 0 &&
           is_asked(queue.first);
  });
}

void Eviction::evict(const Room& room) {
  const size_t goal = room.wanted_bytes + room.slack_bytes;
  const bool has_shares = shares_.are_set();
  const Turn last_turn = has_shares && room.spares_shares ? Turn::own : Turn::anyone;
  turn_ = has_shares ? Turn::above_share : Turn::anyone;
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
      const bool takes_shares = has_shares && turn_ == Turn::anyone;
      let_go(*least, wanted_of(*least, takes_shares ? room.wanted_bytes : goal));
    } else if (valuation_.only_ends) {
      valuation_.only_ends = false;  // There is no end left that would free anything.
    } else if (!has_evictable() || !drop_least_used()) {
      if (turn_ == last_turn) break;
      turn_ = Turn(int(turn_) + 1);
      valuation_.only_ends = !is_fine;
      valuations_max = kFirstValuationsMax;
    }
  }
  if (has_shares) turn_ = Turn::own;
  evict_slack(goal);
  turn_ = Turn::anyone;
}

void Eviction::evict_slack(size_t goal) {
  valuation_.spares_active = true;
  for (int32_t changed_count = 0; changed_count < kSlackMax && available_bytes() < goal;) {
    const std::optional<Candidate> least = search(kValuationsMax);
    if (!least) break;
    changed_count += int32_t(least->holders.size());
    let_go(*least, wanted_of(*least, goal));
  }
}

// How much of the candidate's end goes until so many bytes are available: of another tenant no more
// than what is above its share, unless all that is has gone.
size_t Eviction::wanted_of(const Candidate& candidate, size_t bytes) const {
  const size_t wanted = bytes - available_bytes();
  const uint64_t tenant = candidate.holders.front()->sequence.variant().tenant;
  if (turn_ == Turn::anyone || tenant == asking_tenant_) return wanted;
  return std::min(wanted, shares_.excess(tenant));
}

// Places the entry in the queue by the least of what it has.
void Eviction::put(CacheEntry& entry, const std::optional<Candidate>& least) {
  using Tier = EvictionRank::Tier;
  dequeue(entry);
  entry.rank = {.tier = entry.is_active ? Tier::active : Tier::held,
                .worth = entry.credit,
                .last_use = entry.last_use,
                .id = entry.id};
  if (least) entry.rank = least->rank;
  enqueue(entry);
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
  for (int32_t count = 0;; ++count) {
    CacheEntry* const next = first();
    if (next == nullptr || next->valued_in == search_count_) break;
    if (least && count >= valuations_max) break;
    next->valued_in = search_count_;
    std::optional<Candidate> candidate = value(*next);
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
    count_evicted(*anchor);
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
  count_evicted(entry, (*shorter).length());
  entry.sequence = std::move(shorter).value();
  std::erase_if(entry.places,
                [&](const Place& place) { return place.position > entry.sequence.length(); });
  entries_->link(entry);
  value(entry);
}

// A whole entry, where nothing that can be evicted would free anything alone.
bool Eviction::drop_least_used() {
  CacheEntry* const least_used = first();
  if (least_used == nullptr || least_used->is_active) return false;
  CacheEntry& entry = *least_used;
  announce({.holders = {&entry}});
  clock_ = std::max(clock_, entry.credit);
  remove(entry);
  return true;
}

void Eviction::remove(CacheEntry& entry) {
  count_evicted(entry, 0);
  forget(entry);
  entries_->remove(entry);
}

void Eviction::count_evicted(const Anchor& anchor) {
  if (anchor.kind != AnchorKind::tail) ++memory_->snapshot_counts().evicted;
}

// All that the entry has behind a position.
void Eviction::count_evicted(const CacheEntry& entry, int32_t begin) {
  for (const Anchor& anchor : entry.sequence.anchors()) {
    if (anchor.position > begin) count_evicted(anchor);
  }
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
