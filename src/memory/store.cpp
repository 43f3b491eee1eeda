// How large the pools may become, how long the log is, and where room comes from.
#include "memory/store.h"

#include <algorithm>
#include <utility>

#include "memory/transaction.h"

namespace cairn::memory {

namespace {

constexpr size_t kWarmBytesMax = size_t(8) << 20;

// How many blocks of a group the budget could ever hold: what the pool reserves addresses for.
int32_t block_count_max(const GroupSpec& group, size_t budget_bytes) {
  constexpr size_t kBlocksMax = size_t(1) << 22;
  return int32_t(std::min(budget_bytes / group.block_bytes + 1, kBlocksMax));
}

// So many steps in turn have to be narrower before fewer states stay warm.
constexpr int32_t kNarrowSteps = 64;

// A step of the log costs nothing to keep until its bytes come near those of a state; half of that
// leaves the states the larger part. Few bytes make a short log, and one plan replays all of it.
int32_t chosen_log_step(const Layout& layout) {
  if (layout.log_group < 0) return 0;
  const size_t state_bytes = layout.groups[size_t(layout.recurrent_group)].block_bytes;
  const size_t token_bytes =
      std::max<size_t>(layout.groups[size_t(layout.log_group)].block_bytes / kLogPageTokens, 1);
  const size_t least = kLogPageTokens, most = kReplayRowsMax;
  const size_t step = std::clamp(state_bytes / token_bytes / 2, least, most);
  return int32_t(step) / kLogPageTokens * kLogPageTokens;
}

// In the steady state a step takes one block and lets go of another. What the log's tails hold, log
// pages and windows, goes a whole step's pages at once and is taken one by one.
int32_t warm_count_max(const Store& store, int32_t group) {
  const GroupSpec& spec = store.spec(group);
  const size_t share = kWarmBytesMax / size_t(store.group_count()) / spec.block_bytes;
  const bool follows_tails = spec.has_window() || spec.kind == GroupKind::log;
  const int32_t least = follows_tails ? store.log_step() / spec.page_tokens() + 1 : 1;
  return std::max(least, int32_t(std::min<size_t>(share, 1024)));
}

}  // namespace

Store::Store(Layout layout, const Options& options, DeviceMemory& device)
    : device_(device),
      layout_(std::move(layout)),
      options_(options),
      ledger_(options.budget_bytes) {
  if (options_.log_step == 0) options_.log_step = chosen_log_step(layout_);
  if (options_.log_tokens_max == 0) options_.log_tokens_max = 2 * options_.log_step;
}

Store::~Store() = default;

Status Store::check_budget() const {
  size_t needed_bytes = 0;
  for (const GroupSpec& spec : layout_.groups) {
    needed_bytes += spec.block_bytes * (spec.kind == GroupKind::recurrent ? 2 : 1);
  }
  if (needed_bytes <= options_.budget_bytes) return Ok{};
  return fail(ErrorCode::memory_full,
              "memory budget: expected at least {} bytes (a page of each group of layers, two "
              "states), found {}",
              needed_bytes, options_.budget_bytes);
}

Result<std::unique_ptr<Store>> Store::create(Layout layout, const Options& options,
                                             DeviceMemory& device) {
  std::unique_ptr<Store> store(new Store(std::move(layout), options, device));
  const Options& chosen = store->options_;
  if (chosen.log_step < 0 || chosen.log_tokens_max < chosen.log_step) {
    return fail(ErrorCode::invalid_argument,
                "log: expected a step of 0 or more and a length of at least that, found {} and {}",
                options.log_step, options.log_tokens_max);
  }
  CAIRN_TRY(store->check_budget());
  std::vector<std::byte*> first_blocks;
  for (int32_t group = 0; group < store->group_count(); ++group) {
    CAIRN_TRY(Pool pool, store->create_pool(store->spec(group), warm_count_max(*store, group)));
    store->pools_.push_back(std::make_unique<Pool>(std::move(pool)));
    first_blocks.push_back(store->pools_.back()->first());
  }
  store->layout_.attach(first_blocks);
  return store;
}

// Addresses for as many blocks as the budget could ever hold.
Result<Pool> Store::create_pool(const GroupSpec& spec, int32_t warm_count_max) {
  Result<Pool> pool = Pool::create({.block_bytes = spec.block_bytes,
                                    .block_count_max = block_count_max(spec, options_.budget_bytes),
                                    .warm_count_max = warm_count_max,
                                    .poisons = options_.poisons},
                                   &ledger_, &device_);
  if (pool || pool.error().code != ErrorCode::memory_full) return pool;
  return fail(ErrorCode::memory_full,
              "memory budget: expected addresses for {} bytes in each of {} groups of layers, "
              "found fewer ({}); a smaller --memory-budget needs fewer",
              options_.budget_bytes, group_count(), pool.error().message);
}

PageId Store::take(int32_t group, uint64_t tenant) {
  if (takes_left_-- == 0) return kNoPage;
  PageId block = pool(group).take(tenant);
  if (block == kNoPage) {
    trim();
    block = pool(group).take(tenant);
  }
  keep_within_budget();
  return block;
}

bool Store::take_others(size_t bytes) {
  if (!ledger_.take(bytes)) {
    trim();
    if (!ledger_.take(bytes)) return false;
  }
  other_bytes_ += bytes;
  keep_within_budget();
  return true;
}

void Store::give_back_others(size_t bytes) {
  CHECK(bytes <= other_bytes_);
  other_bytes_ -= bytes;
  ledger_.give_back(bytes);
}

size_t Store::resident_bytes() const {
  size_t bytes = 0;
  for (const auto& pool : pools_) bytes += pool->resident_bytes();
  return bytes;
}

// What was counted by one group and is still backed must not add to what another one takes. Slack
// goes a little at a time, where most of it is.
void Store::keep_within_budget() {
  constexpr size_t kAtOnceBytes = size_t(4) << 20;
  const size_t of_blocks = ledger_.budget_bytes() - other_bytes_;
  const size_t limit = of_blocks + pools_.size() * device_.slab_bytes();
  for (size_t resident = resident_bytes(); resident > limit; resident = resident_bytes()) {
    const auto most = std::max_element(
        pools_.begin(), pools_.end(),
        [](const auto& a, const auto& b) { return a->slack_bytes() < b->slack_bytes(); });
    const size_t slack = (*most)->slack_bytes();
    if (slack == 0) return;  // Blocks that are smaller than a unit.
    (*most)->reduce_slack(slack - std::min(slack, resident - limit + kAtOnceBytes));
  }
}

size_t Store::available_bytes() const {
  size_t bytes = ledger_.free_bytes();
  for (const auto& pool : pools_) bytes += size_t(pool->warm_count()) * pool->block_bytes();
  return bytes;
}

PageCounts Store::page_counts() const {
  PageCounts counts;
  for (int32_t group = 0; group < group_count(); ++group) {
    if (!spec(group).has_pages()) continue;
    const int32_t shared_count = pool(group).shared_count();
    counts.unshared += pool(group).used_count() - shared_count;
    counts.shared += shared_count;
    counts.warm += pool(group).warm_count();
  }
  return counts;
}

Usage Store::usage() const {
  Usage usage{.other_bytes = other_bytes_, .budget_bytes = ledger_.budget_bytes()};
  for (int32_t group = 0; group < group_count(); ++group) {
    const Pool& of_group = pool(group);
    const size_t used_bytes = size_t(of_group.used_count()) * of_group.block_bytes();
    usage.warm_bytes += size_t(of_group.warm_count()) * of_group.block_bytes();
    switch (spec(group).kind) {
      case GroupKind::recurrent:
        usage.state_bytes += used_bytes;
        break;
      case GroupKind::hidden:
        usage.hidden_bytes += used_bytes;
        break;
      case GroupKind::log:
        usage.log_bytes += used_bytes;
        break;
      default:
        usage.page_bytes += used_bytes;
    }
  }
  CHECK(usage.used_bytes() + usage.warm_bytes == ledger_.held_bytes());
  return usage;
}

void Store::trim() {
  for (const auto& pool : pools_) pool->trim();
}

void Store::trim_to_kept() {
  for (const auto& pool : pools_) pool->trim_to_kept();
}

void Store::keep_states_warm(int32_t count) {
  if (!has_states()) return;
  pool(layout_.recurrent_group).keep_cleared(count);
  if (has_log()) pool(layout_.log_group).keep(options_.log_tokens_max / kLogPageTokens + 1);
}

void Store::expect_states(int32_t count) {
  if (!has_states()) return;
  Pool& states = pool(layout_.recurrent_group);
  expected_states_ = std::max(expected_states_, count);
  ++narrow_steps_;
  const bool is_wide = count >= states.warm_max();
  if (!is_wide && narrow_steps_ < kNarrowSteps) return;
  states.set_warm_max(expected_states_);
  expected_states_ = narrow_steps_ = 0;
}

std::unique_ptr<TransactionWork> Store::borrow_work() {
  if (idle_work_.empty()) return std::make_unique<TransactionWork>();
  auto work = std::move(idle_work_.back());
  idle_work_.pop_back();
  return work;
}

void Store::return_work(std::unique_ptr<TransactionWork> work) {
  idle_work_.push_back(std::move(work));
}

}  // namespace cairn::memory
