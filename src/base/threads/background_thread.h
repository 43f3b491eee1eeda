// How threads run that work beside steps. Thread rule: each is called by the thread itself.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/threads.h"

namespace cairn {

// It runs where there is room; what started it may be pinned to a CPU.
inline void run_anywhere() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : usable_cpus()) CPU_SET(size_t(cpu), &cpus);
  (void)::sched_setaffinity(0, sizeof cpus, &cpus);
}

// Steps go before it.
inline void give_way() {
  (void)::setpriority(PRIO_PROCESS, id_t(::gettid()), 10);
}

}  // namespace cairn
