// The end of a recording: makes the plans of the recorded ops.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "device/op_fields.h"
#include "device/step.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/replay.h"

namespace cairn {

namespace {

// Whether an op has rows for outputs: then it stands behind outputs(), or is it.
struct OutputFinder {
  Tensor hidden;
  bool found = false;

  template <class AnyRows>
  void see(const AnyRows& rows) {
    found = found || (rows.exists() && rows.set == RowSet::outputs);
  }
  template <class AnyRows>
  void read(const AnyRows& rows) {
    see(rows);
  }
  template <class AnyRows>
  void write(const AnyRows& rows) {
    see(rows);
  }
  template <class AnyRows>
  void change(const AnyRows& rows) {
    CHECK(!rows.exists() || value_of_reference(rows.offset) != hidden.value);  // It is kept.
    see(rows);
  }
  void read_plane(int32_t) {}
  void write_plane(int32_t) {}
  void write_state(int32_t) {}
  void read_constant(const auto&) {}
  void read_weights(const Weight&) {}
};

std::vector<Op> ops_of_head(const std::vector<Op>& ops, Tensor hidden) {
  std::vector<Op> head;
  for (Op op : ops) {
    OutputFinder finder{.hidden = hidden};
    std::visit([&](auto& fields) { visit_fields(fields, finder); }, op);
    if (finder.found && !std::holds_alternative<op::GatherOutputs>(op)) head.push_back(op);
  }
  return head;
}

}  // namespace

Plans Graph::finish(Tensor logits, const Limits& limits) && {
  ReplayCut cut = cut_replay(ops_, values_);
  const PlanOutputs outputs{.hidden = hidden_, .logits = logits};
  Plans plans{
      .step = make_plan(std::move(cut.step_ops), values_, outputs, limits, options_.alignment),
      .log_widths = std::move(cut.log_widths),
      .constants = std::move(constants_)};
  const Limits head_limits{.row_count_max = 0, .output_count_max = limits.output_count_max};
  if (hidden_.exists())
    plans.head =
        make_plan(ops_of_head(ops_, hidden_), values_, outputs, head_limits, options_.alignment);
  // The layers of a replay do not wait for each other, so that the values of all of them live at
  // the same time: few rows keep them within the workspace of a step.
  const Limits replay_limits{.row_count_max = std::min(limits.row_count_max, kReplayRowsMax),
                             .output_count_max = 0};
  plans.replay =
      make_plan(std::move(cut.replay_ops), values_, {}, replay_limits, options_.alignment);
  return plans;
}

}  // namespace cairn
