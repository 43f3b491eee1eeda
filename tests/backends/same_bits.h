// Compares kernels with the reference: the same op over two worlds of one seed must leave the same
// bytes everywhere, at every level of instruction sets that this machine has.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "backends/cpu/ops.h"
#include "backends/reference/reference.h"
#include "base/cpu_levels.h"
#include "tests/backends/step_builder.h"

namespace cairn::test {

inline std::vector<IsaLevel> vector_levels() {
  std::vector<IsaLevel> levels = levels_of(detect_cpu_features());
  levels.erase(levels.begin());  // The scalar one.
  return levels;
}

// Words that are equal, or both NaN as floats: which NaN an operation gives is not defined.
inline testing::AssertionResult same_bits(std::span<const std::byte> expected,
                                          std::span<const std::byte> found) {
  if (expected.size() != found.size()) {
    return testing::AssertionFailure() << expected.size() << " bytes and " << found.size();
  }
  if (std::memcmp(expected.data(), found.data(), expected.size()) == 0) {
    return testing::AssertionSuccess();
  }
  for (size_t offset = 0; offset + 4 <= expected.size(); offset += 4) {
    float a = 0, b = 0;
    std::memcpy(&a, expected.data() + offset, 4);
    std::memcpy(&b, found.data() + offset, 4);
    if (std::memcmp(&a, &b, 4) == 0 || (std::isnan(a) && std::isnan(b))) continue;
    return testing::AssertionFailure()
           << "float " << offset / 4 << ": expected " << a << ", found " << b;
  }
  return testing::AssertionSuccess();
}

// `make` adds an op's values to a world and returns the op. It must be a function of the world.
template <class Make>
void expect_same_bits(uint32_t seed, const std::vector<SliceSpec>& specs, const Make& make) {
  World expected(seed, specs);
  const Op op = make(expected);
  const Step step = expected.step();
  const std::vector<std::byte> before(expected.memory().begin(), expected.memory().end());
  run_op(reference::kernel_for(op), op, step);
  ASSERT_NE(0, std::memcmp(before.data(), expected.memory().data(), before.size()))
      << "the reference wrote nothing";
  for (const IsaLevel level : vector_levels()) {
    World found(seed, specs);
    const Op same_op = make(found);
    const Step same_step = found.step();
    run_op(cpu::choose_ops_kernel(same_op, level), same_op, same_step);
    ASSERT_TRUE(same_bits(expected.memory(), found.memory())) << name(level) << " seed " << seed;
  }
}

// One step of all rows of a sequence leaves the same bytes as a step for each row, at every level.
// `make` gives an op with one state of `state_floats`; `fields` are its rows.
template <class T, class Make>
void expect_rows_alone_alike(const SliceSpec& spec, size_t state_floats, const Make& make,
                             std::initializer_list<Rows T::*> fields) {
  World shapes(13, {spec});
  const Op any = make(shapes);
  std::vector<host::HostKernel> kernels = {reference::kernel_for(any)};
  for (const IsaLevel level : vector_levels()) {
    kernels.push_back(cpu::choose_ops_kernel(any, level));
  }
  for (const host::HostKernel& kernel : kernels) {
    World together(13, {spec}), alone(13, {spec});
    const T same = make(together), op = make(alone);
    run_op(kernel, same, together.step());
    const Step all = alone.step();
    std::vector<std::byte> before(state_floats * sizeof(float));
    if (spec.has_state) std::memcpy(before.data(), alone.state_before(0), before.size());
    for (int32_t row = 0; row < spec.row_count; ++row) {
      T moved = op;
      for (const auto field : fields) moved.*field = moved_to(op.*field, row);
      const bool has_state = spec.has_state || row > 0;
      const OneRow one(all, row, has_state ? before.data() : nullptr, alone.captured(0, 0));
      run_op(kernel, moved, one.step());
      std::memcpy(before.data(), alone.captured(0, 0), before.size());
    }
    EXPECT_TRUE(same_bits(together.memory(), alone.memory()));
  }
}

// |a - b| relative to the larger of both and 1.
inline double relative_error(double a, double b) {
  return std::fabs(a - b) / std::max({1.0, std::fabs(a), std::fabs(b)});
}

}  // namespace cairn::test
