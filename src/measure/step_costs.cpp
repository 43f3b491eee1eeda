// Walks the ops of a plan.
#include "measure/step_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>
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
    rest().state_bytes += double(layout_.state_tensors[size_t(state)].bytes) * shape_.sequences;
  }
  void read_constant(const auto&) {}
  void read_weights(const Weight& weight) {
    if (is_lookup_) {
      rest().weight_bytes += double(weight.row_bytes()) * row_count();
      return;
    }
    StepCosts& costs = of(weight.type);
    costs.weight_bytes += double(weight.blocks.size()) * used_share_;
    const double ops = 2.0 * weight.cols * weight.rows * product_rows_;
    (weight.type->is_float() ? costs.float_ops : costs.integer_ops) += ops;
  }

  std::vector<TypeCosts> parts{{}};

 private:
  StepCosts& rest() { return parts.front().costs; }
  StepCosts& of(const quant::Type* type) {
    const auto found = std::find_if(parts.begin(), parts.end(),
                                    [&](const TypeCosts& part) { return part.type == type; });
    return found != parts.end() ? found->costs : parts.emplace_back(TypeCosts{type, {}}).costs;
  }
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
    rest().kv_bytes +=
        token_bytes * (past * (shape_.shares_the_past ? 1 : shape_.sequences) + row_count());
    double pairs = 0;
    for (int32_t row = 0; row < shape_.rows; ++row) {
      const int32_t position = shape_.depth + row;
      pairs += position + 1 - attend.first_visible(position);
    }
    rest().float_ops +=
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

StepCosts& StepCosts::operator+=(const StepCosts& other) {
  weight_bytes += other.weight_bytes;
  kv_bytes += other.kv_bytes;
  state_bytes += other.state_bytes;
  integer_ops += other.integer_ops;
  float_ops += other.float_ops;
  return *this;
}

std::vector<TypeCosts> costs_by_type(const Plan& plan, const memory::Layout& layout,
                                     const StepShape& shape) {
  Counter counter(layout, shape);
  for (const Op& op : plan.ops) counter.count(op);
  return std::move(counter.parts);
}

StepCosts step_costs(const Plan& plan, const memory::Layout& layout, const StepShape& shape) {
  StepCosts costs;
  for (const TypeCosts& part : costs_by_type(plan, layout, shape)) costs += part.costs;
  return costs;
}

double least_seconds(const StepCosts& costs, const MachineLimits& limits) {
  const auto seconds = [](double amount, double rate) { return rate > 0 ? amount / rate : 0; };
  return std::max(seconds(costs.bytes(), limits.read_bytes_per_second),
                  seconds(costs.integer_ops, limits.integer_ops_per_second) +
                      seconds(costs.float_ops, limits.float_ops_per_second));
}

}  // namespace cairn::measure
