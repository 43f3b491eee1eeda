// op::MatMul and the sum of products behind every matrix product. Reads the file's blocks as they
// are: it is what packed weights are compared with.
#include <algorithm>
#include <cmath>

#include "backends/reference/dot.h"
#include "backends/reference/kernels.h"
#include "base/check.h"

namespace cairn::reference {

void read_units(const Weight& weight, const std::byte* row, std::span<quant::Unit> units) {
  const quant::Type& type = *weight.type;
  const size_t units_of_block = size_t(type.block_weights) / 32;
  for (size_t unit = 0; unit < units.size(); unit += units_of_block) {
    type.integers(row, &units[unit]);
    row += type.block_bytes;
  }
}

namespace {

// Adds what `count` weights from `first` on contribute.
float add_part(float acc, const quant::Unit& unit, int first, int count, bool offsets,
               const int8_t* q, float s) {
  int32_t isum = 0, xsum = 0;
  for (int i = first; i < first + count; ++i) {
    isum += int32_t(unit.q[i]) * q[i];
    xsum += q[i];
  }
  const int half = first / 16;
  acc = std::fma(float(isum), unit.scale[half] * s, acc);
  return offsets ? std::fma(float(xsum), unit.offset[half] * s, acc) : acc;
}

// Outputs that one task computes: a weight row is read once for all activation rows.
constexpr int32_t kTaskOutputs = 16;

QuantizedRow quantized_row(const Step& step, const QuantizedRows& rows, int32_t row) {
  const std::byte* bytes = step.row(rows, row);
  return {.q = reinterpret_cast<const int8_t*>(bytes),
          .scales = reinterpret_cast<const float*>(bytes + rows.scales_offset())};
}

int64_t task_count(const Op& op, const Step& step) {
  const auto& matmul = std::get<op::MatMul>(op);
  if (step.row_count(matmul.out.set) == 0) return 0;
  return (matmul.weight->rows + kTaskOutputs - 1) / kTaskOutputs;
}

size_t scratch_bytes(const Op& op) {
  const Weight& weight = *std::get<op::MatMul>(op).weight;
  return weight.type->is_float() ? size_t(weight.cols) * sizeof(float)
                                 : size_t(weight.cols / 32) * sizeof(quant::Unit);
}

void compute_output(const op::MatMul& op, const Step& step, int32_t output, std::byte* scratch) {
  const Weight& weight = *op.weight;
  const int32_t row_count = step.row_count(op.out.set);
  const float* bias = op.bias.data();
  const float scale = weight.scale_of(0);
  const auto write = [&](int32_t row, float sum) {
    const float scaled = sum * scale;
    step.row(op.out, row)[output] = bias != nullptr ? scaled + bias[output] : scaled;
  };
  if (weight.type->is_float()) {
    const std::span weights{reinterpret_cast<float*>(scratch), size_t(weight.cols)};
    quant::decode_row(*weight.type, {weight.row(0, output), weight.row_bytes()}, weights);
    for (int32_t row = 0; row < row_count; ++row) write(row, dot(weights, step.row(op.x, row)));
  } else {
    const std::span units{reinterpret_cast<quant::Unit*>(scratch), size_t(weight.cols / 32)};
    read_units(weight, weight.row(0, output), units);
    for (int32_t row = 0; row < row_count; ++row) {
      write(row, dot(*weight.type, units, quantized_row(step, op.quantized, row)));
    }
  }
}

void run(const Op& op, const Step& step, int64_t task, std::byte* scratch) {
  const auto& matmul = std::get<op::MatMul>(op);
  const int32_t first = int32_t(task) * kTaskOutputs;
  const int32_t end = std::min(first + kTaskOutputs, matmul.weight->rows);
  for (int32_t output = first; output < end; ++output) {
    compute_output(matmul, step, output, scratch);
  }
}

}  // namespace

float dot(const quant::Type& type, std::span<const quant::Unit> units, const QuantizedRow& x) {
  float acc = 0;
  for (size_t index = 0; index < units.size(); ++index) {
    const int8_t* q = x.q + 32 * index;
    const float s = x.scales[index];
    if (type.halves) {
      acc = add_part(acc, units[index], 0, 16, type.offsets, q, s);
      acc = add_part(acc, units[index], 16, 16, type.offsets, q, s);
    } else {
      acc = add_part(acc, units[index], 0, 32, type.offsets, q, s);
    }
  }
  return acc;
}

float dot(std::span<const float> weights, const float* x) {
  float acc = 0;
  for (size_t k = 0; k < weights.size(); ++k) acc = std::fma(weights[k], x[k], acc);
  return acc;
}

host::HostKernel matmul_kernel() {
  return {.task_count = &task_count, .run = &run, .scratch_bytes = &scratch_bytes};
}

}  // namespace cairn::reference
