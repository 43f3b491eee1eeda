// Tokens that a loss is expected to cost, for each byte that it frees.
#include "memory/cache/valuation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "memory/common_prefix.h"

namespace cairn::memory {

namespace {

// A token that is read alone, for its logits, takes about as long as so many that are read
// together.
constexpr double kLoneTokenCost = 8;

bool has_windows(const Layout& layout) {
  return std::any_of(layout.groups.begin(), layout.groups.end(),
                     [](const GroupSpec& group) { return group.has_window(); });
}

// The only anchor from which the log derives the end, or the anchors' count.
size_t base_of_log(const Sequence& sequence) {
  const std::span<const Anchor> anchors = sequence.anchors();
  if (sequence.log_begin() == 0 || sequence.log_begin() == sequence.length()) return anchors.size();
  size_t base = anchors.size();
  for (size_t index = 0; index < anchors.size(); ++index) {
    if (!anchors[index].state || anchors[index].position < sequence.log_begin()) continue;
    if (base != anchors.size()) return anchors.size();  // There are two.
    base = index;
  }
  return base;
}

// What dropping each anchor costs in tokens, on average: those to go back to the point before it,
// where nothing else can be resumed between them, and one read alone for its hidden row.
std::vector<double> anchor_losses(const Memory& memory, const Sequence& sequence,
                                  const TargetMass& mass) {
  const bool is_recurrent = memory.layout().recurrent_group >= 0;
  const bool is_windowed = has_windows(memory.layout());
  const std::span<const Anchor> anchors = sequence.anchors();
  std::vector<ResumePoint> points;
  std::vector<size_t> point_of(anchors.size(), SIZE_MAX);
  for (size_t index = 0; index < anchors.size(); ++index) {
    const int32_t position = anchors[index].position;
    const bool is_needed = is_recurrent ? bool(anchors[index].state)
                                        : is_windowed && position < sequence.protected_from();
    if (!is_needed) continue;
    point_of[index] = points.size();
    points.push_back({.position = position});
  }
  if (points.empty() || points.back().position < sequence.length()) {
    points.push_back({.position = sequence.length()});
  }
  std::vector<double> losses;
  for (size_t index = 0; index < anchors.size(); ++index) {
    const int32_t position = anchors[index].position;
    losses.push_back(kLoneTokenCost * mass.between(position, position + 1));
    if (point_of[index] != SIZE_MAX) losses.back() += loss(mass, points, point_of[index]);
  }
  return losses;
}

// What no longer being able to resume anywhere behind protected_from() costs: half the gap between
// the anchors that remain. Recurrent layers resume at anchors only.
double window_loss(const Memory& memory, const Sequence& sequence, const TargetMass& mass) {
  if (memory.layout().recurrent_group >= 0) return 0;
  double sum = 0;
  int32_t before = 0;
  const auto add_gap = [&](int32_t position) {
    const int32_t from = std::max(before, sequence.protected_from());
    if (from < position) sum += mass.between(from + 1, position) * (position - before) / 2;
    before = position;
  };
  for (const Anchor& anchor : sequence.anchors()) add_gap(anchor.position);
  add_gap(sequence.length());
  return sum;
}

// The index of the anchor at a position. REQUIRES: there is one.
size_t anchor_index(const Sequence& sequence, int32_t position) {
  const std::span<const Anchor> anchors = sequence.anchors();
  const auto at = std::lower_bound(
      anchors.begin(), anchors.end(), position,
      [](const Anchor& anchor, int32_t wanted) { return anchor.position < wanted; });
  return size_t(at - anchors.begin());
}

}  // namespace

void Valuation::remember_losses(CacheEntry& entry) const {
  remember_losses(entry, TargetMass(*habits_, entry.places, entry.sequence.length()));
}

void Valuation::remember_losses(CacheEntry& entry, const TargetMass& mass) const {
  entry.anchor_losses = anchor_losses(*memory_, entry.sequence, mass);
  entry.base_anchor = base_of_log(entry.sequence);
}

std::optional<Candidate> Valuation::least(CacheEntry& entry, const BlockCounts* among) const {
  const Sequence& sequence = entry.sequence;
  const TargetMass mass(*habits_, entry.places, sequence.length());
  remember_losses(entry, mass);
  if (!entry.is_active && memory_->can_suspend(sequence, among)) {
    return candidate(Candidate::Kind::live_state, entry, EvictionRank::Tier::live_state, 0);
  }
  std::optional<Candidate> least;
  const auto offer = [&](std::optional<Candidate> other) {
    if (other && (!least || other->rank < least->rank)) least = std::move(other);
  };
  if (!entry.is_active) offer(of_end(entry, mass, among));
  if (only_ends) return least;
  if (!entry.is_active) offer(of_window(entry, mass, among));
  for (size_t anchor = 0; anchor < sequence.anchors().size(); ++anchor) {
    offer(of_anchor(entry, anchor, among));
  }
  return least;
}

Candidate Valuation::candidate(Candidate::Kind kind, CacheEntry& entry, EvictionRank::Tier tier,
                               double density) {
  return {.kind = kind,
          .rank = {tier, entry.credit + density, entry.last_use, entry.id},
          .holders = {&entry}};
}

// An anchor that branches share is worth what it is to the one that needs it most, and goes from
// all of them at once.
std::optional<Candidate> Valuation::of_anchor(CacheEntry& entry, size_t index,
                                              const BlockCounts* among) const {
  using Tier = EvictionRank::Tier;
  const Anchor& anchor = entry.sequence.anchors()[index];
  Candidate found = candidate(Candidate::Kind::anchor, entry, Tier::valued, 0);
  found.position = anchor.position;
  if (anchor.state || anchor.hidden) {
    found.holders = entries_->holders(anchor, kHoldersMax + 1);
    if (found.holders.size() > kHoldersMax) return std::nullopt;
  }
  // Alone, it may also be the only one to need some pages of windows.
  const size_t bytes = found.holders.size() == 1
                           ? memory_->anchor_exclusive_bytes(entry.sequence, index, among)
                           : shared_bytes(anchor, found.holders, among);
  if (bytes == 0) return std::nullopt;
  found.rank.worth = 0;
  for (const CacheEntry* const holder : found.holders) {
    if (holder->is_pinned || (holder->is_active && spares_active)) return std::nullopt;
    const size_t own = anchor_index(holder->sequence, anchor.position);
    const bool is_base = own == holder->base_anchor;
    if (is_base && memory_->needs_replay(holder->sequence)) return std::nullopt;
    if (is_base) found.rank.tier = Tier::last_resort;
    const double density = holder->anchor_losses[own] / double(bytes);
    found.rank.worth = std::max(found.rank.worth, holder->credit + density);
  }
  return found;
}

// What is free once an anchor has gone from all of its holders.
size_t Valuation::shared_bytes(const Anchor& anchor, std::span<CacheEntry* const> holders,
                               const BlockCounts* among) const {
  int32_t state_refs = 0, hidden_refs = 0;
  for (const CacheEntry* const holder : holders) {
    const Anchor& own = holder->sequence.anchors()[anchor_index(holder->sequence, anchor.position)];
    state_refs += int32_t(own.state && own.state.block() == anchor.state.block());
    hidden_refs += int32_t(own.hidden && own.hidden.block() == anchor.hidden.block());
  }
  const Layout& layout = memory_->layout();
  const auto bytes_of = [&](int32_t group, const BlockRef& ref, int32_t refs) {
    const bool is_exclusive = ref && ref_count(group, ref, among) == refs;
    return is_exclusive ? layout.groups[size_t(group)].block_bytes : 0;
  };
  return bytes_of(layout.recurrent_group, anchor.state, state_refs) +
         bytes_of(layout.hidden_group, anchor.hidden, hidden_refs);
}

std::optional<Candidate> Valuation::of_window(CacheEntry& entry, const TargetMass& mass,
                                              const BlockCounts* among) const {
  const Sequence& sequence = entry.sequence;
  if (!has_windows(memory_->layout()) || sequence.protected_from() >= sequence.length()) return {};
  // While the changed copy exists, the blocks that only the original refers to are what the change
  // frees. `among` does not count the copy.
  Sequence changed = sequence;
  memory_->protect_from(changed, sequence.length());
  size_t bytes = memory_->exclusive_bytes(sequence, among);
  if (among != nullptr) bytes -= memory_->exclusive_bytes(changed, among);
  if (bytes == 0) return std::nullopt;
  return candidate(Candidate::Kind::window, entry, EvictionRank::Tier::valued,
                   window_loss(*memory_, sequence, mass) / double(bytes));
}

// Behind the prefix that it shares with others, losing an entry costs computing its tokens again.
std::optional<Candidate> Valuation::of_end(CacheEntry& entry, const TargetMass& mass,
                                           const BlockCounts* among) const {
  const size_t bytes = memory_->exclusive_bytes(entry.sequence, among);
  if (bytes == 0) return std::nullopt;
  int32_t branch = PrefixTree::neighbour(entry).shared;
  if (active_ != nullptr) {
    branch = std::max(branch, common_prefix(entry.sequence, active_->sequence));
  }
  const int32_t length = entry.sequence.length();
  const double tokens = mass.between(branch, length + 1) * (length - branch);
  // Rounded to powers of two, so that between sequences that are worth about the same it is the
  // last use that decides, and not how full their last pages are.
  const double density = std::exp2(std::round(std::log2(tokens / double(bytes))));
  Candidate found = candidate(Candidate::Kind::end, entry, EvictionRank::Tier::valued, density);
  found.position = branch;
  return found;
}

}  // namespace cairn::memory
