// Ops are assigned to stages (graph/stage_assignment.h); values whose stages do not overlap may
// share memory.
#include "graph/planner.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "device/op_fields.h"
#include "graph/reference.h"
#include "graph/stage_assignment.h"

namespace cairn {

namespace {

constexpr int64_t kRowAlignment = 64;  // Rows start on cache lines.

// Over which stages each value is used; last: -1, never.
struct Uses {
  struct Span {
    int32_t first = -1, last = -1;
    bool is_written = false;
  };
  std::vector<Span> values;
  int32_t stage = 0;  // Of the op that is visited.

  template <class AnyRows>
  void use(const AnyRows& rows, bool writes) {
    if (!rows.exists()) return;
    Span& span = values[size_t(value_of_reference(rows.offset))];
    span.first = span.first < 0 ? stage : std::min(span.first, stage);
    span.last = std::max(span.last, stage);
    span.is_written = span.is_written || writes;
  }
  template <class AnyRows>
  void read(const AnyRows& rows) {
    use(rows, false);
  }
  template <class AnyRows>
  void write(const AnyRows& rows) {
    use(rows, true);
  }
  template <class AnyRows>
  void change(const AnyRows& rows) {
    use(rows, true);
  }
  void read_plane(int32_t) {}
  void write_plane(int32_t) {}
  void write_state(int32_t) {}
  void read_constant(const auto&) {}
  void read_weights(const Weight&) {}
};

// Last walk: references become places in the workspace.
struct Placer {
  const std::vector<int64_t>& offsets;  // Bytes, by value.
  const std::vector<int32_t>& strides;  // Bytes, by value.

  void place(Rows& rows) const {
    if (!rows.exists()) return;
    const size_t value = size_t(value_of_reference(rows.offset));
    rows.offset = offsets[value] / int64_t(sizeof(float)) + column_of_reference(rows.offset);
    rows.stride = strides[value] / int32_t(sizeof(float));
  }
  void place(QuantizedRows& rows) const {
    if (!rows.exists()) return;
    const size_t value = size_t(value_of_reference(rows.offset));
    rows.offset = offsets[value];
    rows.stride = strides[value];
  }
  template <class AnyRows>
  void read(AnyRows& rows) {
    place(rows);
  }
  template <class AnyRows>
  void write(AnyRows& rows) {
    place(rows);
  }
  template <class AnyRows>
  void change(AnyRows& rows) {
    place(rows);
  }
  void read_plane(int32_t) {}
  void write_plane(int32_t) {}
  void write_state(int32_t) {}
  void read_constant(const auto&) {}
  void read_weights(const Weight&) {}
};

struct Lifetime {
  int32_t first_stage = 0, last_stage = -1;
  int64_t offset = 0, bytes = 0;

