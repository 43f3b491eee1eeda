// The team's waiting: how long to spin, when to give the CPU away, when to sleep.
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <system_error>

#include "base/check.h"
#include "base/machine/control_groups.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kSpinBeforePark{80};
constexpr std::chrono::microseconds kSpinBeforeYield{200};
constexpr int kLooksPerRound = 64;           // Looks between two readings of the clock.
constexpr int kFlatTeamMax = 8;              // Up to here every worker watches every other one.
constexpr int kLateRuns = 2;                 // One after the other, until a worker rests.
constexpr int kRestMin = 4, kRestMax = 256;  // Runs.

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Looks at `done` until it is true. Whoever waits longer than `patience` gives the CPU away between
// looks: then somebody else needs it, perhaps the very thread that is waited for. Returns how long
// it waited, where that was beyond patience.
template <class Done>
Clock::duration spin_until(Done done, std::chrono::microseconds patience) {
  Clock::time_point start;
  Clock::duration waited{0};
  for (int round = 0;; ++round) {
    for (int look = 0; look < kLooksPerRound; ++look) {
      if (done()) return waited;
      pause_cpu();
    }
    const Clock::time_point now = Clock::now();
    if (round == 0) start = now;
    if (now - start < patience) continue;
    waited = now - start;
    std::this_thread::yield();
  }
}

// Counters wrap; what is ahead by less than half the range is ahead.
bool has_reached(const std::atomic<uint32_t>& counter, uint32_t target) {
  return int32_t(counter.load(std::memory_order_acquire) - target) >= 0;
}

// The first of the hyper-threads of this CPU's physical core.
int first_sibling(const std::string& root, int cpu) {
  std::ifstream file(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                     "/topology/thread_siblings_list");
  int first = cpu;
  return file >> first ? first : cpu;
}

struct Cpus {
  std::vector<int> ids;  // The leaders of their cores first.
  int core_count = 0;
};

Cpus find_cpus(const std::string& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  Cpus cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) {
    // More CPUs than a cpu_set_t can name: count them, and pin nothing.
    cpus.core_count = std::max(1, int(std::thread::hardware_concurrency()));
    return cpus;
  }
  std::vector<int> followers, cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    // A mask may leave out the first of a core's threads; then another one leads.
    const int core = first_sibling(root, cpu);
    const bool leads = std::find(cores.begin(), cores.end(), core) == cores.end();
    if (leads) cores.push_back(core);
    (leads ? cpus.ids : followers).push_back(cpu);
  }
  cpus.core_count = int(cores.size());
  cpus.ids.insert(cpus.ids.end(), followers.begin(), followers.end());
  return cpus;
}

void pin(std::thread& thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // A refusal (a container that forbids it) costs speed only.
  (void)::pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
}

}  // namespace

std::vector<int> usable_cpus() {
  return find_cpus("").ids;
}

// Threads beyond the quota would be stopped in the middle of a step, while others wait for them.
int usable_core_count(const std::string& root) {
  const double paid = std::clamp(read_control_groups(root).cpus, 1.0, 1024.0);
  return std::min(find_cpus(root).core_count, int(paid));
}

ThreadPool::ThreadPool(int thread_count) : ThreadPool(thread_count, MayLackThreads{}) {
  CHECK(int(threads_.size()) == thread_count - 1);
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::start(int thread_count) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool(thread_count, MayLackThreads{}));
  const int started = int(pool->threads_.size()) + 1;
  if (started == thread_count) return pool;
  return fail(ErrorCode::io, "threads: expected {}, found that the system gives {}", thread_count,
              started);
}

ThreadPool::ThreadPool(int thread_count, MayLackThreads /*tag*/)
    : thread_count_(thread_count),
      workers_(size_t(std::max(thread_count, 1))),
      records_(workers_.size()) {
  CHECK(thread_count >= 1 && thread_count <= 1024);
  if (thread_count == 1) return;
  const std::vector<int> cpus = usable_cpus();
  const bool can_pin = size_t(thread_count) <= cpus.size();
  oversubscribed_ = !cpus.empty() && !can_pin;
  if (can_pin) {
    cpus_.assign(cpus.begin(), cpus.begin() + thread_count);
    home_cpu_ = cpus_[0];
  }
  start_workers();
}

