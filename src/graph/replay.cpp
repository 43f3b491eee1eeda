// The search goes backwards from the ops that write states, through the values that they read, and
// stops at ops that need weights or attention: their outputs are logged. An op that would read more
// logged numbers than it writes is not repeated either; its output is logged instead.
#include "graph/replay.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "device/op_fields.h"
#include "graph/reference.h"

namespace cairn {

namespace {

// Some columns of a value.
struct View {
  int32_t value = 0;
  int32_t first = 0, end = 0;

  bool overlaps(const View& other) const {
    return value == other.value && first < other.end && other.first < end;
  }
  bool covers(const View& other) const {
    return value == other.value && first <= other.first && other.end <= end;
  }
};

// What an op does, as far as the search asks.
struct Footprint {
  std::vector<View> reads, writes, changes;  // Changes are in neither of the others.
  bool writes_state = false;
  bool needs_more = false;  // Weights or earlier keys and values.

  static View view_of(const Rows& rows) {
    const int32_t first = column_of_reference(rows.offset);
    return {value_of_reference(rows.offset), first, first + rows.width};
  }
  void read(const Rows& rows) {
    if (rows.exists()) reads.push_back(view_of(rows));
  }
  void write(const Rows& rows) {
    if (rows.exists()) writes.push_back(view_of(rows));
  }
  void change(const Rows& rows) {
    if (rows.exists()) changes.push_back(view_of(rows));
  }
  // Quantized rows are read by products only, where the search has stopped.
  void read(const QuantizedRows&) {}
  void write(const QuantizedRows&) {}
  void change(const QuantizedRows&) {}
  void read_plane(int32_t) { needs_more = true; }
  void write_plane(int32_t) { needs_more = true; }
  void write_state(int32_t) { writes_state = true; }
  void read_constant(const auto&) {}
  void read_weights(const Weight&) { needs_more = true; }
};

class Search {
 public:
  explicit Search(std::vector<Footprint> footprints)
      : footprints_(std::move(footprints)), stops_(footprints_.size()) {
    for (size_t op = 0; op < footprints_.size(); ++op) stops_[op] = footprints_[op].needs_more;
    run();
    stop_where_narrower();
    run();
  }

  bool repeats(size_t op) const { return repeats_[op]; }
  // The views of the op's output that are logged, ascending and apart from each other.
  const std::vector<View>& logged(size_t op) const { return logged_[op]; }

 private:
  void run() {
    repeats_.assign(footprints_.size(), false);
    logged_.assign(footprints_.size(), {});
    // Whoever is needed stands before who needs it.
    for (size_t op = footprints_.size(); op-- > 0;) {
      const Footprint& footprint = footprints_[op];
      repeats_[op] = repeats_[op] || footprint.writes_state;
      if (!repeats_[op]) continue;
      for (const View& view : footprint.reads) trace(op, view);
      for (const View& view : footprint.changes) trace(op, view);
    }
    for (std::vector<View>& views : logged_) merge(views);
  }

  // Marks who made `view` as it is before `op`.
  void trace(size_t op, const View& view) {
    while (op-- > 0) {
      const Footprint& footprint = footprints_[op];
      for (const auto* views : {&footprint.writes, &footprint.changes}) {
        for (const View& made : *views) {
          if (!made.overlaps(view)) continue;
          if (stops_[op]) {
            logged_[op].push_back(
                {view.value, std::max(view.first, made.first), std::min(view.end, made.end)});
          } else {
            repeats_[op] = true;
          }
          if (made.covers(view)) return;
        }
      }
    }
    CHECK(false);  // A value that nobody makes.
  }

  static void merge(std::vector<View>& views) {
    std::sort(views.begin(), views.end(), [](const View& a, const View& b) {
      return std::pair(a.value, a.first) < std::pair(b.value, b.first);
    });
    std::vector<View> merged;
    for (const View& view : views) {
      const bool touches =
          !merged.empty() && merged.back().value == view.value && view.first <= merged.back().end;
      if (touches) {
        merged.back().end = std::max(merged.back().end, view.end);
      } else {
        merged.push_back(view);
      }
    }
    views = std::move(merged);
  }

  // In recorded order, so that an op that stops here lets the ones behind it be judged by it.
  void stop_where_narrower() {
    std::map<int32_t, bool> is_logged;  // By value.
    for (size_t op = 0; op < footprints_.size(); ++op) {
      const Footprint& footprint = footprints_[op];
      if (!logged_[op].empty()) is_logged[logged_[op].front().value] = true;
      if (!repeats_[op] || footprint.writes_state || !footprint.changes.empty()) continue;
      std::vector<View> reads = footprint.reads;
      merge(reads);
      int64_t read_width = 0, written_width = 0;
      for (const View& view : reads) {
        read_width += is_logged.contains(view.value) ? view.end - view.first : 0;
      }
      for (const View& view : footprint.writes) written_width += view.end - view.first;
      if (written_width >= read_width) continue;
      stops_[op] = true;
      for (const View& view : footprint.writes) is_logged[view.value] = true;
    }
  }

  std::vector<Footprint> footprints_;
  std::vector<bool> stops_, repeats_;
  std::vector<std::vector<View>> logged_;
};

std::vector<Footprint> footprints_of(std::vector<Op> ops) {
  std::vector<Footprint> footprints(ops.size());
  for (size_t op = 0; op < ops.size(); ++op) {
    std::visit([&](auto& fields) { visit_fields(fields, footprints[op]); }, ops[op]);
  }
  return footprints;
}

}  // namespace

ReplayCut cut_replay(const std::vector<Op>& ops, const std::vector<Value>& values) {
  const Search search(footprints_of(ops));
  ReplayCut cut;
  for (size_t op = 0; op < ops.size(); ++op) {
    cut.step_ops.push_back(ops[op]);
    if (search.repeats(op)) cut.replay_ops.push_back(ops[op]);
    for (const View& view : search.logged(op)) {
      CHECK(values[size_t(view.value)].set == RowSet::tokens);
      const int32_t width = view.end - view.first;
      const int32_t log_plane = int32_t(cut.log_widths.size());
      const Rows rows{.offset = pack_reference(view.value, view.first), .width = width};
      cut.step_ops.push_back(op::StoreLog{.x = rows, .log_plane = log_plane});
      cut.replay_ops.push_back(op::LoadLog{.out = rows, .log_plane = log_plane});
      cut.log_widths.push_back(width);
    }
  }
  return cut;
}

}  // namespace cairn
