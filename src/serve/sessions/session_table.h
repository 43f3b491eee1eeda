// All sessions of a server, by whose they are and by their names. A session's state is a value that
// is replaced as a whole: who reads sees the last one, and one at a time changes it. Who is not the
// owner finds nothing. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "serve/refusal.h"
#include "serve/sessions/session_files.h"
#include "serve/sessions/session_state.h"

namespace cairn::serve {

struct SessionLimits {
  size_t sessions_max = 256;                  // Of an owner.
  size_t branches_max = 256;                  // Of a session; as many snapshots.
  size_t messages_max = 8192;                 // Of a branch.
  size_t owner_bytes_max = size_t(64) << 20;  // Of an owner's sessions.
  size_t bytes_max = size_t(256) << 20;       // Of all.
  std::chrono::seconds unused_max{0};         // Then a session is forgotten; 0: never.
};

class SessionTable : public std::enable_shared_from_this<SessionTable> {
 public:
  using State = std::shared_ptr<const SessionState>;
  using Clock = std::chrono::steady_clock;
  // So many of those that were forgotten because nobody used them are told as such.
  static constexpr size_t kForgottenMax = 1024;

  // `files`: where sessions are kept beyond the process; null: nowhere. Takes up those that are
  // there.
  explicit SessionTable(const SessionLimits& limits, std::unique_ptr<SessionFiles> files = nullptr);

  bool is_stored() const { return files_ != nullptr; }
  // Null: none. Who looks at a session uses it, and who changes it.
  State find(const std::string& owner, const std::string& id);
  std::vector<State> list(const std::string& owner) const;  // By their names.
  // What a session that is not there, or is another's, is answered with: 404.
  Refusal unknown(const std::string& owner, const std::string& id) const;
  // Forgets, on the disk too, what nobody has used for too long and nobody is changing. Looks at
  // most once a second.
  void forget_unused(Clock::time_point now = Clock::now());
  // When that happens unless it is used, in seconds since 1970; none: never.
  std::optional<int64_t> expires_at(const std::string& owner, const std::string& id) const;
  // Errors: 409: the name is taken; 429: over a limit.
  Checked<Ok> add(SessionState state);
  // Ends its answer too. False: there was none.
  bool remove(const std::string& owner, const std::string& id);
  // Asks the session's answer to end where it stands. False: none is made.
  bool stop(const std::string& owner, const std::string& id);
  // Whether the session as it is will be there after a restart, if any is. If not yet, `then` is
  // called as SessionFiles::is_written() says.
  bool is_written(const std::string& owner, const std::string& id, std::function<void()> then);
  // Waits until all that was changed is written, where sessions are stored.
  void drain();

  // The right to change a session, until it is committed or destroyed.
  class Change {
   public:
    ~Change();
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

    const SessionState& state() const { return *state_; }
    // Set by stop() and remove().
    std::shared_ptr<const std::atomic<bool>> wants_stop() const { return wants_stop_; }
    // Keeps the room that the session takes when it becomes so, until it is committed or the change
    // ends. What takes no more than it did has room. Errors: 429, naming the limit.
    Checked<Ok> reserve(const SessionState& state) const;
    // Called at most once. A session that was removed meanwhile stays so. Not checked against the
    // limits: what has been answered is kept.
    void commit(SessionState state);

   private:
    friend class SessionTable;
    Change(std::shared_ptr<SessionTable> table, State state,
           std::shared_ptr<std::atomic<bool>> wants_stop)
        : table_(std::move(table)), state_(std::move(state)), wants_stop_(std::move(wants_stop)) {}

    std::shared_ptr<SessionTable> table_;  // Null once it is over.
    State state_;
    std::shared_ptr<std::atomic<bool>> wants_stop_;
  };
  // Errors: 404; 409: somebody else is changing it.
  Checked<std::unique_ptr<Change>> change(const std::string& owner, const std::string& id);

 private:
  using Key = std::pair<std::string, std::string>;  // Owner, id.
  struct Entry {
    State state;
    Clock::time_point last_use;
    size_t bytes = 0;
    size_t reserved_bytes = 0;  // For what it is going to be; 0: no more than it has.
    std::shared_ptr<std::atomic<bool>> wants_stop;  // Of who is changing it; null: nobody is.
  };

  Refusal unknown(const Key& key) const;
  void put(Entry& entry, SessionState state);
  Checked<Ok> check_counts(const SessionState& state) const;
  Checked<Ok> check_bytes(const Key& key, size_t bytes) const;

  const SessionLimits limits_;
  const std::unique_ptr<SessionFiles> files_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::deque<Key> forgotten_;  // The last ones of those that nobody used.
  Clock::time_point next_look_;
};

}  // namespace cairn::serve
