// Sessions in a folder, a file of JSON each, so that they are there when the server starts again. A
// thread of its own writes what has changed; of several states of a session the last one. What is
// read is checked like any stranger's file. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "serve/sessions/session_state.h"

namespace cairn::serve {

class SessionFiles {
 public:
  // Makes the folder and the one above it, for their owner alone, where they are missing. Reads
  // what is there; files that are no sessions stay where they are, and are told in the log. Null:
  // another server keeps its sessions there, which is told in the log too. Errors: io;
  // invalid_argument: it is no folder of ours.
  static Result<std::unique_ptr<SessionFiles>> open(const std::string& folder);
  ~SessionFiles();  // When everything is written.
  SessionFiles(const SessionFiles&) = delete;
  SessionFiles& operator=(const SessionFiles&) = delete;

  // What was there when it was opened. Called once.
  std::vector<SessionState> take_kept() { return std::exchange(kept_, {}); }
  // How long ago the session's file was written, as the system's clock says.
  std::chrono::seconds age_of(const std::string& owner, const std::string& id) const;
  // Soon; failures are told in the log.
  void keep(std::shared_ptr<const SessionState> state);
  void forget(const std::string& owner, const std::string& id);
  // Whether nothing of this session is left to be written. If not, `then` is called when what was
  // handed over by now is written, or could not be: once, on the thread that writes.
  bool is_written(const std::string& owner, const std::string& id, std::function<void()> then);
  // Waits until all that was handed over is written.
  void drain();

 private:
  using Calls = std::vector<std::function<void()>>;
  struct Task {
    std::string path;
    std::shared_ptr<const SessionState> state;  // Null: it is removed.
    Calls then = {};
  };

  explicit SessionFiles(std::string folder) : folder_(std::move(folder)) {}
  std::string path_of(const std::string& owner, const std::string& id) const;
  Result<bool> lock();
  Status read_all();
  void hand_over(const std::string& path, std::shared_ptr<const SessionState> state);
  Task* find_waiting(const std::string& path);
  void write(const Task& task) const;
  void remove(const std::string& path) const;
  void run();

  const std::string folder_;
  int folder_number_ = -1, lock_number_ = -1;  // Descriptors.
  std::vector<SessionState> kept_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_;  // At most one of each path; first come, first written.
  std::string writing_;       // The path of what is being written; empty: nothing is.
  Calls then_;                // Of that one, added since it was begun.
  bool is_stopping_ = false;
  std::thread thread_;
};

// The text of a session's file, and what is read of it. `name`: what errors begin with. Errors:
// those of json::read_value(); invalid_data that names the member.
std::string session_text(const SessionState& state);
Result<SessionState> read_session(const std::string& name, std::string_view text);

}  // namespace cairn::serve
