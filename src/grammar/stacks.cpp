// A step follows the byte from every stack, then calls and ends of rules until each stack waits for
// a byte or a token again. Frames are shared tails of stacks: a parent is older than its children.
#include "grammar/stacks.h"

#include <algorithm>

#include "grammar/near_states.h"

namespace cairn::grammar {

namespace {

uint64_t mix(uint64_t value) {
  value *= 0x9E3779B97F4A7C15u;
  value ^= value >> 32;
  value *= 0xD6E8FEB86659FD93u;
  return value ^ value >> 32;
}

constexpr uint32_t kFreshMark = kNone;  // In place of a state: a counter started in this step.

}  // namespace

void NumberIndex::insert(uint64_t hash, uint32_t number) {
  if (2 * ++used_ > slots_.size()) {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kNone) place(slot);
    }
  }
  place({hash, number});
}

void NumberIndex::place(Slot slot) {
  size_t at = slot.hash & (slots_.size() - 1);
  while (slots_[at].number != kNone) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = slot;
}

void NumberIndex::clear() {
  slots_.assign(64, {});
  used_ = 0;
}

Stacks::Stacks(const Automaton& automaton)
    : automaton_(automaton),
      class_count_(automaton.class_bytes.size()),
      marks_(256),
      mark_rounds_(256, 0) {
  collect({});
}

Stacks::Set Stacks::step_token(Set from, std::span<const uint32_t> patterns) {
  std::vector<Item> seeds;
  for (size_t i = 0; i < sets_[from].count; ++i) {
    const Item item = items(from)[i];
    for (const Automaton::TokenEdge& edge : automaton_.tokens_of(item.state)) {
      if (std::find(patterns.begin(), patterns.end(), edge.pattern) == patterns.end()) continue;
      seeds.push_back({edge.target, item.frame});
    }
  }
  return finish(seeds);
}

Stacks::Set Stacks::make_step(Set from, uint8_t byte) {
  std::vector<Item> seeds;
  for (const Item& item : items(from)) {
    for (const Automaton::ByteEdge& edge : automaton_.edges_of(item.state)) {
      --work_;
      if (edge.first <= byte && byte <= edge.last) seeds.push_back({edge.target, item.frame});
    }
  }
  const Set to = finish(seeds);
  if (to != kOver) steps_[size_t(from) * class_count_ + automaton_.class_of[byte]] = to;
  return to;
}

Stacks::Set Stacks::finish(std::vector<Item>& seeds) {
  if (seeds.empty()) return kDead;
  ++round_;
  mark_count_ = 0;
  result_.clear();
  waiting_.clear();
  is_accepting_ = false;
  for (const Item& seed : seeds) add(seed.state, seed.frame);
  while (!waiting_.empty()) {
    const Item item = waiting_.back();
    waiting_.pop_back();
    expand(item);
    if (work_ < 0 || result_.size() > kLiveStacksMax) return kOver;
  }
  std::sort(result_.begin(), result_.end());
  return intern(result_, is_accepting_);
}

bool Stacks::mark(uint64_t key) {
  if (2 * ++mark_count_ > marks_.size()) {
    std::vector<uint64_t> keys;
    for (size_t at = 0; at < marks_.size(); ++at) {
      if (mark_rounds_[at] == round_) keys.push_back(marks_[at]);
    }
    marks_.assign(marks_.size() * 2, 0);
    mark_rounds_.assign(marks_.size(), 0);
    mark_count_ = 1;
    for (const uint64_t known : keys) mark(known);
  }
  for (size_t at = mix(key) & (marks_.size() - 1);; at = (at + 1) & (marks_.size() - 1)) {
    if (mark_rounds_[at] != round_) {
      marks_[at] = key;
      mark_rounds_[at] = round_;
      return true;
    }
    if (marks_[at] == key) return false;
  }
}

void Stacks::add(uint32_t state, uint32_t frame) {
  --work_;
  if (mark(uint64_t(state) << 32 | frame)) waiting_.push_back({state, frame});
}

