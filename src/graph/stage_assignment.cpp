// An op is fused with all ops that it depends on in the last stage before it: by columns, if each
// of them touches the same columns of what they share and pieces stay small enough to be spread
// over threads; else by whole rows, if none of them is a producer. So a matrix product is fused
// with the elementwise ops after it, and the norm that follows, which needs whole rows, begins a
// stage.
#include "graph/stage_assignment.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "device/op_fields.h"
#include "graph/reference.h"

namespace cairn {

namespace {

// A product that is this narrow is one task anyway.
constexpr int32_t kNarrow = 64;

// An op touches some columns of a value, or a key/value plane.
struct Access {
  size_t what = 0;  // The value; planes stand behind the values.
  size_t op = 0;
  int32_t column = 0;
  bool writes = false;
  bool aligned = false;  // At the piece's columns only.
};

struct AccessFinder {
  size_t value_count;
  size_t op;
  const PieceShape& shape;
  std::vector<Access> found = {};

  template <class AnyRows>
  void add(const AnyRows& rows, bool writes) {
    if (!rows.exists()) return;
    const auto& aligned = shape.aligned;
    found.push_back({.what = size_t(value_of_reference(rows.offset)),
                     .op = op,
                     .column = column_of_reference(rows.offset),
                     .writes = writes,
                     .aligned = std::find(aligned.begin(), aligned.end(), &rows) != aligned.end()});
  }
  template <class AnyRows>
  void read(const AnyRows& rows) {
    add(rows, false);
  }
  template <class AnyRows>
  void write(const AnyRows& rows) {
    add(rows, true);
  }
  template <class AnyRows>
  void change(const AnyRows& rows) {
    add(rows, true);
  }
  void add_plane(int32_t plane, bool writes) {
    found.push_back({.what = value_count + size_t(plane), .op = op, .writes = writes});
  }
  void read_plane(int32_t plane) { add_plane(plane, false); }
  void write_plane(int32_t plane) { add_plane(plane, true); }
  void write_state(int32_t) {}  // A state is updated by one op only.
  void read_constant(const auto&) {}
  void read_weights(const Weight&) {}
};

class StageAssigner {
 public:
  StageAssigner(size_t value_count, const PieceAlignment& alignment)
      : value_count_(value_count), alignment_(alignment), accesses_(value_count) {}

  void assign(Op& op) {
    const PieceShape shape = piece_shape(op, alignment_);
    AccessFinder finder{.value_count = value_count_, .op = assignment_.ops.size(), .shape = shape};
    std::visit([&](auto& fields) { visit_fields(fields, finder); }, op);
    const std::vector<Dependency> latest = latest_dependencies(finder.found);
    assignment_.ops.push_back({.is_producer = shape.is_producer,
                               .piece = {.first_column = 0, .column_count = shape.width}});
    if (latest.empty() || !join(shape, latest)) {
      const int32_t stage = latest.empty() ? 0 : assignment_.stage_of(latest[0].earlier.op) + 1;
      assignment_.ops.back().fused = int32_t(assignment_.fused_ops.size());
      assignment_.fused_ops.push_back({stage, shape});
    }
    for (const Access& access : finder.found) accesses_[access.what].push_back(access);
  }

  StageAssignment finish() && { return std::move(assignment_); }

 private:
  struct Dependency {
    Access earlier, own;
  };

  // Those of the last stage in which there are any.
  std::vector<Dependency> latest_dependencies(const std::vector<Access>& accesses) {
    std::vector<Dependency> latest;
    int32_t last = -1;
    for (const Access& own : accesses) {
      if (own.what >= accesses_.size()) accesses_.resize(own.what + 1);
      for (const Access& earlier : accesses_[own.what]) {
        if (!earlier.writes && !own.writes) continue;
        const int32_t stage = assignment_.stage_of(earlier.op);
        if (stage < last) continue;
        if (stage > last) latest.clear();
        last = stage;
        latest.push_back({earlier, own});
      }
    }
    return latest;
  }

