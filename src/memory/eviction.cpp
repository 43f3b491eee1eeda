// GreedyDual-Size (Cao and Irani, 1997): what can be evicted has a value, the tokens that its loss
// is expected to cost per byte that it frees, added to the clock at its entry's last use. The least
// is evicted first and sets the clock to its value, so that what is not used ages however valuable
// it is.
#include "memory/eviction.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "memory/common_prefix.h"
#include "memory/exclusive_blocks.h"

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

// The positions of the anchors on both sides of the one at `position`.
std::vector<int32_t> neighbours(const Sequence& sequence, int32_t position) {
  const std::span<const Anchor> anchors = sequence.anchors();
  std::vector<int32_t> positions;
  for (size_t index = 0; index < anchors.size(); ++index) {
    if (anchors[index].position != position) continue;
    if (index > 0) positions.push_back(anchors[index - 1].position);
    if (index + 1 < anchors.size()) positions.push_back(anchors[index + 1].position);
  }
  return positions;
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

}  // namespace

size_t Eviction::available_bytes() const {
  const Usage usage = memory_->usage();
  return usage.budget_bytes - usage.used_bytes();
}

// What closing all inactive entries and dropping all anchors would free.
size_t Eviction::evictable_bytes() const {
  ExclusiveBlocks exclusive;
  for (const CacheEntry& entry : entries_) {
    if (entry.is_active) {
      exclusive.add_anchors(entry.sequence);
    } else {
      exclusive.add(entry.sequence);
    }
  }
  return exclusive.exclusive_bytes();
}

bool Eviction::make_room(const Room& room) {
  if (available_bytes() + evictable_bytes() < room.needed_bytes) return false;
  for (CacheEntry& entry : entries_) {
    if (!entry.is_active) memory_->suspend(entry.sequence);
  }
  while (available_bytes() < room.wanted_bytes + room.slack_bytes) {
    if (let_go_of_least(room)) continue;
    // What kept sequences have in common only becomes free when some of them have gone.
    if (available_bytes() >= room.wanted_bytes || evictable_bytes() == 0) break;
    if (!drop_least_used()) break;
  }
  return available_bytes() >= room.needed_bytes;
}

// Goes once through everything that could go. With an anchor its neighbours become worth more: they
// wait for the next round, and so does whatever is worth more than anchors that wait.
bool Eviction::let_go_of_least(const Room& room) {
  std::vector<Candidate> list = candidates();
  const auto last_use = [&](const Candidate& candidate) {
    return entries_[candidate.entries.front()].last_use;
  };
  std::sort(list.begin(), list.end(), [&](const Candidate& a, const Candidate& b) {
    return std::tuple(a.is_last_resort, a.worth, last_use(a)) <
           std::tuple(b.is_last_resort, b.worth, last_use(b));
  });
  const size_t goal = room.wanted_bytes + room.slack_bytes;
  const size_t available_before = available_bytes();
  std::set<std::pair<size_t, int32_t>> waiting;  // Sequence and position.
  for (const Candidate& candidate : list) {
    const size_t available = available_bytes();
    if (available >= goal) break;
    if (candidate.is_active && available >= room.wanted_bytes) continue;
    if (candidate.kind != Candidate::Kind::anchor && available > available_before) break;
    const std::vector<size_t>& entries = candidate.entries;
    const bool waits = std::any_of(entries.begin(), entries.end(), [&](size_t index) {
      return waiting.count({index, candidate.position}) > 0;
    });
    if (waits) continue;
    for (const size_t index : entries) {
      for (const int32_t position : neighbours(entries_[index].sequence, candidate.position)) {
        waiting.insert({index, position});
      }
    }
    let_go(candidate, goal - available);
    if (!candidate.is_last_resort) *clock_ = std::max(*clock_, candidate.worth);
  }
  close_gaps();
  return available_bytes() > available_before;
}

std::vector<Eviction::Candidate> Eviction::candidates() const {
  std::vector<Candidate> list;
  const std::vector<int32_t> branches = branch_positions();
  std::vector<Holder> holders;
  for (size_t index = 0; index < entries_.size(); ++index) {
    const CacheEntry& entry = entries_[index];
    const TargetMass mass(habits_, entry.places, entry.sequence.length());
    add_holders(index, mass, holders);
    if (entry.is_active) continue;
    add_window(index, mass, list);
    add_end(index, branches[index], mass, list);
  }
  add_anchors(std::move(holders), list);
  return list;
}

