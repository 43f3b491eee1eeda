// An op's level is one more than the highest level of what it must wait for; ops of a level form a
// stage. Values whose levels do not overlap may share memory.
#include "graph/planner.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"
#include "device/op_fields.h"
#include "graph/reference.h"

namespace cairn {

namespace {

constexpr int64_t kRowAlignment = 64;  // Rows start on cache lines.

// When something was last read and written, in levels; -1: never.
struct LastUse {
  int32_t read = -1;
  int32_t written = -1;

  int32_t last() const { return std::max(read, written); }
};

// What ops have used so far.
struct Uses {
  std::vector<LastUse> values;
  std::vector<int32_t> first_levels;  // By value: where it was first used.
  std::map<int32_t, LastUse> planes;

  explicit Uses(size_t value_count) : values(value_count), first_levels(value_count, -1) {}
};

// First walk over an op: the lowest level at which it may run.
struct LevelFinder {
  Uses& uses;
  int32_t level = 0;

  void after(int32_t other) { level = std::max(level, other + 1); }
  template <class AnyRows>
  const LastUse* use(const AnyRows& rows) {
    return rows.exists() ? &uses.values[size_t(value_of_reference(rows.offset))] : nullptr;
  }
  template <class AnyRows>
  void read(const AnyRows& rows) {
    if (const LastUse* use_of_rows = use(rows)) after(use_of_rows->written);
  }
  template <class AnyRows>
  void write(const AnyRows& rows) {
    if (const LastUse* use_of_rows = use(rows)) after(use_of_rows->last());
  }
  template <class AnyRows>
  void change(const AnyRows& rows) {
    write(rows);
  }
  void read_plane(int32_t plane) { after(uses.planes[plane].written); }
  void write_plane(int32_t plane) { after(uses.planes[plane].last()); }
  void write_state(int32_t) {}  // A state is moved on by one op only.
  void read_weights(const Weight&) {}
};

// Second walk: notes the uses at the level that was found.
struct UseRecorder {
  Uses& uses;
  int32_t level;

  template <class AnyRows>
  LastUse* use(const AnyRows& rows) {
    if (!rows.exists()) return nullptr;
    const size_t value = size_t(value_of_reference(rows.offset));
    if (uses.first_levels[value] < 0) uses.first_levels[value] = level;
    return &uses.values[value];
  }
  template <class AnyRows>
  void read(const AnyRows& rows) {
    if (LastUse* last = use(rows)) last->read = std::max(last->read, level);
  }
  template <class AnyRows>
  void write(const AnyRows& rows) {
    if (LastUse* last = use(rows)) last->written = level;
  }
  template <class AnyRows>
  void change(const AnyRows& rows) {
    read(rows);
    write(rows);
  }
  void read_plane(int32_t plane) {
    uses.planes[plane].read = std::max(uses.planes[plane].read, level);
  }
  void write_plane(int32_t plane) { uses.planes[plane].written = level; }
  void write_state(int32_t) {}
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
  void read_weights(const Weight&) {}
};

struct Lifetime {
  int32_t first_level = 0, last_level = -1;
  int64_t offset = 0, bytes = 0;

  bool exists() const { return last_level >= 0; }
  bool meets(const Lifetime& other) const {
    return first_level <= other.last_level && other.first_level <= last_level;
  }
};

std::vector<int32_t> levels_of_ops(std::vector<Op>& ops, Uses& uses) {
  std::vector<int32_t> levels;
  for (Op& op : ops) {
    LevelFinder finder{.uses = uses};
    std::visit([&](auto& fields) { visit_fields(fields, finder); }, op);
    UseRecorder recorder{.uses = uses, .level = finder.level};
    std::visit([&](auto& fields) { visit_fields(fields, recorder); }, op);
    levels.push_back(finder.level);
  }
  return levels;
}

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
  const int64_t bytes =
      value.quantized ? QuantizedRows::row_bytes(value.width) : value.width * int64_t(4);
  return int32_t((bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment);
}

Rows rows_of(Tensor tensor, const std::vector<Value>& values) {
  if (!tensor.exists()) return {};
  return {.offset = pack_reference(tensor.value, tensor.column),
          .width = tensor.width,
          .set = values[size_t(tensor.value)].set};
}

}  // namespace

Plan make_plan(std::vector<Op> ops, const std::vector<Value>& values, const PlanEnds& ends,
               const PlanLimits& limits) {
  Uses uses(values.size());
  const std::vector<int32_t> levels = levels_of_ops(ops, uses);
  int32_t level_count = 0;
  for (const int32_t level : levels) level_count = std::max(level_count, level + 1);

  std::vector<Lifetime> lifetimes(values.size());
  std::vector<int32_t> strides;
  for (size_t value = 0; value < values.size(); ++value) {
    const bool of_tokens = values[value].set == RowSet::tokens;
    const int32_t row_count = of_tokens ? limits.row_count_max : limits.output_count_max;
    strides.push_back(row_stride(values[value]));
    lifetimes[value] = {.first_level = uses.first_levels[value],
                        .last_level = uses.values[value].last(),
                        .bytes = int64_t(strides.back()) * row_count};
  }
  for (const Tensor end : {ends.hidden, ends.logits}) {
    if (!end.exists()) continue;
    Lifetime& lifetime = lifetimes[size_t(end.value)];
    if (uses.values[size_t(end.value)].written < 0) lifetime.first_level = 0;
    lifetime.last_level = level_count;
  }

  Plan plan{.hidden = rows_of(ends.hidden, values),
            .logits = rows_of(ends.logits, values),
            .workspace_bytes = place_values(lifetimes),
            .row_count_max = limits.row_count_max,
            .output_count_max = limits.output_count_max};
  std::vector<int64_t> offsets;
  for (const Lifetime& lifetime : lifetimes) offsets.push_back(lifetime.offset);
  Placer placer{.offsets = offsets, .strides = strides};
  placer.place(plan.hidden);
  placer.place(plan.logits);
  for (int32_t level = 0; level < level_count; ++level) {
    const int32_t first_op = int32_t(plan.ops.size());
    for (size_t op = 0; op < ops.size(); ++op) {
      if (levels[op] != level) continue;
      std::visit([&](auto& fields) { visit_fields(fields, placer); }, ops[op]);
      plan.ops.push_back(std::move(ops[op]));
    }
    plan.stages.push_back({first_op, int32_t(plan.ops.size()) - first_op});
  }
  return plan;
}

}  // namespace cairn
