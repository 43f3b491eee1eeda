// Finding, adding and pinning entries. What is evicted under pressure is in eviction.h and
// valuation.h, how prefixes are found in prefix_tree.h.
#include "memory/cache/prefix_cache.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "memory/common_prefix.h"

namespace cairn::memory {

namespace {

// Between an answer's end and the next message are the tokens that the chat template writes there.
constexpr int32_t kHeaderTokensMax = 64;

}  // namespace

PrefixCache::Found PrefixCache::find(std::span<const Token> prompt, Variant variant,
                                     bool wants_logits) {
  const PrefixTree::Match match = entries_.tree().match(prompt, variant, wants_logits);
  if (match.nearest != nullptr) {
    habits_.learn(match.nearest->places, match.nearest->sequence.length(), match.shared);
  }
  Found found = found_in(match, prompt, variant, wants_logits);
  if (match.best != nullptr) mark_used(*match.best);
  return found;
}

PrefixCache::Found PrefixCache::look(std::span<const Token> prompt, Variant variant,
                                     bool wants_logits) const {
  return found_in(entries_.tree().match(prompt, variant, wants_logits), prompt, variant,
                  wants_logits);
}

PrefixCache::Found PrefixCache::found_in(const PrefixTree::Match& match,
                                         std::span<const Token> prompt, Variant variant,
                                         bool wants_logits) const {
  Found found{.foreign_tokens = entries_.tree().foreign_prefix(prompt, variant)};
  if (match.nearest != nullptr && match.goes_on) found.branch = match.shared;
  if (match.best == nullptr) return found;
  const Sequence& sequence = match.best->sequence;
  found.sequence = &sequence;
  found.shared_tokens = common_prefix(sequence.tokens(), prompt);
  const bool is_whole = size_t(found.shared_tokens) == prompt.size();
  found.plan = memory_->plan(sequence, found.shared_tokens, is_whole && wants_logits);
  DCHECK(found.plan.resume == match.resume);
  return found;
}

void PrefixCache::mark_used(CacheEntry& entry) {
  entries_.use(entry);
  if (!entry.is_pinned) eviction_.use(entry);
}

void PrefixCache::remove(CacheEntry& entry) {
  eviction_.forget(entry);
  entries_.remove(entry);
}

void PrefixCache::keep(Sequence sequence) {
  if (sequence.is_closed() || sequence.length() == 0) return;
  for (CacheEntry* const entry :
       entries_.tree().continuations(sequence.tokens(), sequence.variant(), kComparedMax)) {
    if (!covers(entry->sequence, sequence)) continue;
    mark_used(*entry);
    return;
  }
  std::vector<Place> places = places_of(sequence);
  remove_covered(sequence);
  eviction_.add(entries_.add(std::move(sequence), std::move(places), false));
}

void PrefixCache::remove_covered(const Sequence& sequence) {
  for (CacheEntry* const entry :
       entries_.tree().beginnings(sequence.tokens(), sequence.variant(), kComparedMax)) {
    if (!entry->is_pinned && covers(sequence, entry->sequence)) remove(*entry);
  }
}

Result<PinId> PrefixCache::pin(Sequence sequence) {
  if (sequence.is_closed() || sequence.length() == 0) {
    return fail(ErrorCode::invalid_argument, "pin: expected a sequence with tokens, found none");
  }
  std::vector<Place> places = places_of(sequence);
  CacheEntry& entry = entries_.add(std::move(sequence), std::move(places), true);
  if (const size_t bytes = pinned_bytes(); bytes > pin_quota_bytes_) {
    entries_.remove(entry);
    return fail(ErrorCode::no_room, "pin: {} bytes would be pinned, the quota is {}", bytes,
                pin_quota_bytes_);
  }
  remove_covered(entry.sequence);
  return PinId(entry.id);
}

Status PrefixCache::unpin(PinId pin) {
  const auto found = entries_.all().find(index_of(pin));
  if (found == entries_.all().end() || !found->second.is_pinned) {
    return fail(ErrorCode::invalid_argument, "unpin: expected a pin, found none of number {}",
                index_of(pin));
  }
  keep(entries_.remove(found->second));
  return Ok{};
}

void PrefixCache::unpin_all() {
  std::vector<PinId> pins;
  for (const auto& [id, entry] : entries_.all()) {
    if (entry.is_pinned) pins.push_back(PinId(id));
  }
  for (const PinId pin : pins) CHECK(unpin(pin));
}

void PrefixCache::condemn(std::span<const Token> tokens, Variant variant, int32_t position) {
  for (auto at = entries_.all().begin(); at != entries_.all().end();) {
    CacheEntry& entry = (at++)->second;
    const bool is_bad = entry.sequence.variant() == variant &&
                        common_prefix(entry.sequence.tokens(), tokens) > position;
    if (!is_bad) continue;
    if (!entry.is_pinned) eviction_.forget(entry);
    entries_.remove(entry);
  }
}

void PrefixCache::clear() {
  for (auto at = entries_.all().begin(); at != entries_.all().end();) {
    CacheEntry& entry = (at++)->second;
    if (!entry.is_pinned) remove(entry);
  }
}

void PrefixCache::clear(uint64_t tenant) {
  for (auto at = entries_.all().begin(); at != entries_.all().end();) {
    CacheEntry& entry = (at++)->second;
    if (!entry.is_pinned && entry.sequence.variant().tenant == tenant) remove(entry);
  }
}

std::vector<const Sequence*> PrefixCache::sequences() const {
  std::vector<const Sequence*> sequences;
  for (const auto& [id, entry] : entries_.all()) sequences.push_back(&entry.sequence);
  return sequences;
}

std::vector<PrefixCache::Listed> PrefixCache::list() const {
  std::vector<Listed> listed;
  for (const auto& [id, entry] : entries_.all()) {
    listed.push_back({id, entry.last_use, entry.is_pinned, &entry.sequence});
  }
  return listed;
}

// Whether `sequence` serves whoever comes back to a border of `beginning` at no more tokens, with
// logits and without. Where the conversation has gone on with a message behind its end, only starts
// of messages count: who goes on from there comes by the new one, and ends of earlier prompts and
// answers are not worth a state each.
// REQUIRES: `sequence` begins with `beginning`, both of one variant.
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
  const PrefixTree::Match match =
      entries_.tree().match(sequence.tokens(), sequence.variant(), false);
  std::vector<Place> places;
  for (const Anchor& anchor : sequence.anchors()) {
    if (is_border(anchor.kind)) places.push_back({anchor.position, anchor.kind});
  }
  if (match.nearest != nullptr) {
    for (const Place& place : match.nearest->places) {
      if (place.position <= match.shared) places.push_back(place);
    }
  }
  const auto is_before = [](const Place& a, const Place& b) { return a.position < b.position; };
  const auto is_same = [](const Place& a, const Place& b) { return a.position == b.position; };
  std::stable_sort(places.begin(), places.end(), is_before);
  places.erase(std::unique(places.begin(), places.end(), is_same), places.end());
  return places;
}

