// Requests to a worker process and its answers, one at a time (src/runtimes/worker/worker.py is
// the other side). Whatever comes from there is checked; a worker that has died, does not answer
// in time or says what makes no sense is ended, and an error of that call and of all after it.
// Thread rule: one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/machine/descriptor.h"
#include "base/result.h"
#include "runtimes/worker/child_process.h"

namespace cairn::runtimes {

// As worker.py counts them.
enum class Request : uint32_t { check, load, open, close, append, rewind, snapshot, restore, drop };

class WorkerLink {
 public:
  // `program`: Python text. It is run by CAIRN_PYTHON, or python3. `shared` and `weights` are open
  // there, too, where there are any. `name` stands in errors. Errors: unsupported: there is no such
  // interpreter; io.
  static Result<std::unique_ptr<WorkerLink>> start(std::string_view name,
                                                   const std::string& program, int shared,
                                                   int weights);

  // The number of the next request: what a cancellation names.
  uint64_t next_sequence() const { return sequence_ + 1; }
  // What the worker answers; `limit` is for that, and for each sign of life before it.
  // Errors: cancelled; unsupported: what check finds missing; io: what the worker says, or what
  // became of it.
  Result<std::string> call(Request request, uint64_t session, std::span<const std::byte> payload,
                           std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;
  struct Answer {
    uint32_t status;
    std::string text;
  };

  WorkerLink(std::string_view name, ChildProcess process, Descriptor socket);
  Status send(std::span<const std::byte> bytes, Clock::time_point end);
  Status receive(std::span<std::byte> bytes, Clock::time_point end);
  Result<Answer> receive_answer(Clock::time_point end);
  Status wait(short events, Clock::time_point end);
  void read_output();
  Error broken(std::string_view what);

  std::string name_;
  ChildProcess process_;
  Descriptor socket_;
  uint64_t sequence_ = 0;
  std::string output_;          // The last that it wrote.
  bool has_output_ = true;      // Else it has closed that.
  std::optional<Error> error_;  // Nothing is asked any more.
};

}  // namespace cairn::runtimes
