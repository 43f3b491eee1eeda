// Finding and adding entries. What is evicted under pressure, and in which order, is in eviction.h.
#include "memory/prefix_cache.h"

#include <algorithm>
#include <array>
#include <utility>

#include "memory/common_prefix.h"
#include "memory/eviction.h"
#include "memory/exclusive_blocks.h"

namespace cairn::memory {

namespace {

// Between an answer's end and the next message are the tokens that the chat template writes there.
constexpr int32_t kHeaderTokensMax = 64;

}  // namespace

PrefixCache::Found PrefixCache::find(std::span<const Token> prompt, Variant variant,
                                     bool wants_logits) {
  Found best;
  CacheEntry* used = nullptr;
  const CacheEntry* nearest = nullptr;  // The one that shares most, whatever it still holds.
  int32_t nearest_shared = 0;
  for (CacheEntry& entry : entries_) {
    const std::span<const Token> tokens = entry.sequence.tokens();
    if (entry.sequence.variant() != variant) {
      best.foreign_tokens = std::max(best.foreign_tokens, common_prefix(tokens, prompt));
      continue;
    }
    // Where this token differs, nothing behind the best so far can be shared.
    const size_t bound = size_t(std::min(best.plan.resume, nearest_shared));
    if (bound >= std::min(tokens.size(), prompt.size()) || tokens[bound] != prompt[bound]) continue;
    const int32_t shared = common_prefix(tokens, prompt);
    if (shared > nearest_shared) {
      nearest = &entry;
      nearest_shared = shared;
    }
    if (shared <= best.plan.resume) continue;
    const bool is_whole = size_t(shared) == prompt.size();
    ResumePlan plan = memory_->plan(entry.sequence, shared, is_whole && wants_logits);
    const bool is_better =
        plan.resume > best.plan.resume || (plan.resume > 0 && plan.resume == best.plan.resume &&
                                           plan.recurrence_steps < best.plan.recurrence_steps);
    if (!is_better) continue;
    best.sequence = &entry.sequence;
    best.shared_tokens = shared;
    best.plan = std::move(plan);
    used = &entry;
  }
  if (nearest != nullptr) {
    habits_.learn(nearest->places, nearest->sequence.length(), nearest_shared);
    if (nearest_shared < nearest->sequence.length()) best.branch = nearest_shared;
  }
  if (used != nullptr) mark_used(*used);
  return best;
}

void PrefixCache::mark_used(CacheEntry& entry) {
  entry.credit = clock_;
  entry.last_use = ++use_count_;
}

void PrefixCache::keep(Sequence sequence) {
  if (sequence.is_closed() || sequence.length() == 0) return;
  std::vector<Place> places = places_of(sequence);
  for (CacheEntry& entry : entries_) {
    if (!begins_with(entry.sequence, sequence) || !covers(entry.sequence, sequence)) continue;
    mark_used(entry);
    return;
  }
  std::erase_if(entries_, [&](const CacheEntry& entry) {
    return begins_with(sequence, entry.sequence) && covers(sequence, entry.sequence);
  });
  if (entries_.size() == kEntriesMax) {
    Eviction(memory_, habits_, entries_, &clock_).drop_least_used();
  }
  entries_.push_back({.sequence = std::move(sequence), .places = std::move(places)});
  mark_used(entries_.back());
}

bool PrefixCache::begins_with(const Sequence& sequence, const Sequence& beginning) {
  return sequence.variant() == beginning.variant() && beginning.length() <= sequence.length() &&
         common_prefix(sequence, beginning) == beginning.length();
}

// Whether `sequence` serves whoever comes back to a border of `beginning` at no more tokens, with
// logits and without. Where the conversation has gone on with a message behind its end, only starts
// of messages count: who goes on from there comes by the new one, and ends of earlier prompts and
// answers are not worth a state each.
// REQUIRES: begins_with().
bool PrefixCache::covers(const Sequence& sequence, const Sequence& beginning) const {
  const auto covers_position = [&](int32_t position) {
    return std::ranges::all_of(std::array{false, true}, [&](bool wants_logits) {
      return memory_->plan(sequence, position, wants_logits).forward_tokens <=
             memory_->plan(beginning, position, wants_logits).forward_tokens;
    });
  };
  const bool has_next_message = std::ranges::any_of(sequence.anchors(), [&](const Anchor& anchor) {
    const int32_t behind_end = anchor.position - beginning.length();
    return anchor.kind == AnchorKind::message_start && behind_end >= 0 &&
           behind_end <= kHeaderTokensMax;
  });
  const auto counts = [&](AnchorKind kind) {
    const bool stays = kind == AnchorKind::message_start || kind == AnchorKind::branch;
    return stays || (kind != AnchorKind::tail && !has_next_message);
  };
  return (has_next_message || covers_position(beginning.length())) &&
         std::ranges::all_of(beginning.anchors(), [&](const Anchor& anchor) {
           return !counts(anchor.kind) || covers_position(anchor.position);
         });
}

// The places of its anchors, and those known from the entry with which it shares the longest
// prefix.
std::vector<Place> PrefixCache::places_of(const Sequence& sequence) const {
  const CacheEntry* nearest = nullptr;
  int32_t nearest_shared = 0;
  for (const CacheEntry& entry : entries_) {
    const int32_t shared = common_prefix(entry.sequence, sequence);
    if (shared <= nearest_shared) continue;
    nearest = &entry;
    nearest_shared = shared;
  }
  std::vector<Place> places;
  for (const Anchor& anchor : sequence.anchors()) {
    if (is_border(anchor.kind)) places.push_back({anchor.position, anchor.kind});
  }
  if (nearest != nullptr) {
    for (const Place& place : nearest->places) {
      if (place.position <= nearest_shared) places.push_back(place);
    }
  }
  const auto is_before = [](const Place& a, const Place& b) { return a.position < b.position; };
  const auto is_same = [](const Place& a, const Place& b) { return a.position == b.position; };
  std::stable_sort(places.begin(), places.end(), is_before);
  places.erase(std::unique(places.begin(), places.end(), is_same), places.end());
  return places;
}

Result<Transaction> PrefixCache::begin(Sequence& sequence, const StepRequest& request) {
  Result<Transaction> begun = memory_->begin(sequence, request);
  if (begun || begun.error().code != ErrorCode::memory_full) return begun;
  const int64_t length = int64_t(sequence.length()) + int64_t(request.tokens.size());
  const Layout& layout = memory_->layout();
  const ResumePlan plan = memory_->plan(sequence, int32_t(length));
  size_t bytes = plan.new_bytes;
  if (layout.recurrent_group >= 0) {
    const bool has_end =
        !request.captures.empty() && size_t(request.captures.back()) == request.tokens.size();
    bytes += (request.captures.size() - size_t(has_end)) * block_bytes(layout.recurrent_group);
  }
  if (request.keeps_hidden && layout.hidden_group >= 0) bytes += block_bytes(layout.hidden_group);
  if (!make_room(sequence, bytes - plan.copied_bytes, bytes)) return begun;
  return memory_->begin(sequence, request);
}

Result<Replay> PrefixCache::begin_replay(Sequence& sequence, int32_t piece_rows) {
  Result<Replay> begun = memory_->begin_replay(sequence, piece_rows);
  if (begun || begun.error().code != ErrorCode::memory_full) return begun;
  // Pieces alternate between two states.
  const size_t state_bytes = block_bytes(memory_->layout().recurrent_group);
  if (!make_room(sequence, state_bytes, 2 * state_bytes)) return begun;
  return memory_->begin_replay(sequence, piece_rows);
}

// While room is made, the sequence is one of the entries.
bool PrefixCache::make_room(Sequence& sequence, size_t needed_bytes, size_t wanted_bytes) {
  std::vector<Place> places = places_of(sequence);
  entries_.push_back({.sequence = std::move(sequence),
                      .places = std::move(places),
                      .credit = clock_,
                      .last_use = use_count_ + 1,
                      .is_active = true});
  // More than was asked, so that steps in a full memory rarely have to come here.
  const Room room{.needed_bytes = needed_bytes,
                  .wanted_bytes = wanted_bytes,
                  .slack_bytes = memory_->options().budget_bytes / 64};
  const bool has_room = Eviction(memory_, habits_, entries_, &clock_).make_room(room);
  sequence = std::move(entries_.back().sequence);
  entries_.pop_back();
  return has_room;
}

bool PrefixCache::make_room(size_t bytes) {
  Sequence none = memory_->new_sequence();
  return make_room(none, bytes, bytes);
}

size_t PrefixCache::evictable_bytes() const {
  ExclusiveBlocks exclusive;
  for (const CacheEntry& entry : entries_) exclusive.add(entry.sequence);
  return exclusive.exclusive_bytes();
}

size_t PrefixCache::block_bytes(int32_t group) const {
  return memory_->layout().groups[size_t(group)].block_bytes;
}

}  // namespace cairn::memory
