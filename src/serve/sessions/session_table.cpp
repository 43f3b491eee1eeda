// Replacing states.
#include "serve/sessions/session_table.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace cairn::serve {

namespace {

template <class... Args>
Refusal over_limit(fmt::format_string<Args...> format, Args&&... args) {
  return {.status = 429,
          .type = "rate_limit_error",
          .code = "session_limit",
          .message = fmt::format(format, std::forward<Args>(args)...),
          .headers = {{"x-should-retry", "false"}}};
}

}  // namespace

SessionTable::SessionTable(const SessionLimits& limits, std::unique_ptr<SessionFiles> files)
    : limits_(limits), files_(std::move(files)) {
  if (files_ == nullptr) return;
  for (SessionState& state : files_->take_kept()) {
    Entry& entry = entries_[{state.owner, state.id}];
    entry.bytes = bytes_of(state);
    entry.last_use = Clock::now() - files_->age_of(state.owner, state.id);
    entry.state = std::make_shared<const SessionState>(std::move(state));
  }
}

SessionTable::State SessionTable::find(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({owner, id});
  if (found == entries_.end()) return nullptr;
  found->second.last_use = Clock::now();
  return found->second.state;
}

Refusal SessionTable::unknown(const std::string& owner, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return unknown({owner, id});
}

// REQUIRES: the mutex is held.
Refusal SessionTable::unknown(const Key& key) const {
  Refusal refusal{.status = 404,
                  .type = "not_found_error",
                  .code = "session_not_found",
                  .message = "session: expected one of this key's, found none of this name"};
  if (std::ranges::find(forgotten_, key) != forgotten_.end()) {
    refusal.code = "session_expired";
    refusal.message = fmt::format(
        "session: expected one of this key's, found one that was not used for {} s and is "
        "forgotten (--session-ttl)",
        limits_.unused_max.count());
  }
  return refusal;
}

void SessionTable::forget_unused(Clock::time_point now) {
  if (limits_.unused_max.count() == 0) return;
  const std::lock_guard lock(mutex_);
  if (now < next_look_) return;
  next_look_ = now + std::chrono::seconds(1);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto& [key, session] = *entry;
    const bool stays = session.wants_stop != nullptr || now - session.last_use < limits_.unused_max;
    if (stays) {
      ++entry;
      continue;
    }
    if (files_ != nullptr) files_->forget(key.first, key.second);
    log::info("a session that was not used for {} s is forgotten: {}", limits_.unused_max.count(),
              key.second);
    forgotten_.push_back(key);
    if (forgotten_.size() > kForgottenMax) forgotten_.pop_front();
    entry = entries_.erase(entry);
  }
}

std::optional<int64_t> SessionTable::expires_at(const std::string& owner,
                                                const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({owner, id});
  if (limits_.unused_max.count() == 0 || found == entries_.end()) return std::nullopt;
  const auto left = found->second.last_use + limits_.unused_max - Clock::now();
  const auto end = std::chrono::system_clock::now().time_since_epoch() + left;
  return std::chrono::duration_cast<std::chrono::seconds>(end).count();
}

std::vector<SessionTable::State> SessionTable::list(const std::string& owner) const {
  std::vector<State> states;
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.lower_bound({owner, ""});
       entry != entries_.end() && entry->first.first == owner; ++entry) {
    states.push_back(entry->second.state);
  }
  return states;
}

Checked<Ok> SessionTable::add(SessionState state) {
  CAIRN_TRY(check_counts(state));
  const Key key{state.owner, state.id};
  const std::lock_guard lock(mutex_);
  if (entries_.contains(key)) {
    return Refusal{.status = 409,
                   .type = "conflict_error",
                   .code = "session_exists",
                   .message = fmt::format("id: expected a new name, found {} again", state.id),
                   .field = "id",
                   .headers = {{"x-should-retry", "false"}}};
  }
  size_t count = 0;
  for (auto entry = entries_.lower_bound({state.owner, ""});
       entry != entries_.end() && entry->first.first == state.owner; ++entry) {
    ++count;
  }
  if (count >= limits_.sessions_max) {
    return over_limit("sessions: expected at most {}, found as many already", limits_.sessions_max);
  }
  CAIRN_TRY(check_bytes(key, bytes_of(state)));
  std::erase(forgotten_, key);
  put(entries_[key], std::move(state));
  return Ok{};
}

bool SessionTable::remove(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({owner, id});
  if (found == entries_.end()) return false;
  if (found->second.wants_stop != nullptr) found->second.wants_stop->store(true);
  if (files_ != nullptr) files_->forget(owner, id);
  entries_.erase(found);
  return true;
}