// The longest prefix that each entry shares with another one. In lexicographic order, one variant
// behind the other, neighbours share most.
std::vector<int32_t> Eviction::branch_positions() const {
  std::vector<size_t> order(entries_.size());
  for (size_t index = 0; index < order.size(); ++index) order[index] = index;
  const auto sequence = [&](size_t index) -> const Sequence& { return entries_[index].sequence; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const std::span<const Token> left = sequence(a).tokens(), right = sequence(b).tokens();
    if (sequence(a).variant() != sequence(b).variant()) {
      return sequence(a).variant() < sequence(b).variant();
    }
    const size_t shared = size_t(common_prefix(left, right));
    if (shared == left.size() || shared == right.size()) return left.size() < right.size();
    return left[shared] < right[shared];
  });
  std::vector<int32_t> branches(order.size(), 0);
  for (size_t rank = 1; rank < order.size(); ++rank) {
    const size_t left = order[rank - 1], right = order[rank];
    const int32_t shared = common_prefix(sequence(left), sequence(right));
    branches[left] = std::max(branches[left], shared);
    branches[right] = std::max(branches[right], shared);
  }
  return branches;
}

void Eviction::add_holders(size_t index, const TargetMass& mass,
                           std::vector<Holder>& holders) const {
  const CacheEntry& entry = entries_[index];
  const std::span<const Anchor> anchors = entry.sequence.anchors();
  const size_t base = base_of_log(entry.sequence);
  const std::vector<double> losses = anchor_losses(*memory_, entry.sequence, mass);
  for (size_t anchor = 0; anchor < anchors.size(); ++anchor) {
    // The block that forks of one sequence have in common.
    const BlockRef& block = anchors[anchor].state ? anchors[anchor].state : anchors[anchor].hidden;
    holders.push_back({.position = anchors[anchor].position,
                       .block = block.block(),
                       .entry = index,
                       .anchor = anchor,
                       .loss = losses[anchor],
                       .is_base = anchor == base});
  }
}

// Holders of the same anchor are neighbours in this order.
void Eviction::add_anchors(std::vector<Holder> holders, std::vector<Candidate>& list) const {
  const auto key = [](const Holder& holder) {
    return std::tuple(holder.position, holder.block, holder.entry);
  };
  std::sort(holders.begin(), holders.end(),
            [&](const Holder& a, const Holder& b) { return key(a) < key(b); });
  for (size_t begin = 0, end = 0; begin < holders.size(); begin = end) {
    const Holder& first = holders[begin];
    ++end;
    while (end < holders.size() && first.block != kNoPage &&
           holders[end].position == first.position && holders[end].block == first.block) {
      ++end;
    }
    add_anchor(std::span(holders).subspan(begin, end - begin), list);
  }
}

// An anchor that branches share is worth what it is to the one that needs it most, and goes from
// all of them at once.
void Eviction::add_anchor(std::span<const Holder> holders, std::vector<Candidate>& list) const {
  const Holder& first = holders.front();
  ExclusiveBlocks exclusive;
  for (const Holder& holder : holders) {
    exclusive.add_anchor(entries_[holder.entry].sequence, holder.anchor);
  }
  // Alone, it may also be the only one to need some pages of windows.
  const size_t bytes = holders.size() == 1
                           ? memory_->exclusive_bytes(entries_[first.entry].sequence, first.anchor)
                           : exclusive.exclusive_bytes();
  if (bytes == 0) return;
  Candidate candidate{.kind = Candidate::Kind::anchor, .position = first.position};
  for (const Holder& holder : holders) {
    const CacheEntry& entry = entries_[holder.entry];
    if (holder.is_base && memory_->needs_replay(entry.sequence)) return;
    candidate.worth = std::max(candidate.worth, entry.credit + holder.loss / double(bytes));
    candidate.entries.push_back(holder.entry);
    candidate.is_active = candidate.is_active || entry.is_active;
    candidate.is_last_resort = candidate.is_last_resort || holder.is_base;
  }
  list.push_back(std::move(candidate));
}

