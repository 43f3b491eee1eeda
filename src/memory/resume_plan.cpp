// What going to a position of a sequence costs, in tokens, steps and bytes.
#include <algorithm>

#include "memory/memory.h"

namespace cairn::memory {

// `states` is where the positions of states are written, for the holdings to point to.
std::vector<Holding> Memory::holdings(const Sequence& sequence,
                                      std::vector<int32_t>& states) const {
  states.assign(1, 0);
  for (const Anchor& anchor : sequence.anchors_) {
    if (anchor.state) states.push_back(anchor.position);
  }
  const bool has_live_state = sequence.state_ && states.back() < sequence.length();
  if (has_live_state) states.push_back(sequence.length());
  std::vector<Holding> holdings;
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    const GroupSpec& spec = store_->spec(group);
    Holding holding{.group = group, .spec = &spec, .pages = {}, .states = {}};
    if (spec.has_window()) {
      holding.pages = sequence.tables_[size_t(group)].pages();
    } else if (spec.kind == GroupKind::recurrent) {
      holding.states = states;
      holding.log_begin = store_->has_log() ? sequence.log_begin_ : sequence.length() + 1;
      holding.log_end = sequence.length();
    } else {
      continue;  // Full pages hold everything; the log and hidden rows limit nothing here.
    }
    holdings.push_back(holding);
  }
  return holdings;
}

std::vector<ResumableRun> Memory::resumable_runs(const Sequence& sequence) const {
  if (sequence.is_closed()) return {};
  std::vector<int32_t> states;
  return memory::resumable_runs(holdings(sequence, states), sequence.length());
}

ResumePlan Memory::plan(const Sequence& sequence, int32_t position, bool wants_logits) const {
  ResumePlan plan{.target = std::max(position, 0)};
  plan.forward_tokens = plan.target;
  if (sequence.is_closed()) {
    plan.reason = "The sequence is closed.";
    return plan;
  }
  std::vector<int32_t> states;
  const std::vector<Holding> held = holdings(sequence, states);
  const int32_t wanted = std::min(plan.target, sequence.length());
  Resolution resolution = resolve(held, wanted);
  if (resolution.position < wanted) {
    plan.limited_by = name(store_->spec(resolution.limiting_group).kind);
    plan.reason = fmt::format("The nearest position with what {} layers need is {}.",
                              plan.limited_by, resolution.position);
  }
  if (resolution.position == plan.target && plan.target > 0) {
    const Anchor* const anchor = sequence.anchor_at(plan.target);
    plan.logits_ready = (plan.target == sequence.length() && sequence.hidden_) ||
                        (anchor != nullptr && anchor->hidden);
    if (wants_logits && !plan.logits_ready) {
      resolution = resolve(held, plan.target - 1);
      plan.limited_by = "hidden";
      plan.reason = fmt::format("The hidden row at {} was not kept.", plan.target);
    }
  }
  plan.resume = resolution.position;
  plan.forward_tokens = plan.target - plan.resume;
  const auto above = std::upper_bound(states.begin(), states.end(), plan.resume);
  if (store_->has_states()) plan.recurrence_steps = plan.resume - *(above - 1);
  add_costs(sequence, plan);
  return plan;
}

ResumePlan Memory::extended(const Sequence& sequence, ResumePlan plan, int32_t position) const {
  CHECK(position >= plan.target);
  plan.target = position;
  plan.forward_tokens = position - plan.resume;
  plan.copied_bytes = plan.new_bytes = 0;
  if (!sequence.is_closed()) add_costs(sequence, plan);
  return plan;
}

void Memory::add_costs(const Sequence& sequence, ResumePlan& plan) const {
  if (plan.forward_tokens > 0) {
    const bool is_logged = plan.forward_tokens <= store_->log_step();
    for (int32_t group = 0; group < store_->group_count(); ++group) {
      const GroupSpec& spec = store_->spec(group);
      if (!spec.has_pages() || (spec.kind == GroupKind::log && !is_logged)) continue;
      // The page that the first token is written into: a copy if others share it, a new one if it
      // is a hole.
      const bool has_tail = plan.resume % spec.page_tokens() != 0;
      const PageTable& table = sequence.tables_[size_t(group)];
      const int32_t tail_page = plan.resume / spec.page_tokens();
      const bool is_hole = has_tail && (tail_page >= table.size() || table[tail_page] == kNoPage);
      const size_t tail_bytes = has_tail ? spec.block_bytes : 0;
      const int32_t new_pages = spec.page_count(plan.target) - spec.page_count(plan.resume);
      plan.copied_bytes += is_hole ? 0 : tail_bytes;
      plan.new_bytes += tail_bytes + size_t(new_pages) * spec.block_bytes;
    }
  }
  if (store_->has_states() && plan.forward_tokens + plan.recurrence_steps > 0) {
    plan.new_bytes += store_->spec(layout().recurrent_group).block_bytes;
  }
}

}  // namespace cairn::memory