bool SessionTable::stop(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({owner, id});
  if (found == entries_.end() || found->second.wants_stop == nullptr) return false;
  found->second.wants_stop->store(true);
  return true;
}

bool SessionTable::is_written(const std::string& owner, const std::string& id,
                              std::function<void()> then) {
  return files_ == nullptr || files_->is_written(owner, id, std::move(then));
}

void SessionTable::drain() {
  if (files_ != nullptr) files_->drain();
}

Checked<std::unique_ptr<SessionTable::Change>> SessionTable::change(const std::string& owner,
                                                                    const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({owner, id});
  if (found == entries_.end()) return unknown(Key(owner, id));
  Entry& entry = found->second;
  if (entry.wants_stop != nullptr) {
    return Refusal{.status = 409,
                   .type = "conflict_error",
                   .code = "session_busy",
                   .message =
                       "session: expected one that nobody changes, found an answer being "
                       "made in it",
                   .headers = {{"retry-after", "1"}}};
  }
  entry.wants_stop = std::make_shared<std::atomic<bool>>(false);
  return std::unique_ptr<Change>(new Change(shared_from_this(), entry.state, entry.wants_stop));
}

SessionTable::Change::~Change() {
  if (table_ == nullptr) return;
  const std::lock_guard lock(table_->mutex_);
  const auto found = table_->entries_.find({state_->owner, state_->id});
  if (found == table_->entries_.end()) return;
  // Another of the same name may stand there since.
  if (found->second.wants_stop != wants_stop_) return;
  found->second.wants_stop.reset();
  found->second.reserved_bytes = 0;
  found->second.last_use = Clock::now();
}

Checked<Ok> SessionTable::Change::reserve(const SessionState& state) const {
  CHECK(table_ != nullptr);
  CAIRN_TRY(table_->check_counts(state));
  const size_t bytes = bytes_of(state);
  const Key key{state_->owner, state_->id};
  const std::lock_guard lock(table_->mutex_);
  const auto found = table_->entries_.find(key);
  // Of one that was removed nothing is kept.
  if (found == table_->entries_.end() || found->second.wants_stop != wants_stop_) return Ok{};
  if (bytes <= found->second.bytes) return Ok{};
  CAIRN_TRY(table_->check_bytes(key, bytes));
  found->second.reserved_bytes = bytes;
  return Ok{};
}

void SessionTable::Change::commit(SessionState state) {
  CHECK(table_ != nullptr);
  const std::shared_ptr<SessionTable> table = std::exchange(table_, nullptr);
  const std::lock_guard lock(table->mutex_);
  const auto found = table->entries_.find({state_->owner, state_->id});
  if (found == table->entries_.end() || found->second.wants_stop != wants_stop_) return;
  found->second.wants_stop.reset();
  table->put(found->second, std::move(state));
}

// REQUIRES: the mutex is held.
void SessionTable::put(Entry& entry, SessionState state) {
  entry.bytes = bytes_of(state);
  entry.reserved_bytes = 0;
  entry.last_use = Clock::now();
  entry.state = std::make_shared<const SessionState>(std::move(state));
  if (files_ != nullptr) files_->keep(entry.state);
}

Checked<Ok> SessionTable::check_counts(const SessionState& state) const {
  const size_t lists = std::max(state.dialogue.branches().size(), state.snapshots.size());
  if (lists > limits_.branches_max) {
    return over_limit("session: expected at most {} branches and {} snapshots, found {}",
                      limits_.branches_max, limits_.branches_max, lists);
  }
  const size_t messages = state.dialogue.messages().size();
  if (messages > limits_.messages_max) {
    return over_limit("session: expected at most {} messages, found {}", limits_.messages_max,
                      messages);
  }
  return Ok{};
}

// REQUIRES: the mutex is held. `key`: of the session that is going to take so many.
Checked<Ok> SessionTable::check_bytes(const Key& key, size_t bytes) const {
  size_t own = bytes, all = bytes;
  for (const auto& [other, entry] : entries_) {
    if (other == key) continue;
    const size_t taken = std::max(entry.bytes, entry.reserved_bytes);
    all += taken;
    if (other.first == key.first) own += taken;
  }
  if (own > limits_.owner_bytes_max) {
    return over_limit("sessions: expected at most {} bytes, found {}; delete one",
                      limits_.owner_bytes_max, own);
  }
  if (all > limits_.bytes_max) return over_limit("sessions: the server has no room for more");
  return Ok{};
}

}  // namespace cairn::serve
