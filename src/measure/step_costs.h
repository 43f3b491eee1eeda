// The lower bound of a step's time (a roofline): the bytes that it must read and the operations
// that it must do, counted from the recorded plan, divided by what the machine can do at best.
// Thread-safe: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "device/plan.h"
#include "measure/machine_limits.h"
#include "memory/layout.h"
#include "quant/quant.h"

namespace cairn::measure {

struct StepShape {
  int32_t sequences = 1;
  int32_t rows = 1;              // Of each sequence.
  int32_t depth = 0;             // Tokens before them.
  int32_t outputs = 1;           // Rows of logits, of all sequences.
  bool shares_the_past = false;  // One past for all sequences, read once.
};

struct StepCosts {
  // Bytes as the file has them. Of experts, those that so many rows use on average.
  double weight_bytes = 0;
  double kv_bytes = 0;     // Keys and values that are read.
  double state_bytes = 0;  // Of recurrent layers, read (and written as much again).
  // Multiplications and additions of matrix products, and those of attention.
  double integer_ops = 0, float_ops = 0;

  double bytes() const { return weight_bytes + kv_bytes + state_bytes; }
  double ops() const { return integer_ops + float_ops; }
  StepCosts& operator+=(const StepCosts& other);
};

// Those of products with weights of one type.
struct TypeCosts {
  const quant::Type* type = nullptr;  // Null: of everything else.
  StepCosts costs;
};

// Once each type, everything else first.
std::vector<TypeCosts> costs_by_type(const Plan& plan, const memory::Layout& layout,
                                     const StepShape& shape);

// All of them together.
StepCosts step_costs(const Plan& plan, const memory::Layout& layout, const StepShape& shape);

// Seconds: for reading or for computing, whichever takes longer.
double least_seconds(const StepCosts& costs, const MachineLimits& limits);

}  // namespace cairn::measure
