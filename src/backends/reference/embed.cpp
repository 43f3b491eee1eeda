// Rows in and rows out of a step: the embedding of each token, the rows whose logits are wanted,
// and columns that stand apart.
#include <algorithm>

#include "backends/reference/kernels.h"
#include "backends/reference/row_kernel.h"

namespace cairn::reference {
namespace {

void embed(const op::Embed& op, const Step& step, int32_t row) {
  const int32_t token = index_of(step.tokens[size_t(row)]);
  CHECK(token >= 0 && token < op.table->rows);
  const std::span<float> out = row_of(step, op.out, row);
  quant::decode_row(*op.table->type, {op.table->row(0, token), op.table->row_bytes()}, out);
  for (float& value : out) value *= op.scale;
}

void gather_outputs(const op::GatherOutputs& op, const Step& step, int32_t row) {
  const std::span<const float> x = row_of(step, op.x, step.output_rows[size_t(row)]);
  std::copy(x.begin(), x.end(), row_of(step, op.out, row).begin());
}

void pick_columns(const op::PickColumns& op, const Step& step, int32_t row) {
  const float* x = step.row(op.x, row);
  float* out = step.row(op.out, row);
  for (int32_t i = 0; i < op.out.width / op.count; ++i) {
    std::copy_n(x + int64_t(i) * op.period, op.count, out + int64_t(i) * op.count);
  }
}

}  // namespace

host::HostKernel embed_kernel() {
  return row_kernel<op::Embed, embed>();
}
host::HostKernel gather_outputs_kernel() {
  return row_kernel<op::GatherOutputs, gather_outputs>();
}
host::HostKernel pick_columns_kernel() {
  return row_kernel<op::PickColumns, pick_columns>();
}

}  // namespace cairn::reference
