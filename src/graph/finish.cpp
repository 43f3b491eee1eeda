// The planning side of Graph: which ops run side by side, and where values lie in the workspace.
// An op's level is one more than the highest level of what it must wait for; ops of a level form a
// stage. Values whose levels do not overlap may share memory.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "device/op_fields.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace cairn {

namespace {

// When something was last read and written, in levels; -1: never.
struct LastUse {
  int32_t read = -1;
  int32_t written = -1;
};

// First walk over an op: the lowest level at which it may run.
struct LevelFinder {
  std::vector<LastUse>& values;
  std::vector<LastUse>& planes;
  int32_t level = 0;

  void after(int32_t other) { level = std::max(level, other + 1); }
  template <class AnyRows>
  LastUse* use(const AnyRows& rows) {
    return rows.exists() ? &values[size_t(value_of_reference(rows.offset))] : nullptr;
  }
  template <class AnyRows>
  void read(const AnyRows& rows) {
    if (const LastUse* last = use(rows)) after(last->written);
  }
  template <class AnyRows>
  void write(const AnyRows& rows) {
    if (const LastUse* last = use(rows)) after(std::max(last->written, last->read));
  }
  template <class AnyRows>
  void change(const AnyRows& rows) {
    write(rows);
  }
  void read_plane(int32_t plane) { after(planes[size_t(plane)].written); }
  void write_plane(int32_t plane) {
    after(std::max(planes[size_t(plane)].written, planes[size_t(plane)].read));
  }
  void write_state(int32_t) {}
  void read_weights(const Weight&) {}
};

// Second walk: notes the uses at the level that was found.
struct UseRecorder {
  std::vector<LastUse>& values;
  std::vector<LastUse>& planes;
  int32_t level;

  template <class AnyRows>
  void read(const AnyRows& rows) {
    if (!rows.exists()) return;
    LastUse& last = values[size_t(value_of_reference(rows.offset))];
    last.read = std::max(last.read, level);
  }
  template <class AnyRows>
  void write(const AnyRows& rows) {
    if (rows.exists()) values[size_t(value_of_reference(rows.offset))].written = level;
  }
  template <class AnyRows>
  void change(const AnyRows& rows) {
    read(rows);
    write(rows);
  }
  void read_plane(int32_t plane) {
    planes[size_t(plane)].read = std::max(planes[size_t(plane)].read, level);
  }
  void write_plane(int32_t plane) { planes[size_t(plane)].written = level; }
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

constexpr int64_t kRowAlignment = 64;  // Rows start on cache lines.

}  // namespace

std::vector<int32_t> Graph::levels_of_ops(std::vector<Lifetime>& lifetimes) {
  std::vector<LastUse> values(values_.size());
  std::vector<LastUse> planes(layout_.kv_planes.size());
  std::vector<int32_t> levels;
  for (Op& op : ops_) {
    LevelFinder finder{.values = values, .planes = planes};
    std::visit([&](auto& fields) { visit_fields(fields, finder); }, op);
    UseRecorder recorder{.values = values, .planes = planes, .level = finder.level};
    std::visit([&](auto& fields) { visit_fields(fields, recorder); }, op);
    for (size_t value = 0; value < values.size(); ++value) {
      const bool written_first = lifetimes[value].last_level < 0 && values[value].written >= 0;
      if (written_first) lifetimes[value].first_level = values[value].written;
      lifetimes[value].last_level = std::max(values[value].read, values[value].written);
    }
    levels.push_back(finder.level);
  }
  return levels;
}

// Each value goes to the lowest place that no value of an overlapping lifetime has; large ones
// first, since small ones fit in between.
size_t Graph::place_values(std::vector<Lifetime>& lifetimes) const {
  std::vector<size_t> by_size(values_.size());
  std::iota(by_size.begin(), by_size.end(), size_t(0));
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  int64_t end = 0;
  std::vector<size_t> placed;
  for (const size_t value : by_size) {
    Lifetime& own = lifetimes[value];
    std::vector<const Lifetime*> others;
    for (const size_t other : placed) {
      const Lifetime& life = lifetimes[other];
      if (life.first_level <= own.last_level && own.first_level <= life.last_level) {
        others.push_back(&life);
      }
    }
    std::sort(others.begin(), others.end(),
              [](const Lifetime* a, const Lifetime* b) { return a->offset < b->offset; });
    own.offset = 0;
    for (const Lifetime* other : others) {
      if (own.offset + own.bytes <= other->offset) break;
      own.offset = std::max(own.offset, other->offset + other->bytes);
    }
    end = std::max(end, own.offset + own.bytes);
    placed.push_back(value);
  }
  return size_t(end);
}

Plan Graph::finish(Tensor logits, const Limits& limits) && {
  std::vector<Lifetime> lifetimes(values_.size());
  const std::vector<int32_t> levels = levels_of_ops(lifetimes);
  const int32_t level_count = *std::max_element(levels.begin(), levels.end()) + 1;
  lifetimes[size_t(logits.value)].last_level = level_count;

  std::vector<int32_t> strides;
  for (size_t value = 0; value < values_.size(); ++value) {
    const Value& v = values_[value];
    const int64_t bytes = v.quantized ? QuantizedRows::row_bytes(v.width) : v.width * int64_t(4);
    const int64_t stride = (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
    const int32_t row_count =
        v.set == RowSet::tokens ? limits.row_count_max : limits.output_count_max;
    strides.push_back(int32_t(stride));
    lifetimes[value].bytes = stride * row_count;
  }

  Plan plan{.constants = std::move(constants_),
            .logits = rows(logits),
            .row_count_max = limits.row_count_max,
            .output_count_max = limits.output_count_max};
  plan.workspace_bytes = place_values(lifetimes);
  std::vector<int64_t> offsets;
  for (const Lifetime& lifetime : lifetimes) offsets.push_back(lifetime.offset);
  Placer placer{.offsets = offsets, .strides = strides};
  placer.place(plan.logits);
  for (int32_t level = 0; level < level_count; ++level) {
    const int32_t first_op = int32_t(plan.ops.size());
    for (size_t op = 0; op < ops_.size(); ++op) {
      if (levels[op] != level) continue;
      std::visit([&](auto& fields) { visit_fields(fields, placer); }, ops_[op]);
      plan.ops.push_back(std::move(ops_[op]));
    }
    plan.stages.push_back({first_op, int32_t(plan.ops.size()) - first_op});
  }
  return plan;
}

}  // namespace cairn
