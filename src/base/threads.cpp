// The team's waiting: how long to spin, when to give the CPU away, when to sleep.
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include "base/check.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kSpinBeforePark{80};
constexpr std::chrono::microseconds kSpinBeforeYield{200};
constexpr int kLooksPerRound = 64;  // Looks between two readings of the clock.
constexpr int kFlatTeamMax = 8;     // Up to here every worker watches every other one.

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Looks at `done` until it is true. Whoever waits longer than `patience` gives the CPU away between
// looks: then somebody else needs it, perhaps the very thread that is waited for.
template <class Done>
void spin_until(Done done, std::chrono::microseconds patience) {
  Clock::time_point start;
  for (int round = 0;; ++round) {
    for (int look = 0; look < kLooksPerRound; ++look) {
      if (done()) return;
      pause_cpu();
    }
    const Clock::time_point now = Clock::now();
    if (round == 0) start = now;
    if (now - start >= patience) std::this_thread::yield();
  }
}

// Counters wrap; what is ahead by less than half the range is ahead.
bool has_reached(const std::atomic<uint32_t>& counter, uint32_t target) {
  return int32_t(counter.load(std::memory_order_acquire) - target) >= 0;
}

// Whether this CPU is the first of its physical core's hyper-threads.
bool leads_its_core(int cpu) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                     "/topology/thread_siblings_list");
  int first = cpu;
  return !(file >> first) || first == cpu;
}

struct Cpus {
  std::vector<int> ids;  // The leaders of their cores first.
  int core_count = 0;
};

Cpus find_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  Cpus cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) {
    // More CPUs than a cpu_set_t can name: count them, and pin nothing.
    cpus.core_count = std::max(1, int(std::thread::hardware_concurrency()));
    return cpus;
  }
  std::vector<int> followers;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    (leads_its_core(cpu) ? cpus.ids : followers).push_back(cpu);
  }
  // A mask may hold followers only; then each of them stands for its core.
  cpus.core_count = int(cpus.ids.empty() ? followers.size() : cpus.ids.size());
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
  return find_cpus().ids;
}
int usable_core_count() {
  return find_cpus().core_count;
}

ThreadPool::ThreadPool(int thread_count)
    : thread_count_(thread_count), workers_(size_t(std::max(thread_count, 1))) {
  CHECK(thread_count >= 1 && thread_count <= 1024);
  if (thread_count == 1) return;
  const std::vector<int> cpus = usable_cpus();
  const bool can_pin = size_t(thread_count) <= cpus.size();
  oversubscribed_ = !cpus.empty() && !can_pin;
  if (can_pin) home_cpu_ = cpus[0];
  threads_.reserve(size_t(thread_count - 1));
  for (int worker = 1; worker < thread_count; ++worker) {
    threads_.emplace_back([this, worker] { work(worker); });
    if (can_pin) pin(threads_.back(), cpus[size_t(worker)]);
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
  if (home_cpu_ < 0 || home_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return;
  const std::lock_guard lock(park_mutex_);
  let_go_home();
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
  keep_home();
  task_ = &fn;
  const uint32_t this_run = run_.fetch_add(1, std::memory_order_seq_cst) + 1;
  // A worker first counts itself as parked and then looks at run_ again; here the order is the
  // other way round. So one of the two sees the other, and no worker sleeps through a run.
  if (parked_.load(std::memory_order_seq_cst) > 0) {
    { const std::lock_guard lock(park_mutex_); }
    park_wake_.notify_all();
  }
  fn(0);
  const auto patience = oversubscribed_ ? std::chrono::microseconds(0) : kSpinBeforeYield;
  for (int worker = 1; worker < thread_count_; ++worker) {
    const std::atomic<uint32_t>& finished = workers_[size_t(worker)].finished;
    spin_until([&] { return has_reached(finished, this_run); }, patience);
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
  for (const Worker& other : workers_) {
    spin_until([&] { return has_reached(other.arrived, epoch); }, patience);
  }
  if (thread_count_ > kFlatTeamMax) released_.store(epoch, std::memory_order_release);
}

void ThreadPool::work(int worker) {
  for (uint32_t run = 0; wait_for_run(run);) {
    ++run;
    (*task_)(worker);
    workers_[size_t(worker)].finished.store(run, std::memory_order_release);
  }
}

// Waits for the run after `last_run`; false when the team is dissolved instead.
bool ThreadPool::wait_for_run(uint32_t last_run) {
  const auto is_due = [&] {
    return stopping_.load(std::memory_order_seq_cst) ||
           run_.load(std::memory_order_seq_cst) != last_run;
  };
  const Clock::time_point start = Clock::now();
  spin_until([&] { return is_due() || Clock::now() - start >= kSpinBeforePark; },
             oversubscribed_ ? std::chrono::microseconds(0) : kSpinBeforeYield);
  if (!is_due()) {
    std::unique_lock lock(park_mutex_);
    parked_.fetch_add(1, std::memory_order_seq_cst);
    if (!is_due()) let_go_home();
    park_wake_.wait(lock, is_due);
    parked_.fetch_sub(1, std::memory_order_seq_cst);
  }
  return run_.load(std::memory_order_seq_cst) != last_run;
}

}  // namespace cairn
