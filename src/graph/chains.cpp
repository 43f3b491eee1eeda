// An op joins the chains of all ops of its last stage that it waits for: by columns, where each of
// them touched the same columns of what they share and pieces stay small enough to share the work
// out; else by whole rows, if nothing in them leads. So a product takes in what follows it column
// by column, and the norm behind it, which needs whole rows, begins a stage.
#include "graph/chains.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "device/op_fields.h"
#include "graph/reference.h"

namespace cairn {

namespace {

// So narrow a product is one task anyway.
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
  void write_state(int32_t) {}  // A state is moved on by one op only.
  void read_constant(const auto&) {}
  void read_weights(const Weight&) {}
};

class Dealer {
 public:
  Dealer(size_t value_count, const PieceGrains& grains)
      : value_count_(value_count), grains_(grains), accesses_(value_count) {}

  void deal(Op& op) {
    const PieceShape shape = piece_shape(op, grains_);
    AccessFinder finder{.value_count = value_count_, .op = dealt_.ops.size(), .shape = shape};
    std::visit([&](auto& fields) { visit_fields(fields, finder); }, op);
    const std::vector<Dependency> latest = latest_dependencies(finder.found);
    dealt_.ops.push_back(
        {.leads = shape.leads, .piece = {.first_column = 0, .column_count = shape.width}});
    if (latest.empty() || !join(shape, latest)) {
      const int32_t stage = latest.empty() ? 0 : dealt_.stage_of(latest[0].earlier.op) + 1;
      dealt_.ops.back().chain = int32_t(dealt_.chains.size());
      dealt_.chains.push_back({stage, shape});
    }
    for (const Access& access : finder.found) accesses_[access.what].push_back(access);
  }

  DealtOps finish() && { return std::move(dealt_); }

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
        const int32_t stage = dealt_.stage_of(earlier.op);
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
    if (!shape.exists || shape.leads) return false;
    std::vector<int32_t> chains;
    for (const Dependency& one : latest) chains.push_back(dealt_.ops[one.earlier.op].chain);
    std::sort(chains.begin(), chains.end());
    chains.erase(std::unique(chains.begin(), chains.end()), chains.end());
    for (const int32_t chain : chains) {
      const PieceShape& other = dealt_.chains[size_t(chain)].shape;
      if (!other.exists || other.set != shape.set) return false;
    }
    const int32_t first_column = column_in_chains(latest);
    PieceShape all = joined_by_columns(shape, first_column, chains);
    if (all.exists) {
      dealt_.ops.back().piece.first_column = first_column;
    } else {
      all = joined_by_rows(shape, chains);
    }
    if (!all.exists) return false;
    merge(chains, all);
    return true;
  }

  // Where the op's columns begin in those of the chains that it waits for; -1: not at one place.
  int32_t column_in_chains(const std::vector<Dependency>& latest) const {
    int32_t place = -1;
    for (const Dependency& one : latest) {
      const int32_t column =
          dealt_.ops[one.earlier.op].piece.first_column + one.own.column - one.earlier.column;
      if (!one.earlier.aligned || !one.own.aligned || column < 0) return -1;
      if (place >= 0 && column != place) return -1;
      place = column;
    }
    return place;
  }

  PieceShape joined_by_columns(const PieceShape& shape, int32_t first_column,
                               const std::vector<int32_t>& chains) const {
    const int32_t width = dealt_.chains[size_t(chains[0])].shape.width;
    if (first_column < 0 || first_column % shape.grain != 0) return {};
    if (first_column + shape.width > width) return {};
    PieceShape all{.exists = true, .set = shape.set, .width = width, .grain = shape.grain};
    for (const int32_t chain : chains) {
      const PieceShape& other = dealt_.chains[size_t(chain)].shape;
      if (other.width != width || (other.grain == width && width > kNarrow)) return {};
      all.grain = std::lcm(all.grain, other.grain);
      all.leads = all.leads || other.leads;
    }
    if (width % all.grain != 0 || (all.grain == width && width > kNarrow)) return {};
    return all;
  }

  PieceShape joined_by_rows(const PieceShape& shape, const std::vector<int32_t>& chains) const {
    PieceShape all{.exists = true, .set = shape.set, .width = shape.width};
    for (const int32_t chain : chains) {
      const PieceShape& other = dealt_.chains[size_t(chain)].shape;
      if (other.leads) return {};
      all.width = std::max(all.width, other.width);
    }
    all.grain = all.width;
    return all;
  }

  // Makes one chain of all of them and of the last op.
  void merge(const std::vector<int32_t>& chains, const PieceShape& shape) {
    for (DealtOp& op : dealt_.ops) {
      if (std::binary_search(chains.begin(), chains.end(), op.chain)) op.chain = chains[0];
    }
    dealt_.ops.back().chain = chains[0];
    dealt_.chains[size_t(chains[0])].shape = shape;
  }

  size_t value_count_;
  const PieceGrains& grains_;
  DealtOps dealt_;
  std::vector<std::vector<Access>> accesses_;  // By value, then by plane.
};

}  // namespace

DealtOps deal_out(std::vector<Op>& ops, size_t value_count, const PieceGrains& grains) {
  Dealer dealer(value_count, grains);
  for (Op& op : ops) dealer.deal(op);
  return std::move(dealer).finish();
}

}  // namespace cairn
