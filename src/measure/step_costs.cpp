// Walks the ops of a plan.
#include "measure/step_costs.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "device/op_fields.h"

namespace cairn::measure {

namespace {

// Adds up what an op reads besides rows. Visits fields, so that no op is forgotten; what more than
// one matrix costs, and how many rows, the ops themselves say.
class Counter {
 public:
  Counter(const memory::Layout& layout, const StepShape& shape) : layout_(layout), shape_(shape) {}

  void count(Op op) {
    product_rows_ = 0;
    used_share_ = 1;
    std::visit(
        [this](auto& o) {
          look_at(o);
          visit_fields(o, *this);
        },
        op);
  }

  // Of an op's fields.
  void read(const Rows&) {}
  void read(const QuantizedRows&) {}
  void write(const Rows&) {}
  void write(const QuantizedRows&) {}
  void change(const Rows&) {}
  void read_plane(int32_t) {}
  void write_plane(int32_t) {}
  void write_state(int32_t state) {
    costs.state_bytes += double(layout_.state_tensors[size_t(state)].bytes) * shape_.sequences;
  }
  void read_constant(const auto&) {}
  void read_weights(const Weight& weight) {
    if (is_lookup_) {
      costs.weight_bytes += double(weight.row_bytes()) * row_count();
      return;
    }
    costs.weight_bytes += double(weight.blocks.size()) * used_share_;
    const double ops = 2.0 * weight.cols * weight.rows * product_rows_;
    (weight.type->is_float() ? costs.float_ops : costs.integer_ops) += ops;
  }

  StepCosts costs;

 private:
  template <class Any>
  void look_at(const Any&) {
    is_lookup_ = false;
    product_rows_ = row_count();
  }
  void look_at(const op::Embed&) { is_lookup_ = true; }
  void look_at(const op::MatMul& product) {
    is_lookup_ = false;
    product_rows_ = product.out.set == RowSet::outputs ? shape_.outputs : row_count();
    if (product_rows_ == 0) used_share_ = 0;
  }
  void look_at(const op::ExpertMatMul& product) {
    is_lookup_ = false;
    const double used = product.rank_count(), count = product.weight->count;
    product_rows_ = row_count() * used;
    // Each row leaves out an expert with the same chance, independent of the others.
    used_share_ = 1 - std::pow(1 - used / count, row_count());
  }
  void look_at(const op::Attend& attend) {
    is_lookup_ = false;
    const KvPlane& plane = layout_.kv_planes[size_t(attend.plane)];
    const double token_bytes =
        double(plane.key_bytes + plane.value_bytes) * plane.kv_head_count / kPageTokens;
    const int32_t first = attend.first_visible(shape_.depth);
    const double past = shape_.depth - first;
    costs.kv_bytes +=
        token_bytes * (past * (shape_.shares_the_past ? 1 : shape_.sequences) + row_count());
    double pairs = 0;
    for (int32_t row = 0; row < shape_.rows; ++row) {
      const int32_t position = shape_.depth + row;
      pairs += position + 1 - attend.first_visible(position);
    }
    costs.float_ops +=
        2.0 * (plane.key_dim + plane.value_dim) * attend.head_count * pairs * shape_.sequences;
  }

  double row_count() const { return double(shape_.sequences) * shape_.rows; }

  const memory::Layout& layout_;
  const StepShape& shape_;
  bool is_lookup_ = false;
  double product_rows_ = 0;
  double used_share_ = 1;
};

}  // namespace

StepCosts step_costs(const Plan& plan, const memory::Layout& layout, const StepShape& shape) {
  Counter counter(layout, shape);
  for (const Op& op : plan.ops) counter.count(op);
  return counter.costs;
}

double least_seconds(const StepCosts& costs, const MachineLimits& limits) {
  const auto seconds = [](double amount, double rate) { return rate > 0 ? amount / rate : 0; };
  return std::max(seconds(costs.bytes(), limits.read_bytes_per_second),
                  seconds(costs.integer_ops, limits.integer_ops_per_second) +
                      seconds(costs.float_ops, limits.float_ops_per_second));
}

}  // namespace cairn::measure