void Stacks::expand(Item item) {
  const Automaton::Begins& begins = automaton_.states[item.state];
  const Automaton::Begins& ends = automaton_.states[item.state + 1];
  if (begins.edges != ends.edges || begins.tokens != ends.tokens) result_.push_back(item);
  if (begins.is_final) pop(item.frame);
  for (const Automaton::Call& call : automaton_.calls_of(item.state)) {
    if (call.repeat == kNone) {
      add(call.start, behind(call.target, item.frame));
      continue;
    }
    if (automaton_.repeats[call.repeat].min == 0) add(call.target, item.frame);
    begin_body(call.repeat, 0, call.target, item.frame);
  }
}

// Where to go on when a rule ends that was called here.
uint32_t Stacks::behind(uint32_t target, uint32_t parent) {
  if (automaton_.states[target].is_end) return parent;
  return intern({.target = target, .repeat = kNone, .parent = parent, .count = 0});
}

void Stacks::begin_body(uint32_t number, int32_t count, uint32_t target, uint32_t parent) {
  const Automaton::Repeat& repeat = automaton_.repeats[number];
  if (count + 1 == repeat.max) return add(repeat.start, behind(target, parent));
  const uint32_t frame =
      intern({.target = target, .repeat = number, .parent = parent, .count = count});
  if (repeat.has_empty_body) mark(uint64_t(kFreshMark) << 32 | frame);
  add(repeat.start, frame);
}

void Stacks::pop(uint32_t number) {
  if (number == kBottom) {
    is_accepting_ = true;
    return;
  }
  const Frame frame = frames_[number];
  if (frame.repeat == kNone) return add(frame.target, frame.parent);
  const Automaton::Repeat& repeat = automaton_.repeats[frame.repeat];
  // A body that began in this step and has ended already was empty. What follows is no more than
  // what the beginning allowed: with an empty body the minimum is 0, and fewer rounds are used up.
  if (repeat.has_empty_body && !mark(uint64_t(kFreshMark) << 32 | number)) return;
  const int32_t count = frame.count + 1;
  if (count >= repeat.min) add(frame.target, frame.parent);
  const bool is_counted_out = repeat.max == kUnbounded && count > repeat.min;
  if (repeat.max == kUnbounded || count < repeat.max) {
    begin_body(frame.repeat, is_counted_out ? repeat.min : count, frame.target, frame.parent);
  }
}

uint32_t Stacks::intern(const Frame& frame) {
  const uint64_t hash = mix(mix(uint64_t(frame.target) << 32 | frame.parent) +
                            (uint64_t(frame.repeat) << 32 | uint32_t(frame.count)));
  const uint32_t known =
      frame_index_.find(hash, [&](uint32_t number) { return frames_[number] == frame; });
  if (known != kNone) return known;
  frames_.push_back(frame);
  frame_index_.insert(hash, uint32_t(frames_.size() - 1));
  return uint32_t(frames_.size() - 1);
}

Stacks::Set Stacks::intern(std::span<const Item> wanted, bool is_accepting) {
  if (wanted.empty() && !is_accepting) return kDead;
  uint64_t hash = is_accepting ? 1 : 2;
  for (const Item& item : wanted) hash = mix(hash + (uint64_t(item.state) << 32 | item.frame));
  const uint32_t known = set_index_.find(hash, [&](uint32_t set) {
    return sets_[set].is_accepting == is_accepting &&
           std::equal(wanted.begin(), wanted.end(), items(set).begin(), items(set).end());
  });
  if (known != kNone) return known;
  const auto set = uint32_t(sets_.size());
  sets_.push_back({.begin = uint32_t(items_.size()),
                   .count = uint32_t(wanted.size()),
                   .is_accepting = is_accepting});
  items_.insert(items_.end(), wanted.begin(), wanted.end());
  steps_.resize(steps_.size() + class_count_, kNone);
  set_index_.insert(hash, set);
  return set;
}

Stacks::Set Stacks::join(Set first, Set second) {
  if (first == kOver || second == kOver) return kOver;
  if (first == kDead || second == kDead || first == second) return std::max(first, second);
  std::vector<Item> all;
  std::set_union(items(first).begin(), items(first).end(), items(second).begin(),
                 items(second).end(), std::back_inserter(all));
  if (all.size() > kLiveStacksMax) return kOver;
  return intern(all, is_accepting(first) || is_accepting(second));
}

