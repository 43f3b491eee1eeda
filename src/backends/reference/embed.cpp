// Rows in and rows out of a step: the embedding of each token, the rows whose logits are wanted,
// and columns that stand apart.
#include <algorithm>

#include "backends/reference/kernels.h"
#include "backends/reference/row_kernel.h"

namespace cairn::reference {
namespace {

void embed(const op::Embed& op, const Step& step, int32_t row) {
  const int32_t entry = op.fixed_row >= 0 ? op.fixed_row
                        : op.by_position  ? step.positions[size_t(row)]
                                          : index_of(step.tokens[size_t(row)]);
  CHECK(entry >= 0 && entry < op.table->rows);
  const std::span<float> out = row_of(step, op.out, row);
  quant::decode_row(*op.table->type, {op.table->row(0, entry), op.table->row_bytes()}, out);
  for (float& value : out) value *= op.scale;
}

void given(const op::Given& op, const Step& step, int32_t row) {
  const std::span<float> out = row_of(step, op.out, row);
  const auto rows = step.given.subspan(size_t(row) * out.size());
  CHECK(rows.size() >= out.size());
  std::copy_n(rows.begin(), out.size(), out.begin());
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

void join_columns(const op::JoinColumns& op, const Step& step, int32_t row) {
  const float* a = step.row(op.a, row);
  const float* b = step.row(op.b, row);
  float* out = step.row(op.out, row);
  for (int32_t run = 0; run < op.a.width / op.a_run; ++run) {
    out = std::copy_n(a + int64_t(run) * op.a_run, op.a_run, out);
    out = std::copy_n(b + (op.b.width == op.b_run ? 0 : int64_t(run) * op.b_run), op.b_run, out);
  }
}

}  // namespace

host::HostKernel embed_kernel() {
  return row_kernel<op::Embed, embed>();
}
host::HostKernel given_kernel() {
  return row_kernel<op::Given, given>();
}
host::HostKernel gather_outputs_kernel() {
  return row_kernel<op::GatherOutputs, gather_outputs>();
}
host::HostKernel pick_columns_kernel() {
  return row_kernel<op::PickColumns, pick_columns>();
}
host::HostKernel join_columns_kernel() {
  return row_kernel<op::JoinColumns, join_columns>();
}

}  // namespace cairn::reference
