// One number for each head becomes a column; the norm gets a row for each group.
#include "convert/ssm_tensors.h"

#include <utility>

namespace cairn::convert {
namespace {

std::string bare_name(const TensorName& name, std::string_view target) {
  return fmt::format("blk.{}.{}", name.layer.value_or(0), target);
}

Status add_column(TensorPlan& plan, std::string name, const SourceTensor& source, Edit edit) {
  PlannedTensor tensor = plan.start(std::move(name), {1, source.number_count()});
  tensor.edit = edit;
  tensor.runs.push_back({&source, 0, tensor.row_count(), 1});
  return plan.add(std::move(tensor));
}

}  // namespace

Result<bool> add_mamba2_tensor(TensorPlan& plan, const TensorName& name, const SourceTensor& source,
                               std::string_view prefix, int64_t group_count) {
  std::string_view rest = name.rest;
  if (!name.layer || !rest.starts_with(prefix)) return false;
  rest.remove_prefix(prefix.size());
  if (rest == "A_log") {
    CAIRN_TRY(add_column(plan, bare_name(name, "ssm_a"), source, Edit::negative_exp));
  } else if (rest == "D") {
    CAIRN_TRY(add_column(plan, bare_name(name, "ssm_d"), source, Edit::none));
  } else if (rest == "dt_bias") {
    PlannedTensor tensor = plan.start(bare_name(name, "ssm_dt.bias"), {source.number_count()});
    tensor.runs.push_back({&source, 0, 1, tensor.row_numbers});
    CAIRN_TRY(plan.add(std::move(tensor)));
  } else if (rest == "norm") {
    const int64_t width = source.number_count();
    if (group_count < 1 || width % group_count != 0) {
      return fail(ErrorCode::invalid_data, "tensor {}: expected {} groups, found shape {}",
                  source.name, group_count, shape_text(source));
    }
    PlannedTensor tensor =
        plan.start(bare_name(name, "ssm_norm.weight"), {width / group_count, group_count});
    tensor.runs.push_back({&source, 0, group_count, tensor.row_numbers});
    CAIRN_TRY(plan.add(std::move(tensor)));
  } else {
    return false;
  }
  return true;
}

}  // namespace cairn::convert
