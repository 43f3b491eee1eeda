// The cheapest way from what a session holds to what is wanted of it.
#include "runtimes/timeline.h"

#include <algorithm>
#include <utility>

namespace cairn::runtimes {

namespace {

// So that what is added next needs no memory.
template <class Item>
void make_room(std::vector<Item>& items, size_t count) {
  const size_t needed = items.size() + count;
  if (needed > items.capacity()) items.reserve(std::max(needed, 2 * items.size()));
}

size_t alike_count(std::span<const Token> a, std::span<const Token> b) {
  return size_t(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

History History::first(size_t count) const {
  History cut;
  cut.tokens.assign(tokens.begin(), tokens.begin() + std::ptrdiff_t(count));
  for (const size_t end : ends) {
    if (end < count) cut.ends.push_back(end);
  }
  if (count > 0) cut.ends.push_back(count);
  return cut;
}

size_t History::common_end(const History& other) const {
  const size_t tokens_alike = alike_count(tokens, other.tokens);
  size_t common = 0;
  for (size_t chunk = 0; chunk < std::min(ends.size(), other.ends.size()); ++chunk) {
    if (ends[chunk] != other.ends[chunk] || ends[chunk] > tokens_alike) break;
    common = ends[chunk];
  }
  return common;
}

namespace {

bool is_same(const History& a, const History& b) {
  return a.ends == b.ends && a.tokens == b.tokens;
}

// Where the last chunk begins: logits come with the end of one.
size_t last_begin(const History& history) {
  return history.ends.size() < 2 ? 0 : history.ends[history.ends.size() - 2];
}

}  // namespace

Result<std::unique_ptr<Timeline>> Timeline::open(LoadedRuntime* runtime) {
  CAIRN_TRY(std::unique_ptr<RuntimeSession> session, runtime->open_session());
  return std::unique_ptr<Timeline>(new Timeline(runtime, std::move(session)));
}

Timeline::Timeline(LoadedRuntime* runtime, std::unique_ptr<RuntimeSession> session)
    : runtime_(runtime), session_(std::move(session)) {
  logits_.reserve(size_t(runtime->vocabulary_count()));
}

History Timeline::history_of(std::span<const Token> tokens) const {
  const size_t alike = alike_count(history_.tokens, tokens);
  History wanted = history_.first(alike);
  if (alike == tokens.size()) return wanted;
  wanted.tokens.assign(tokens.begin(), tokens.end());
  wanted.ends.push_back(tokens.size());
  return wanted;
}

// As far as the session has what is wanted, and the last token is read for its logits. Without a
// promise for other chunks only their borders are places to go on from.
size_t Timeline::shared_with_session(const History& wanted) const {
  if (runtime_->claims().exactness == Exactness::bitwise) {
    return std::min(alike_count(held_.tokens, wanted.tokens), wanted.tokens.size() - 1);
  }
  return std::min(held_.common_end(wanted), last_begin(wanted));
}

Timeline::Way Timeline::way_to(const History& wanted) const {
  const size_t shared = shared_with_session(wanted);
  Way way;
  const bool goes_on = shared == held_.tokens.size();
  const bool can_rewind = (runtime_->claims().capabilities & kRewinds) != 0;
  if (goes_on || can_rewind) way.position = shared;
  std::erase_if(marks_, [](const std::weak_ptr<const Snapshot>& mark) { return mark.expired(); });
  for (const std::weak_ptr<const Snapshot>& mark : marks_) {
    const std::shared_ptr<const Snapshot> snapshot = mark.lock();
    if (snapshot == nullptr || snapshot->state == nullptr) continue;
    const size_t length = snapshot->history.tokens.size();
    if (length <= way.position || length > last_begin(wanted)) continue;
    if (snapshot->history.common_end(wanted) != length) continue;
    way = {.from = snapshot, .position = length};
  }
  way.is_replayed = way.position < shared;
  return way;
}

Cost Timeline::cost_of(const History& wanted) const {
  Cost cost{.target = wanted.tokens.size()};
  cost.is_ready = wanted.tokens.empty() || (!logits_.empty() && is_same(wanted, history_));
  if (cost.is_ready) {
    cost.resume = cost.target;
    return cost;
  }
  const Way way = way_to(wanted);
  cost.resume = way.position;
  cost.is_replayed = way.is_replayed;
  if (way.from != nullptr) cost.copy_bytes = way.from->state->bytes();
  return cost;
}

Cost Timeline::cost_of_tokens(std::span<const Token> tokens) const {
  return cost_of(history_of(tokens));
}

Cost Timeline::cost_of_position(size_t position) const {
  return cost_of(history_.first(position));
}

Cost Timeline::cost() const {
  return cost_of(history_);
}

Result<Cost> Timeline::become(std::span<const Token> tokens) {
  return reach(history_of(tokens));
}

Result<Cost> Timeline::rewind(size_t position) {
  return reach(history_.first(position));
}

Result<Cost> Timeline::compute() {
  const size_t length = held_.tokens.size();
  const bool lacks_one_chunk = logits_.empty() && goes_on_ &&
                               held_.ends.size() + 1 == history_.ends.size() &&
                               session_->length() == length;
  if (!lacks_one_chunk) return reach(history_);
  is_cancelled_ = false;
  CAIRN_TRY(append_chunk(history_, history_.tokens.size()));
  return Cost{.target = history_.tokens.size(), .resume = length};
}

void Timeline::aim(std::span<const Token> tokens) {
  History wanted = history_of(tokens);
  if (!is_same(wanted, history_)) set_history(std::move(wanted));
}

void Timeline::set_history(History history) {
  history_ = std::move(history);
  logits_.clear();
  goes_on_ = held_.common_end(history_) == held_.tokens.size();
}

// The state is not copied before something has to be read behind it.
Result<Cost> Timeline::restore(std::shared_ptr<const Snapshot> snapshot) {
  is_cancelled_ = false;
  marks_.push_back(snapshot);
  if (snapshot->logits.empty()) return reach(snapshot->history);
  const size_t length = snapshot->history.tokens.size();
  adopt(std::move(snapshot));
  return Cost{.target = length, .resume = length, .is_ready = true};
}

void Timeline::adopt(std::shared_ptr<const Snapshot> snapshot) {
  set_history(snapshot->history);
  logits_ = snapshot->logits;
  marks_.push_back(std::move(snapshot));
}

void Timeline::push(Token token) {
  make_room(history_.tokens, 1);
  make_room(history_.ends, 1);
  history_.tokens.push_back(token);
  history_.ends.push_back(history_.tokens.size());
  logits_.clear();
}

void Timeline::clear() {
  set_history({});
}

Result<std::shared_ptr<const Snapshot>> Timeline::snapshot() {
  auto made = std::make_shared<Snapshot>();
  made->history = history_;
  made->logits = logits_;
  const bool can_keep = (runtime_->claims().capabilities & kSnapshots) != 0;
  if (can_keep && !history_.tokens.empty() && is_same(held_, history_)) {
    CAIRN_TRY(made->state, session_->snapshot());
  }
  marks_.push_back(made);
  return std::shared_ptr<const Snapshot>(std::move(made));
}

void Timeline::cancel() {
  is_cancelled_ = true;
  session_->cancel();
}

Result<Cost> Timeline::reach(History wanted) {
  is_cancelled_ = false;
  const Cost cost = cost_of(wanted);
  if (wanted.tokens.empty()) {
    clear();
    return cost;
  }
  if (cost.is_ready) return cost;
  CAIRN_TRY(walk(wanted));
  history_ = std::move(wanted);
  goes_on_ = true;
  return cost;
}

// Afterwards the session holds what is wanted, and its logits are the timeline's; after an error
// only the session has changed.
Status Timeline::walk(const History& wanted) {
  goes_on_ = false;
  if (session_->length() != held_.tokens.size()) {
    held_ = {};
    CAIRN_TRY(session_->rewind(0));
  }
  CAIRN_TRY(go_back(wanted, way_to(wanted)));
  for (const size_t end : wanted.ends) {
    if (end > held_.tokens.size()) CAIRN_TRY(append_chunk(wanted, end));
  }
  return Ok{};
}

Status Timeline::go_back(const History& wanted, const Way& way) {
  if (way.from != nullptr) {
    held_ = {};
    if (Status restored = session_->restore(*way.from->state); !restored) {
      forget_held();
      return restored;
    }
    held_ = way.from->history;
    return Ok{};
  }
  if (way.position == held_.tokens.size()) return Ok{};
  if (Status done = session_->rewind(way.position); !done) {
    forget_held();
    return done;
  }
  held_ = wanted.first(way.position);
  return Ok{};
}

// A cancellation that nobody asked for belongs to a call before this one.
Status Timeline::append_chunk(const History& wanted, size_t end) {
  const size_t begin = held_.tokens.size();
  const std::span<const Token> chunk = std::span(wanted.tokens).subspan(begin, end - begin);
  make_room(held_.tokens, chunk.size());
  make_room(held_.ends, 1);
  if (is_cancelled_) return fail(ErrorCode::cancelled, "cancelled");
  Result<std::span<const float>> row = session_->append(chunk);
  if (!row && row.error().code == ErrorCode::cancelled && !is_cancelled_ &&
      session_->length() == begin) {
    row = session_->append(chunk);
  }
  if (!row) {
    if (session_->length() != begin) forget_held();
    return std::move(row).error();
  }
  held_.tokens.insert(held_.tokens.end(), chunk.begin(), chunk.end());
  held_.ends.push_back(end);
  if (end == wanted.tokens.size()) logits_.assign(row->begin(), row->end());
  return Ok{};
}

// What the session has is not known any more. One that cannot be emptied now is asked again before
// it is used: its length tells.
void Timeline::forget_held() {
  held_ = {};
  (void)session_->rewind(0);
}

}  // namespace cairn::runtimes