  bool exists() const { return last_stage >= 0; }
  bool meets(const Lifetime& other) const {
    return first_stage <= other.last_stage && other.first_stage <= last_stage;
  }
};

// Each value goes to the lowest place that no value of an overlapping lifetime has; large ones
// first, since small ones fit in between.
size_t place_values(std::vector<Lifetime>& lifetimes) {
  std::vector<size_t> by_size(lifetimes.size());
  std::iota(by_size.begin(), by_size.end(), size_t(0));
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  int64_t end = 0;
  std::vector<const Lifetime*> placed, others;
  for (const size_t value : by_size) {
    Lifetime& own = lifetimes[value];
    if (!own.exists()) continue;
    others.clear();
    for (const Lifetime* life : placed) {
      if (life->meets(own)) others.push_back(life);
    }
    std::sort(others.begin(), others.end(),
              [](const Lifetime* a, const Lifetime* b) { return a->offset < b->offset; });
    for (const Lifetime* other : others) {
      if (own.offset + own.bytes <= other->offset) break;
      own.offset = std::max(own.offset, other->offset + other->bytes);
    }
    end = std::max(end, own.offset + own.bytes);
    placed.push_back(&own);
  }
  return size_t(end);
}

int32_t row_stride(const Value& value) {
  const int64_t bytes = value.quantized
                            ? QuantizedRows::row_bytes(value.width, value.rounds_prompts)
                            : value.width * int64_t(4);
  return int32_t((bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment);
}

Rows rows_of(Tensor tensor, const std::vector<Value>& values) {
  if (!tensor.exists()) return {};
  return {.offset = pack_reference(tensor.value, tensor.column),
          .width = tensor.width,
          .set = values[size_t(tensor.value)].set};
}

std::vector<Lifetime> lifetimes_of(const Uses& uses, const std::vector<Value>& values,
                                   const std::vector<int32_t>& strides, const PlanOutputs& outputs,
                                   const PlanLimits& limits, int32_t stage_count) {
  std::vector<Lifetime> lifetimes(values.size());
  for (size_t value = 0; value < values.size(); ++value) {
    const bool of_tokens = values[value].set == RowSet::tokens;
    const int32_t row_count = of_tokens ? limits.row_count_max : limits.output_count_max;
    lifetimes[value] = {.first_stage = uses.values[value].first,
                        .last_stage = uses.values[value].last,
                        .bytes = int64_t(strides[value]) * row_count};
  }
  for (const Tensor end : {outputs.hidden, outputs.logits}) {
    if (!end.exists()) continue;
    Lifetime& lifetime = lifetimes[size_t(end.value)];
    if (!uses.values[size_t(end.value)].is_written) lifetime.first_stage = 0;
    lifetime.last_stage = stage_count;
  }
  return lifetimes;
}

// The ops of each stage: fused ops one after another with producers first, and single ops.
void put_in_order(std::vector<Op>& ops, const StageAssignment& assignment, int32_t stage_count,
                  Plan& plan) {
  std::vector<std::vector<size_t>> producers(assignment.fused_ops.size()),
      followers(assignment.fused_ops.size());
  for (size_t op = 0; op < ops.size(); ++op) {
    const OpAssignment& place = assignment.ops[op];
    (place.is_producer ? producers : followers)[size_t(place.fused)].push_back(op);
  }
  for (int32_t stage = 0; stage < stage_count; ++stage) {
    const int32_t first_op = int32_t(plan.ops.size());
    for (size_t i = 0; i < assignment.fused_ops.size(); ++i) {
      if (assignment.fused_ops[i].stage != stage) continue;
      const PieceShape& shape = assignment.fused_ops[i].shape;
      const FusedOps fused{.first_op = int32_t(plan.ops.size()),
                           .op_count = int32_t(producers[i].size() + followers[i].size()),
                           .producer_count = int32_t(producers[i].size()),
                           .set = shape.set,
                           .width = shape.width,
                           .alignment = shape.alignment};
      if (fused.op_count > 1) plan.fused_ops.push_back(fused);
      for (const auto* list : {&producers[i], &followers[i]}) {
        for (const size_t op : *list) {
          plan.ops.push_back(std::move(ops[op]));
          plan.pieces.push_back(assignment.ops[op].piece);
        }
      }
    }
    plan.stages.push_back({first_op, int32_t(plan.ops.size()) - first_op});
  }
}

}  // namespace

Plan make_plan(std::vector<Op> ops, const std::vector<Value>& values, const PlanOutputs& outputs,
               const PlanLimits& limits, const PieceAlignment& alignment) {
  const StageAssignment assignment = assign_stages(ops, values.size(), alignment);
  Uses uses{.values = std::vector<Uses::Span>(values.size())};
  int32_t stage_count = 0;
  for (size_t op = 0; op < ops.size(); ++op) {
    uses.stage = assignment.stage_of(op);
    std::visit([&](auto& fields) { visit_fields(fields, uses); }, ops[op]);
    stage_count = std::max(stage_count, uses.stage + 1);
  }
  std::vector<int32_t> strides;
  for (const Value& value : values) strides.push_back(row_stride(value));
  std::vector<Lifetime> lifetimes =
      lifetimes_of(uses, values, strides, outputs, limits, stage_count);

  Plan plan{.hidden = rows_of(outputs.hidden, values),
            .logits = rows_of(outputs.logits, values),
            .workspace_bytes = place_values(lifetimes),
            .row_count_max = limits.row_count_max,
            .output_count_max = limits.output_count_max};
  std::vector<int64_t> offsets;
  for (const Lifetime& lifetime : lifetimes) offsets.push_back(lifetime.offset);
  Placer placer{.offsets = offsets, .strides = strides};
  placer.place(plan.hidden);
  placer.place(plan.logits);
  for (Op& op : ops) std::visit([&](auto& fields) { visit_fields(fields, placer); }, op);
  put_in_order(ops, assignment, stage_count, plan);
  return plan;
}

}  // namespace cairn