Result<Transaction> PrefixCache::begin(Sequence& sequence, const StepRequest& request,
                                       bool spares_shares) {
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
  if (!make_room(sequence, bytes - plan.copied_bytes, bytes, spares_shares)) return begun;
  return memory_->begin(sequence, request);
}

Result<Replay> PrefixCache::begin_replay(Sequence& sequence, int32_t piece_rows,
                                         bool spares_shares) {
  Result<Replay> begun = memory_->begin_replay(sequence, piece_rows);
  if (begun || begun.error().code != ErrorCode::memory_full) return begun;
  // Pieces alternate between two states.
  const size_t state_bytes = block_bytes(memory_->layout().recurrent_group);
  if (!make_room(sequence, state_bytes, 2 * state_bytes, spares_shares)) return begun;
  return memory_->begin_replay(sequence, piece_rows);
}

// While room is made, the sequence is in an entry.
bool PrefixCache::make_room(Sequence& sequence, size_t needed_bytes, size_t wanted_bytes,
                            bool spares_shares) {
  CacheEntry active{.places = places_of(sequence)};
  active.sequence = std::move(sequence);
  // More than was asked, so that steps in a full memory rarely have to come here.
  const Room room{.needed_bytes = needed_bytes,
                  .wanted_bytes = wanted_bytes,
                  .slack_bytes = memory_->options().budget_bytes / 64,
                  .spares_shares = spares_shares};
  bool has_room = eviction_.make_room(active, room);
  while (!has_room && give_way_ && give_way_()) has_room = eviction_.make_room(active, room);
  sequence = std::move(active.sequence);
  return has_room;
}

bool PrefixCache::make_room(size_t bytes, Variant variant, bool spares_shares) {
  Sequence none = memory_->new_sequence(variant);
  return make_room(none, bytes, bytes, spares_shares);
}

size_t PrefixCache::block_bytes(int32_t group) const {
  return memory_->layout().groups[size_t(group)].block_bytes;
}

}  // namespace cairn::memory