  // Joins the last op to what it waits for, if it can.
  bool join(const PieceShape& shape, const std::vector<Dependency>& latest) {
    if (!shape.exists || shape.is_producer) return false;
    std::vector<int32_t> fused_ops;
    for (const Dependency& one : latest) fused_ops.push_back(assignment_.ops[one.earlier.op].fused);
    std::sort(fused_ops.begin(), fused_ops.end());
    fused_ops.erase(std::unique(fused_ops.begin(), fused_ops.end()), fused_ops.end());
    for (const int32_t fused : fused_ops) {
      const PieceShape& other = assignment_.fused_ops[size_t(fused)].shape;
      if (!other.exists || other.set != shape.set) return false;
    }
    const int32_t first_column = column_in_fused(latest);
    PieceShape all = joined_by_columns(shape, first_column, fused_ops);
    if (all.exists) {
      assignment_.ops.back().piece.first_column = first_column;
    } else {
      all = joined_by_rows(shape, fused_ops);
    }
    if (!all.exists) return false;
    merge(fused_ops, all);
    return true;
  }

  // Where the op's columns begin in those of the fused ops that it depends on; -1: they differ.
  int32_t column_in_fused(const std::vector<Dependency>& latest) const {
    int32_t place = -1;
    for (const Dependency& one : latest) {
      const int32_t column =
          assignment_.ops[one.earlier.op].piece.first_column + one.own.column - one.earlier.column;
      if (!one.earlier.aligned || !one.own.aligned || column < 0) return -1;
      if (place >= 0 && column != place) return -1;
      place = column;
    }
    return place;
  }

  PieceShape joined_by_columns(const PieceShape& shape, int32_t first_column,
                               const std::vector<int32_t>& fused_ops) const {
    const int32_t width = assignment_.fused_ops[size_t(fused_ops[0])].shape.width;
    if (first_column < 0 || first_column % shape.alignment != 0) return {};
    if (first_column + shape.width > width) return {};
    PieceShape all{.exists = true, .set = shape.set, .width = width, .alignment = shape.alignment};
    for (const int32_t fused : fused_ops) {
      const PieceShape& other = assignment_.fused_ops[size_t(fused)].shape;
      if (other.width != width || (other.alignment == width && width > kNarrow)) return {};
      all.alignment = std::lcm(all.alignment, other.alignment);
      all.is_producer = all.is_producer || other.is_producer;
    }
    if (width % all.alignment != 0 || (all.alignment == width && width > kNarrow)) return {};
    return all;
  }

  PieceShape joined_by_rows(const PieceShape& shape, const std::vector<int32_t>& fused_ops) const {
    PieceShape all{.exists = true, .set = shape.set, .width = shape.width};
    for (const int32_t fused : fused_ops) {
      const PieceShape& other = assignment_.fused_ops[size_t(fused)].shape;
      if (other.is_producer) return {};
      all.width = std::max(all.width, other.width);
    }
    all.alignment = all.width;
    return all;
  }

  // Fuses all of them and the last op.
  void merge(const std::vector<int32_t>& fused_ops, const PieceShape& shape) {
    for (OpAssignment& op : assignment_.ops) {
      if (std::binary_search(fused_ops.begin(), fused_ops.end(), op.fused)) op.fused = fused_ops[0];
    }
    assignment_.ops.back().fused = fused_ops[0];
    assignment_.fused_ops[size_t(fused_ops[0])].shape = shape;
  }

  size_t value_count_;
  const PieceAlignment& alignment_;
  StageAssignment assignment_;
  std::vector<std::vector<Access>> accesses_;  // By value, then by plane.
};

}  // namespace

StageAssignment assign_stages(std::vector<Op>& ops, size_t value_count,
                              const PieceAlignment& alignment) {
  StageAssigner assigner(value_count, alignment);
  for (Op& op : ops) assigner.assign(op);
  return std::move(assigner).finish();
}

}  // namespace cairn
