// A thread pool that runs one function at a time on all its workers. For many very short calls:
// workers spin a little before they park, a barrier costs well under a microsecond, and nothing is
// allocated after construction. Invariants: 1. run() returns only when every worker has left the
// function. 2. What the caller wrote before run() is visible to the workers, and what they wrote is
// visible after it.
// Thread rule: one thread at a time may call run(), and not from inside a run.
#pragma once

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"

namespace cairn {

// The CPUs this process may use: first one of each physical core, then their hyper-threads.
std::vector<int> usable_cpus();
// The number of physical cores of these CPUs, or of whole CPUs that the process's control groups
// pay for where these are fewer: a good number of threads for arithmetic. At least 1. `root` is
// where /proc and /sys lie: tests have trees of their own.
int usable_core_count(const std::string& root = "");

class ThreadPool {
 public:
  // The calling thread is worker 0, so thread_count - 1 threads are started. They are pinned to
  // CPUs of their own where there are enough of them, and so is the caller while the team is awake:
  // from a run until a worker parks, so that runs in quick succession make no system calls. (What
  // the caller starts meanwhile inherits its CPU.)
  // REQUIRES: 1 <= thread_count <= 1024, and that the system gives them.
  explicit ThreadPool(int thread_count);
  // The same where it may refuse. Errors: io, with how many there were.
  static Result<std::unique_ptr<ThreadPool>> start(int thread_count);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int thread_count() const { return thread_count_; }

  // Calls fn(worker) for every worker at the same time. fn must not throw.
  void run(FunctionRef<void(int worker)> fn);

  // The same, but skips workers whose CPU is used by other programs, since waiting for them can
  // cost more than their help is worth. A worker that makes the others wait for more than two
  // fifths of a run, twice in a row, is skipped for some runs, and for more each time until it is
  // in time again. If it was the caller, the last worker is skipped and the caller moves to its
  // CPU. REQUIRES: fn does all the work whichever workers take part.
  void run_skipping_busy_workers(FunctionRef<void(int worker)> fn);

  // Inside a run: whether that worker is in it.
  bool takes_part(int worker) const { return workers_[size_t(worker)].takes_part; }

  // Inside a run: returns when all workers that take part have called it. Each must call it equally
  // often.
  void barrier(int worker);

 private:
  using Duration = std::chrono::steady_clock::duration;

  struct alignas(64) Worker {
    std::atomic<uint32_t> arrived{0};   // Barriers that this worker has reached.
    std::atomic<uint32_t> invited{0};   // The last run that it is to take part in.
    std::atomic<uint32_t> finished{0};  // The last run that it has left.
    std::atomic<bool> parked{false};    // It sleeps or is about to.
    bool takes_part = true;             // In this run. Written by the caller between runs.
    Duration waited_for_caller{0};      // In this run's barriers, where that was long.
  };

  // What the caller remembers of a worker.
  struct Record {
    Duration waited{0};  // For this worker, in this run's barriers, where that was long.
    int late_runs = 0;   // One after the other; of the caller too.
    int runs_to_rest = 0;
    int next_rest = 0;
    bool for_the_caller = false;  // It rests so that the caller may have its CPU.
  };

  // The caller while it is pinned. Changes under park_mutex_.
  struct Guest {
    int system_id = 0;
    int cpu = -1;  // Where it is pinned.
    cpu_set_t cpus_before;
  };

  struct MayLackThreads {};
  ThreadPool(int thread_count, MayLackThreads);
  void start_workers();
  void work(int worker);
  bool wait_for_run(Worker& own, uint32_t last_run);
  void choose_team();
  void run_chosen(FunctionRef<void(int worker)> fn);
  void send_to_rest(Duration elapsed);
  void keep_home();
  void let_go_home();

  const int thread_count_;
  bool oversubscribed_ = false;  // More threads than CPUs: waiting must give the CPU away.
  int home_cpu_ = -1;            // Where the caller stays while the team is awake; -1: anywhere.
  std::vector<int> cpus_;        // Of each worker; empty if no thread is pinned.
  std::vector<Worker> workers_;
  std::vector<Record> records_;  // Of each worker.
  std::vector<std::thread> threads_;
  FunctionRef<void(int worker)>* task_ = nullptr;  // Published by the invitations.
  uint32_t run_ = 0;                               // Counts the runs.

  alignas(64) std::atomic<uint32_t> released_{0};  // Barriers passed; used by large teams.
  std::atomic<bool> stopping_{false};
  std::mutex park_mutex_;
  std::condition_variable park_wake_;
  Guest guest_;                          // Who is at home, if home_ says so.
  std::atomic<std::thread::id> home_{};  // The thread that is pinned; none: the default id.
};

// Hands out the indices 0, 1, 2, … in chunks, first come, first served.
struct alignas(64) TaskCounter {
  std::atomic<int64_t> next{0};

  // The first index of a chunk that is now the caller's; at or past the task count: nothing left.
  int64_t claim(int64_t chunk) { return next.fetch_add(chunk, std::memory_order_relaxed); }
  // REQUIRES: no thread claims at the same time (between runs, or between two barriers).
  void reset() { next.store(0, std::memory_order_relaxed); }
};

}  // namespace cairn
