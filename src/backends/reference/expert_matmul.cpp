// op::ExpertMatMul: each row multiplies the matrices of the experts that were chosen for it, each
// product as op::MatMul defines it. A row whose expert does not exist is a broken program.
#include <algorithm>
#include <bit>

#include "backends/reference/dot.h"
#include "backends/reference/kernels.h"
#include "base/check.h"

namespace cairn::reference {
namespace {

constexpr int32_t kTaskOutputs = 16;

int32_t task_parts(const op::ExpertMatMul& op) {
  return (op.weight->rows + kTaskOutputs - 1) / kTaskOutputs;
}

int64_t task_count(const Op& op, const Step& step) {
  const auto& matmul = std::get<op::ExpertMatMul>(op);
  return int64_t(step.row_count(matmul.out.set)) * matmul.rank_count() * task_parts(matmul);
}

size_t scratch_bytes(const Op& op) {
  const Weight& weight = *std::get<op::ExpertMatMul>(op).weight;
  return weight.type->is_float() ? size_t(weight.cols) * sizeof(float)
                                 : size_t(weight.cols / 32) * sizeof(quant::Unit);
}

float product(const op::ExpertMatMul& op, const Step& step, int32_t row, int32_t rank,
              const std::byte* weights_row, std::byte* scratch) {
  const Weight& weight = *op.weight;
  const int32_t first = op.x_per_rank ? rank * weight.cols : 0;  // Of the row's inputs.
  if (weight.type->is_float()) {
    const std::span weights{reinterpret_cast<float*>(scratch), size_t(weight.cols)};
    quant::decode_row(*weight.type, {weights_row, weight.row_bytes()}, weights);
    return dot(weights, step.row(op.x, row) + first);
  }
  const std::span units{reinterpret_cast<quant::Unit*>(scratch), size_t(weight.cols / 32)};
  read_units(weight, weights_row, units);
  const std::byte* bytes = step.row(op.quantized, row);
  const auto* q = reinterpret_cast<const int8_t*>(bytes);
  const auto* scales = reinterpret_cast<const float*>(bytes + op.quantized.scales_offset());
  return dot(*weight.type, units, {.q = q + first, .scales = scales + first / 32});
}

void run(const Op& op, const Step& step, int64_t task, std::byte* scratch) {
  const auto& matmul = std::get<op::ExpertMatMul>(op);
  const Weight& weight = *matmul.weight;
  const int32_t parts = task_parts(matmul);
  const int32_t first = int32_t(task % parts) * kTaskOutputs;
  const int32_t rank = int32_t(task / parts % matmul.rank_count());
  const int32_t row = int32_t(task / parts / matmul.rank_count());
  const int32_t expert =
      matmul.chosen.exists() ? std::bit_cast<int32_t>(step.row(matmul.chosen, row)[rank]) : rank;
  CHECK(expert >= 0 && expert < weight.count);
  float* out = step.row(matmul.out, row) + int64_t(rank) * weight.rows;
  for (int32_t output = first; output < std::min(first + kTaskOutputs, weight.rows); ++output) {
    float sum = product(matmul, step, row, rank, weight.row(expert, output), scratch);
    sum *= weight.scale_of(expert);
    if (matmul.bias.exists()) sum += matmul.bias[int64_t(expert) * weight.rows + output];
    out[output] = sum;
  }
}

}  // namespace

host::HostKernel expert_matmul_kernel() {
  return {.task_count = &task_count, .run = &run, .scratch_bytes = &scratch_bytes};
}

}  // namespace cairn::reference