// As many as the system gives.
void ThreadPool::start_workers() {
  threads_.reserve(size_t(thread_count_ - 1));
  try {
    for (int worker = 1; worker < thread_count_; ++worker) {
      threads_.emplace_back([this, worker] { work(worker); });
      if (!cpus_.empty()) pin(threads_.back(), cpus_[size_t(worker)]);
    }
  } catch (const std::system_error&) {
    // start() says it.
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(park_mutex_);
    stopping_.store(true, std::memory_order_seq_cst);
  }
  park_wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  let_go_home();
}

// Left to itself the caller may share a CPU with one of the pinned workers, and then every barrier
// costs a time slice instead of a microsecond. The thread is not ours: the first worker that parks
// sets it free again. If the caller has ended meanwhile, the kernel knows no such thread.
void ThreadPool::keep_home() {
  if (home_cpu_ < 0) return;
  if (home_.load(std::memory_order_relaxed) == std::this_thread::get_id() &&
      guest_.cpu == home_cpu_) {
    return;
  }
  const std::lock_guard lock(park_mutex_);
  let_go_home();
  guest_.cpu = home_cpu_;
  guest_.system_id = int(::gettid());
  if (::sched_getaffinity(0, sizeof guest_.cpus_before, &guest_.cpus_before) != 0) return;
  cpu_set_t home;
  CPU_ZERO(&home);
  CPU_SET(home_cpu_, &home);
  // A refusal (a container that forbids it) costs speed only; it is not asked again and again.
  (void)::sched_setaffinity(0, sizeof home, &home);
  home_.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

// REQUIRES: park_mutex_ is held, or no worker is left.
void ThreadPool::let_go_home() {
  if (home_.load(std::memory_order_relaxed) == std::thread::id()) return;
  (void)::sched_setaffinity(guest_.system_id, sizeof guest_.cpus_before, &guest_.cpus_before);
  home_.store(std::thread::id(), std::memory_order_relaxed);
}

void ThreadPool::run(FunctionRef<void(int worker)> fn) {
  if (thread_count_ == 1) return fn(0);
  for (Worker& worker : workers_) worker.takes_part = true;
  home_cpu_ = cpus_.empty() ? -1 : cpus_[0];
  run_chosen(fn);
}

void ThreadPool::run_skipping_busy_workers(FunctionRef<void(int worker)> fn) {
  if (thread_count_ == 1) return fn(0);
  choose_team();
  const Clock::time_point start = Clock::now();
  run_chosen(fn);
  // More threads than CPUs: they always wait for each other.
  if (!oversubscribed_) send_to_rest(Clock::now() - start);
}

void ThreadPool::choose_team() {
  home_cpu_ = cpus_.empty() ? -1 : cpus_[0];
  for (size_t worker = 1; worker < workers_.size(); ++worker) {
    Record& record = records_[worker];
    workers_[worker].takes_part = record.runs_to_rest == 0;
    if (record.runs_to_rest == 0) continue;
    --record.runs_to_rest;
    if (record.for_the_caller && !cpus_.empty()) home_cpu_ = cpus_[worker];
  }
}

// Looks back at a run. A single late run is forgiven: machines stall now and then. Who has rested
// not long ago has to be in time.
void ThreadPool::send_to_rest(Duration elapsed) {
  const auto is_late = [&](Record& record, Duration waited) {
    record.late_runs = 5 * waited > 2 * elapsed ? record.late_runs + 1 : 0;
    return record.late_runs > 0;
  };
  const auto rest_if_often = [](Record& record, int late_runs, bool for_the_caller) {
    if (late_runs < kLateRuns && record.next_rest == 0) return;
    record.next_rest = std::clamp(2 * record.next_rest, kRestMin, kRestMax);
    record.runs_to_rest = record.next_rest;
    record.for_the_caller = for_the_caller;
  };
  Duration waited_for_caller{0};
  size_t last = 0;
  for (size_t worker = 1; worker < workers_.size(); ++worker) {
    if (!workers_[worker].takes_part) continue;
    last = worker;
    Record& record = records_[worker];
    waited_for_caller = std::max(waited_for_caller, workers_[worker].waited_for_caller);
    if (is_late(record, record.waited)) {
      rest_if_often(record, record.late_runs, false);
    } else {
      record.next_rest /= 2;
    }
  }
  if (last > 0 && is_late(records_[0], waited_for_caller)) {
    rest_if_often(records_[last], records_[0].late_runs, true);
  }
}

void ThreadPool::run_chosen(FunctionRef<void(int worker)> fn) {
  keep_home();
  task_ = &fn;
  ++run_;
  // Who rested has missed barriers.
  const uint32_t arrived = workers_[0].arrived.load(std::memory_order_relaxed);
  bool somebody_sleeps = false;
  for (int worker = 1; worker < thread_count_; ++worker) {
    Worker& other = workers_[size_t(worker)];
    if (!other.takes_part) continue;
    records_[size_t(worker)].waited = other.waited_for_caller = Duration{0};
    other.arrived.store(arrived, std::memory_order_relaxed);
    // A worker first says that it parks and then looks at its invitation again; here the order is
    // the other way round. So one of the two sees the other, and no worker sleeps through a run.
    other.invited.store(run_, std::memory_order_seq_cst);
    somebody_sleeps = somebody_sleeps || other.parked.load(std::memory_order_seq_cst);
  }
  if (somebody_sleeps) {
    { const std::lock_guard lock(park_mutex_); }
    park_wake_.notify_all();
  }
  fn(0);
  const auto patience = oversubscribed_ ? std::chrono::microseconds(0) : kSpinBeforeYield;
  for (int worker = 1; worker < thread_count_; ++worker) {
    if (!workers_[size_t(worker)].takes_part) continue;
    const std::atomic<uint32_t>& finished = workers_[size_t(worker)].finished;
    records_[size_t(worker)].waited +=
        spin_until([&] { return has_reached(finished, run_); }, patience);
  }
}

void ThreadPool::barrier(int worker) {
  if (thread_count_ == 1) return;
  DCHECK(worker >= 0 && worker < thread_count_);
  const auto patience = oversubscribed_ ? std::chrono::microseconds(0) : kSpinBeforeYield;
  std::atomic<uint32_t>& own = workers_[size_t(worker)].arrived;
  const uint32_t epoch = own.load(std::memory_order_relaxed) + 1;
  own.store(epoch, std::memory_order_release);
  // In a small team each watches all. In a large one that would be too much traffic: worker 0
  // watches all and tells the others.
  const bool watches_all = thread_count_ <= kFlatTeamMax || worker == 0;
  if (!watches_all) {
    spin_until([&] { return has_reached(released_, epoch); }, patience);
    return;
  }
  for (int index = 0; index < thread_count_; ++index) {
    const Worker& other = workers_[size_t(index)];
    if (!other.takes_part) continue;
    const Clock::duration waited =
        spin_until([&] { return has_reached(other.arrived, epoch); }, patience);
    if (worker == 0) records_[size_t(index)].waited += waited;
    if (index == 0) workers_[size_t(worker)].waited_for_caller += waited;
  }
  if (thread_count_ > kFlatTeamMax) released_.store(epoch, std::memory_order_release);
}

void ThreadPool::work(int worker) {
  Worker& own = workers_[size_t(worker)];
  for (uint32_t run = 0; wait_for_run(own, run);) {
    run = own.invited.load(std::memory_order_seq_cst);
    (*task_)(worker);
    own.finished.store(run, std::memory_order_release);
  }
}

// Waits for an invitation after that to `last_run`; false when the team is dissolved instead.
bool ThreadPool::wait_for_run(Worker& own, uint32_t last_run) {
  const auto is_invited = [&] { return own.invited.load(std::memory_order_seq_cst) != last_run; };
  const auto is_due = [&] { return stopping_.load(std::memory_order_seq_cst) || is_invited(); };
  const Clock::time_point start = Clock::now();
  spin_until([&] { return is_due() || Clock::now() - start >= kSpinBeforePark; },
             oversubscribed_ ? std::chrono::microseconds(0) : kSpinBeforeYield);
  if (!is_due()) {
    std::unique_lock lock(park_mutex_);
    own.parked.store(true, std::memory_order_seq_cst);
    if (!is_due()) let_go_home();
    park_wake_.wait(lock, is_due);
    own.parked.store(false, std::memory_order_seq_cst);
  }
  return is_invited();
}

}  // namespace cairn