// While the changed copy exists, the blocks that only the original refers to are what the change
// frees.
void Eviction::add_window(size_t index, const TargetMass& mass,
                          std::vector<Candidate>& list) const {
  const CacheEntry& entry = entries_[index];
  const Sequence& sequence = entry.sequence;
  if (!has_windows(memory_->layout()) || sequence.protected_from() >= sequence.length()) return;
  Sequence changed = sequence;
  memory_->protect_from(changed, sequence.length());
  const size_t bytes = memory_->exclusive_bytes(sequence);
  if (bytes == 0) return;
  list.push_back({.kind = Candidate::Kind::window,
                  .worth = entry.credit + window_loss(*memory_, sequence, mass) / double(bytes),
                  .entries = {index}});
}

// Behind the prefix that it shares with others, losing an entry costs computing its tokens again.
void Eviction::add_end(size_t index, int32_t branch, const TargetMass& mass,
                       std::vector<Candidate>& list) const {
  const CacheEntry& entry = entries_[index];
  const size_t bytes = memory_->exclusive_bytes(entry.sequence);
  if (bytes == 0) return;
  const int32_t length = entry.sequence.length();
  const double tokens = mass.between(branch, length + 1) * (length - branch);
  // Rounded to powers of two, so that between sequences that are worth about the same it is the
  // last use that decides, and not how full their last pages are.
  const double density = std::exp2(std::round(std::log2(tokens / double(bytes))));
  list.push_back({.kind = Candidate::Kind::end,
                  .worth = entry.credit + density,
                  .entries = {index},
                  .position = branch});
}

void Eviction::let_go(const Candidate& candidate, size_t wanted_bytes) {
  for (const size_t index : candidate.entries) {
    Sequence& sequence = entries_[index].sequence;
    switch (candidate.kind) {
      case Candidate::Kind::anchor:
        drop_anchor_at(sequence, candidate.position);
        break;
      case Candidate::Kind::window:
        memory_->protect_from(sequence, sequence.length());
        break;
      case Candidate::Kind::end:
        cut_end(entries_[index], candidate.position, wanted_bytes);
    }
  }
}

void Eviction::drop_anchor_at(Sequence& sequence, int32_t position) {
  for (size_t index = 0; index < sequence.anchors().size(); ++index) {
    if (sequence.anchors()[index].position != position) continue;
    const Status dropped = memory_->drop_anchor(sequence, index);
    DCHECK(dropped);  // Anchors that suspended sequences replay from are no candidates.
    return;
  }
}

// Cuts off as little as frees wanted_bytes; closes a sequence of which nothing of its own would be
// left.
void Eviction::cut_end(CacheEntry& entry, int32_t branch, size_t wanted_bytes) {
  const auto freed_bytes = [&](int32_t position) {
    const Result<Sequence> shorter = memory_->at(entry.sequence, position);
    DCHECK(shorter);
    return memory_->exclusive_bytes(entry.sequence);
  };
  int32_t kept = branch, end = entry.sequence.length();  // kept frees enough, end does not.
  if (freed_bytes(kept) < wanted_bytes) return memory_->close(entry.sequence);
  while (kept + 1 < end) {
    const int32_t middle = kept + (end - kept) / 2;
    (freed_bytes(middle) >= wanted_bytes ? kept : end) = middle;
  }
  Result<Sequence> shorter = memory_->at(entry.sequence, kept);
  if (!shorter || (*shorter).length() <= std::max(branch, kPageTokens)) {
    return memory_->close(entry.sequence);
  }
  entry.sequence = std::move(shorter).value();
  std::erase_if(entry.places,
                [&](const Place& place) { return place.position > entry.sequence.length(); });
}

void Eviction::close_gaps() {
  std::erase_if(entries_, [](const CacheEntry& entry) { return entry.sequence.is_closed(); });
}

bool Eviction::drop_least_used() {
  const auto least = std::min_element(entries_.begin(), entries_.end(),
                                      [](const CacheEntry& a, const CacheEntry& b) {
                                        return std::tuple(a.is_active, a.credit, a.last_use) <
                                               std::tuple(b.is_active, b.credit, b.last_use);
                                      });
  if (least == entries_.end() || least->is_active) return false;
  *clock_ = std::max(*clock_, least->credit);
  entries_.erase(least);
  return true;
}

}  // namespace cairn::memory