Stacks::Set Stacks::nearby(Set set, uint32_t bytes) {
  const bool has_merged = bytes <= merged_bytes_ && !merged_.empty();
  if (set == kDead || (automaton_.repeats.empty() && !has_merged)) return set;
  std::vector<Item> moved(items(set).begin(), items(set).end());
  bool is_same = true;
  for (Item& item : moved) {
    const Item near{nearby_state(item.state, bytes), nearby_frame(item.frame, bytes)};
    is_same = is_same && near == item;
    item = near;
  }
  if (is_same) return set;
  std::sort(moved.begin(), moved.end());
  moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
  return intern(moved, is_accepting(set));
}

void Stacks::merge_states(uint32_t bytes) {
  merged_ = near_states(automaton_, int32_t(bytes));
  merged_bytes_ = bytes;
  nearby_frames_.clear();
}

// So many bytes end at most as many rounds: a counter that is further away from both of its limits
// than that may stand elsewhere, as long as it is as far or as satisfied there.
uint32_t Stacks::nearby_frame(uint32_t top, uint32_t bytes) {
  if (nearby_bytes_ != bytes) nearby_frames_.clear();
  nearby_bytes_ = bytes;
  nearby_frames_.resize(std::max(nearby_frames_.size(), frames_.size()), kNone);
  nearby_frames_[kBottom] = kBottom;
  std::vector<uint32_t> path;
  for (uint32_t frame = top; nearby_frames_[frame] == kNone; frame = frames_[frame].parent) {
    path.push_back(frame);
  }
  const int64_t near = int64_t(bytes) + 2;
  for (; !path.empty(); path.pop_back()) {
    Frame frame = frames_[path.back()];
    frame.parent = nearby_frames_[frame.parent];
    if (frame.target != kNone) frame.target = nearby_state(frame.target, bytes);
    if (frame.repeat != kNone) {
      const Automaton::Repeat& repeat = automaton_.repeats[frame.repeat];
      const bool is_far = int64_t(repeat.max) - frame.count > near;
      if (is_far && frame.count >= repeat.min) frame.count = repeat.min;
      if (is_far && int64_t(repeat.min) - frame.count > near) frame.count = 0;
    }
    nearby_frames_[path.back()] = intern(frame);
  }
  return nearby_frames_[top];
}

size_t Stacks::byte_size() const {
  return frames_.size() * sizeof(Frame) + items_.size() * sizeof(Item) +
         sets_.size() * sizeof(SetInfo) + steps_.size() * sizeof(Set) + frame_index_.byte_size() +
         set_index_.byte_size();
}

void Stacks::collect(std::span<Set> kept) {
  std::vector<std::vector<Item>> items_kept;
  std::vector<bool> accepting_kept, is_used(frames_.size(), false);
  for (const Set set : kept) {
    items_kept.emplace_back(items(set).begin(), items(set).end());
    accepting_kept.push_back(is_accepting(set));
    for (const Item& item : items(set)) is_used[item.frame] = true;
  }
  for (size_t frame = frames_.size(); frame-- > 1;) {
    if (is_used[frame]) is_used[frames_[frame].parent] = true;
  }
  std::vector<Frame> old_frames;
  old_frames.swap(frames_);
  frame_index_.clear();
  frames_.push_back({.target = kNone, .repeat = kNone, .parent = kBottom, .count = 0});
  std::vector<uint32_t> moved(old_frames.size(), kBottom);
  for (size_t number = 1; number < old_frames.size(); ++number) {
    if (!is_used[number]) continue;
    Frame frame = old_frames[number];
    frame.parent = moved[frame.parent];
    moved[number] = intern(frame);
  }
  nearby_frames_.clear();
  items_.clear();
  sets_.assign(1, {.begin = 0, .count = 0, .is_accepting = false});
  set_index_.clear();
  steps_.assign(class_count_, kDead);
  work_ = kStepWorkMax;
  std::vector<Item> seeds = {{automaton_.start, kBottom}};
  start_ = finish(seeds);
  for (size_t i = 0; i < kept.size(); ++i) {
    for (Item& item : items_kept[i]) item.frame = moved[item.frame];
    std::sort(items_kept[i].begin(), items_kept[i].end());
    kept[i] = intern(items_kept[i], accepting_kept[i]);
  }
}

}  // namespace cairn::grammar
