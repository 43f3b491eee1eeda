// Counted anew at each question: the jobs are few.
#include "engine/schedule/tenant_rules.h"

#include <algorithm>
#include <set>

namespace cairn {

namespace {

// However many tenants there are, so many jobs of each may wait.
constexpr int32_t kWaitingOfTenant = 4;

}  // namespace

void TenantRules::set(const TenantShares& shares, size_t budget_bytes) {
  const size_t count = shares.tenants.size();
  tenant_count_ = count < 2 ? 0 : int32_t(count);
  const double share_bytes = count < 2 ? 0 : double(budget_bytes) * shares.part / double(count);
  cache_->set_shares(shares.tenants, size_t(share_bytes));
}

Status TenantRules::check_queue(const Client& client, int32_t waiting_max) const {
  if (has_tenants()) waiting_max = std::max(waiting_max / tenant_count_, kWaitingOfTenant);
  const auto waiting = std::count_if(jobs_->begin(), jobs_->end(), [&](const auto& job) {
    const bool is_counted = !has_tenants() || job->client == &client;
    return is_counted && job->stage == ScheduledJob::Stage::waiting && !job->has_ended;
  });
  if (waiting < waiting_max) return Ok{};
  return fail(ErrorCode::no_room, "queue: expected at most {} waiting requests, found {}",
              waiting_max, waiting);
}

bool TenantRules::has_place(const ScheduledJob& job, int32_t running_count,
                            int32_t running_max) const {
  if (is_alone(job)) return running_count < running_max;
  std::set<const Client*> running;
  for (const auto& other : *jobs_) {
    if (other->is_running()) running.insert(other->client);
  }
  const int32_t absent = std::max(tenant_count_ - int32_t(running.size()), 0);
  return running_count + std::min(absent, running_max / 2) < running_max;
}

template <typename Is>
bool TenantRules::has_kin(const ScheduledJob& job, const Is& is) const {
  return std::any_of(jobs_->begin(), jobs_->end(), [&](const auto& other) {
    return other.get() != &job && other->client == job.client && !other->has_ended && is(*other);
  });
}

bool TenantRules::is_alone(const ScheduledJob& job) const {
  return !has_tenants() || !has_kin(job, [](const ScheduledJob& other) {
    return other.is_running() || other.read_stored() != nullptr;
  });
}

bool TenantRules::spares_shares(const ScheduledJob& job) const {
  return has_tenants() && has_kin(job, [](const ScheduledJob& other) {
           return other.has_memory() || other.read_stored() != nullptr;
         });
}

bool TenantRules::may_use(const ScheduledJob& job, const ScheduledJob& preempted) const {
  return preempted.client == job.client || cache_->would_give_more(preempted.tenant());
}

}  // namespace cairn
