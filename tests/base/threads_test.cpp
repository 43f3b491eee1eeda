// The team: everyone runs, nobody runs twice, barriers separate, sleepers wake, too many threads on
// few CPUs still finish.
#include "base/threads.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/sanitized.h"
#include "tests/scratch_folder.h"

namespace cairn::threads_test {
namespace {

class Team : public testing::TestWithParam<int> {};

TEST_P(Team, RunsOnEveryWorkerOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.thread_count(), GetParam());
  std::vector<int> calls(size_t(GetParam()), 0);
  for (int run = 1; run <= 500; ++run) {
    pool.run([&](int worker) { ++calls[size_t(worker)]; });
    for (const int count : calls) ASSERT_EQ(count, run);
  }
}

// Between barriers everyone reads what everyone wrote before: plain ints, so that ThreadSanitizer
// sees whether the barrier orders them.
TEST_P(Team, BarriersSeparate) {
  const size_t thread_count = size_t(GetParam());
  ThreadPool pool(GetParam());
  std::vector<int> written(thread_count, 0);
  std::vector<int> wrong(thread_count, 0);
  for (int run = 0; run < 20; ++run) {
    pool.run([&](int worker) {
      for (int step = 1; step <= 50; ++step) {
        written[size_t(worker)] = run * 50 + step;
        pool.barrier(worker);
        for (const int value : written) wrong[size_t(worker)] += value != run * 50 + step;
        pool.barrier(worker);
      }
    });
  }
  EXPECT_EQ(wrong, std::vector<int>(thread_count, 0));
}

TEST_P(Team, ParkedWorkersWakeUp) {
  ThreadPool pool(GetParam());
  int total = 0;
  for (int run = 0; run < 5; ++run) {
    std::vector<int> calls(size_t(GetParam()), 0);
    pool.run([&](int worker) { calls[size_t(worker)] = 1; });
    total += std::accumulate(calls.begin(), calls.end(), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // Far more than they spin.
  }
  EXPECT_EQ(total, 5 * GetParam());
}

// 9 takes the way of large teams; 5 is more than the CPUs of a small machine.
INSTANTIATE_TEST_SUITE_P(Sizes, Team, testing::Values(1, 2, 3, 5, 9),
                         [](const auto& size) { return std::to_string(size.param) + "_threads"; });

TEST(ThreadPool, ClaimsEveryTaskOnce) {
  ThreadPool pool(3);
  constexpr int64_t kTasks = 10007;
  TaskCounter counter;
  std::vector<int> done(kTasks, 0);
  for (int run = 1; run <= 3; ++run) {
    counter.reset();
    pool.run([&](int) {
      for (int64_t first = counter.claim(16); first < kTasks; first = counter.claim(16)) {
        for (int64_t task = first; task < std::min(first + 16, kTasks); ++task) {
          ++done[size_t(task)];
        }
      }
    });
    EXPECT_EQ(std::count(done.begin(), done.end(), run), kTasks);
  }
}

TEST(ThreadPool, IsDissolvedWhetherSpinningParkedOrNeverUsed) {
  { const ThreadPool unused(4); }
  {
    ThreadPool spinning(4);
    spinning.run([](int) {});
  }
  ThreadPool parked(2);
  parked.run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

TEST(ThreadPool, TwoTeamsLiveSideBySide) {
  ThreadPool first(2), second(2);
  std::vector<int> calls(4, 0);
  std::thread other([&] {
    for (int run = 0; run < 200; ++run)
      second.run([&](int worker) { ++calls[size_t(2 + worker)]; });
  });
  for (int run = 0; run < 200; ++run) first.run([&](int worker) { ++calls[size_t(worker)]; });
  other.join();
  EXPECT_EQ(calls, std::vector<int>(4, 200));
}

TEST(ThreadPool, ManyMoreThreadsThanCpusFinishSoon) {
  const auto start = std::chrono::steady_clock::now();
  ThreadPool pool(int(usable_cpus().size()) * 4 + 1);
  std::atomic<int> calls{0};
  for (int run = 0; run < 20; ++run) {
    pool.run([&](int worker) {
      calls.fetch_add(1);
      pool.barrier(worker);
    });
  }
  EXPECT_EQ(calls.load(), 20 * pool.thread_count());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

std::vector<int> cpus_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// The caller is pinned while the team is awake; nothing of it may stay behind.
TEST(ThreadPool, TheCallerIsAsFreeAsBeforeOnceTheTeamSleepsOrIsDissolved) {
  const std::vector<int> before = cpus_of_this_thread();
  {
    ThreadPool pool(2);
    for (int round = 0; round < 3; ++round) {
      pool.run([](int) {});
      for (int wait = 0; wait < 1000 && cpus_of_this_thread() != before; ++wait) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      EXPECT_EQ(cpus_of_this_thread(), before);
    }
    pool.run([](int) {});
  }
  EXPECT_EQ(cpus_of_this_thread(), before);
}

TEST(ThreadPool, CallersMayTakeTurns) {
  const std::vector<int> before = cpus_of_this_thread();
  ThreadPool pool(2);
  for (int round = 0; round < 50; ++round) {
    pool.run([](int) {});
    std::thread([&] { pool.run([](int) {}); }).join();
  }
  for (int wait = 0; wait < 1000 && cpus_of_this_thread() != before; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(cpus_of_this_thread(), before);
}

// What takes part in a run, and makes the others wait if it is `sleeper`.
std::vector<int> members(ThreadPool& team, int sleeper = -1) {
  std::vector<std::atomic<int>> took_part(size_t(team.thread_count()));
  team.run_skipping_busy_workers([&](int worker) {
    took_part[size_t(worker)] = 1;
    if (worker == sleeper) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    team.barrier(worker);
    team.barrier(worker);
  });
  return {took_part.begin(), took_part.end()};
}

// Worker 1 is late in each run until it rests, and as soon as it is back. For how many runs it
// rested; on a busy machine the caller may be late too, and then it takes some more runs.
int length_of_a_rest(ThreadPool& team) {
  while (members(team, 1) == std::vector<int>{1, 1}) continue;
  int length = 1;
  while (members(team, 1) == std::vector<int>{1, 0}) ++length;
  return length;
}

TEST(ThreadPool, WhoIsOftenLateRestsForSomeRunsAndThenForMore) {
  if (usable_cpus().size() < 2) GTEST_SKIP() << "needs two CPUs";
  ThreadPool team(2);
  // Where the machine has made it late before, it begins with a longer one.
  const int first = length_of_a_rest(team);
  EXPECT_EQ(first % 4, 0);
  EXPECT_LE(first, 16);
  int longest = first;
  for (int rest = 0; rest < 20 && longest <= first; ++rest) longest = length_of_a_rest(team);
  EXPECT_EQ(longest, 2 * first);
  std::atomic<int> count = 0;
  team.run([&](int worker) {
    ++count;
    team.barrier(worker);
  });
  EXPECT_EQ(count, 2);  // Where everybody is needed, everybody comes.
}

TEST(ThreadPool, ALateRunIsForgiven) {
  if (usable_cpus().size() < 2) GTEST_SKIP() << "needs two CPUs";
  ThreadPool team(2);
  EXPECT_EQ(members(team, 1), (std::vector<int>{1, 1}));
  EXPECT_EQ(members(team), (std::vector<int>{1, 1}));
}

TEST(ThreadPool, ACallerThatMakesOthersWaitTakesAnothersCpu) {
  const std::vector<int> cpus = usable_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "needs two CPUs";
  ThreadPool team(2);
  // On a busy machine the other worker may itself come late, and then it takes some more runs.
  int cpu = -1;
  for (int run = 0; run < 1000 && cpu != cpus[1]; ++run) {
    team.run_skipping_busy_workers([&](int worker) {
      if (worker == 0) {
        cpu = ::sched_getcpu();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      team.barrier(worker);
    });
  }
  EXPECT_EQ(cpu, cpus[1]);
}

TEST(UsableCpus, AreDistinctAndAtLeastAsManyAsCores) {
  std::vector<int> cpus = usable_cpus();
  EXPECT_GE(usable_core_count(), 1);
  EXPECT_GE(cpus.size(), size_t(usable_core_count()));
  std::sort(cpus.begin(), cpus.end());
  EXPECT_EQ(std::adjacent_find(cpus.begin(), cpus.end()), cpus.end());
}

TEST(UsableCpus, AreCountedAsWholeCoresThatArePaidFor) {
  const test::ScratchFolder folder;
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder.file(path)).parent_path());
    test::write_to(folder.file(path), text);
  };
  const std::string root = folder.path().string();
  const int cpu_count = int(usable_cpus().size());
  EXPECT_EQ(usable_core_count(root), cpu_count) << "nothing is said of hyper-threads";
  write("proc/self/cgroup", "0::/box\n");
  write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  for (const auto& [quota, expected] :
       {std::pair("max", cpu_count), std::pair("50000", 1), std::pair("100000", 1),
        std::pair("190000", 1), std::pair("200000", std::min(2, cpu_count)),
        std::pair("99999999", cpu_count)}) {
    write("sys/fs/cgroup/box/cpu.max", std::string(quota) + " 100000\n");
    EXPECT_EQ(usable_core_count(root), expected) << quota;
  }
  for (const int cpu : usable_cpus()) {
    write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          "1000,2000-2001\n");
  }
  EXPECT_EQ(usable_core_count(root), 1) << "one core, whose first thread is not ours";
}

using ThreadPoolDeathTest = testing::Test;
// A process with little room left, in which a thread's stack has none.
TEST(ThreadPoolDeathTest, ThreadsThatTheSystemRefusesAreAnError) {
  if (test::kIsSanitized) GTEST_SKIP() << "needs a limit of the address space";
  const auto check = [] {
    const struct rlimit limit = {rlim_t(1) << 30, rlim_t(1) << 30};
    ::setrlimit(RLIMIT_AS, &limit);
    const auto refused = ThreadPool::start(1000);
    if (refused) ::_exit(1);
    std::fputs(refused.error().message.c_str(), stderr);
    ::_exit(ThreadPool::start(2) ? 0 : 2);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(0),
              "^threads: expected 1000, found that the system gives [0-9]+$");
}

TEST(ThreadPoolDeathTest, NoThreadsIsAMistake) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(ThreadPool(0), "check failed");
}

}  // namespace
}  // namespace cairn::threads_test
