// How fast this machine's kernels multiply with weights of a type: the rates from which the speed
// of a model is foretold that is not here. Measured with matrices of zeros, which take as long as
// any others. Thread rule: one thread calls; the pool's threads work inside a call.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "base/threads.h"
#include "device/numerics.h"
#include "measure/machine_limits.h"
#include "measure/step_costs.h"
#include "quant/quant.h"

namespace cairn::measure {

struct ProductRate {
  double bytes_per_second = 0;  // Of weights as the file has them, one row at a time, from memory.
  double ops_per_second = 0;    // Of many rows.
};

struct RateOptions {
  ThreadPool* threads = nullptr;
  std::string isa;  // Empty: the best.
  Numerics numerics = Numerics::exact_1;
};

// Of a third of a second. Errors: those of the backend; memory_full.
Result<ProductRate> measure_product(const quant::Type& type, const RateOptions& options);

using ProductRates = std::map<const quant::Type*, ProductRate>;

// Seconds that a step of these costs takes: products at the rates of their types, everything else
// at the machine's limits. REQUIRES: a rate for each type.
double expected_seconds(std::span<const TypeCosts> costs, const ProductRates& rates,
                        const MachineLimits& limits);

}  // namespace cairn::measure
