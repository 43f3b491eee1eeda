// What tenants keep of the queue, of the places of jobs that run, and of memory, whatever the
// others ask for. With fewer than two tenants nobody keeps anything. docs/scheduling.md, "Tenants".
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/schedule/scheduled_job.h"
#include "memory/cache/prefix_cache.h"

namespace cairn {

struct TenantShares {
  std::vector<uint64_t> tenants;
  double part = 1;  // Of an even share of memory, that each of them keeps.
};

class TenantRules {
 public:
  // Both must outlive it.
  TenantRules(const ScheduledJobs* jobs, memory::PrefixCache* cache) : jobs_(jobs), cache_(cache) {}

  void set(const TenantShares& shares, size_t budget_bytes);
  bool has_tenants() const { return tenant_count_ > 0; }

  // An error where too many jobs of the client wait (without tenants: too many at all).
  Status check_queue(const Client& client, int32_t waiting_max) const;
  // Whether one more job may run beside `running_count`. Half of the places are kept for tenants
  // that run nothing, one for each, so that they need not wait until another's answers end.
  bool has_place(const ScheduledJob& job, int32_t running_count, int32_t running_max) const;
  // Nothing else of its tenant runs or is read. Without tenants this holds for every job.
  bool is_alone(const ScheduledJob& job) const;
  // Whether the job leaves to others what they hold within their shares. A job whose tenant holds
  // nothing else need not, so that each tenant gets on with one job at a time.
  bool spares_shares(const ScheduledJob& job) const;
  // Whether what a preempted job gives up can be evicted for a job that spares shares.
  bool may_use(const ScheduledJob& job, const ScheduledJob& preempted) const;

 private:
  // Whether another job of the same tenant satisfies `is`.
  template <typename Is>
  bool has_kin(const ScheduledJob& job, const Is& is) const;

  const ScheduledJobs* jobs_;
  memory::PrefixCache* cache_;
  int32_t tenant_count_ = 0;
};

}  // namespace cairn
