// Experts wait until the last of their layer has come, and are written in the order of the table.
#include "convert/tensor_plan.h"

#include <algorithm>
#include <utility>

#include "quant/quant.h"

namespace cairn::convert {
namespace {

constexpr int64_t kExpertCountMax = 1 << 16;

uint32_t type_id_of(std::string_view name) {
  return quant::find(name)->gguf_id;
}

uint32_t type_id_of(OutType type) {
  return type_id_of(type == OutType::f32 ? "F32" : type == OutType::f16 ? "F16" : "BF16");
}

std::vector<int64_t> dims_of(const SourceTensor& source) {
  return {source.shape.rbegin(), source.shape.rend()};
}

}  // namespace

std::string shape_text(const SourceTensor& tensor) {
  std::string text = "[";
  for (const int64_t dim : tensor.shape)
    text += fmt::format("{}{}", text.size() > 1 ? ", " : "", dim);
  return text + "]";
}

int64_t PlannedTensor::row_count() const {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count / row_numbers;
}

TensorPlan::TensorPlan(const Checkpoint& checkpoint, const Config& config, const Family& family,
                       OutType type, int64_t token_count, KeyValues& out)
    : checkpoint_(checkpoint),
      config_(config),
      family_(family),
      type_(type),
      token_count_(token_count),
      out_(out) {}

Status TensorPlan::start_counts() {
  const auto read = [&](int64_t& count, std::initializer_list<std::string_view> keys) -> Status {
    CAIRN_TRY(const std::optional<int64_t> stated, config_.count_if_set(keys));
    count = stated.value_or(0);
    return Ok{};
  };
  CAIRN_TRY(read(heads_, {"num_attention_heads", "n_head", "n_heads"}));
  CAIRN_TRY(read(kv_heads_, {"num_key_value_heads", "num_kv_heads"}));
  CAIRN_TRY(read(layers_, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}));
  return read(experts_count_,
              {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"});
}

std::string TensorPlan::target_name(const TensorName& name, std::string_view target) {
  // Stacked experts come without an ending.
  const std::string_view ending = name.ending.empty() ? ".weight" : name.ending;
  if (!name.layer) return fmt::format("{}{}", target, ending);
  return fmt::format("blk.{}.{}{}", *name.layer, target, ending);
}

PlannedTensor TensorPlan::start(std::string name, std::vector<int64_t> dims) const {
  PlannedTensor tensor{.name = std::move(name), .dims = std::move(dims)};
  tensor.type_id = must_be_f32(tensor) ? type_id_of("F32") : type_id_of(type_);
  tensor.row_numbers = tensor.dims[0];
  return tensor;
}

// Vectors, routers and small tables lose too much in 16 bits, and cost nothing.
bool TensorPlan::must_be_f32(const PlannedTensor& tensor) const {
  static constexpr std::string_view kEndings[] = {"_norm.weight",
                                                  ".ffn_gate_inp.weight",
                                                  ".ffn_gate_inp_shexp.weight",
                                                  ".ssm_conv1d.weight",
                                                  ".shortconv.conv.weight",
                                                  ".altup_correct_coef.weight",
                                                  ".altup_predict_coef.weight"};
  const std::string_view name = tensor.name;
  if (tensor.dims.size() <= 1 || !name.ends_with(".weight")) return true;
  if (name == "position_embd.weight" || name == "token_types.weight") return true;
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

Status TensorPlan::add(PlannedTensor tensor) {
  int64_t planned = 0;
  for (const RowRun& run : tensor.runs) {
    if (run.source->number == Number::other) {
      return fail(ErrorCode::unsupported, "tensor {}: expected F64, F32, F16 or BF16, found {}",
                  run.source->name, run.source->dtype);
    }
    planned += run.row_count;
    const int64_t last =
        run.first + (run.row_count - 1) * run.row_stride + (tensor.row_numbers - 1) * run.step;
    if (run.row_count > 0 && (run.first < 0 || last >= run.source->number_count())) {
      return fail(ErrorCode::invalid_data, "tensor {}: expected {} numbers for {}, found shape {}",
                  run.source->name, last + 1, tensor.name, shape_text(*run.source));
    }
  }
  const bool is_made = tensor.make_row != nullptr || !tensor.numbers.empty();
  if (!is_made && planned != tensor.row_count()) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected {} rows, found {}", tensor.name,
                tensor.row_count(), planned);
  }
  planned_.push_back(std::move(tensor));
  return Ok{};
}

void TensorPlan::add_numbers(std::string name, std::vector<float> numbers) {
  const auto count = int64_t(numbers.size());
  planned_.push_back({.name = std::move(name),
                      .dims = {count},
                      .type_id = type_id_of("F32"),
                      .runs = {},
                      .numbers = std::move(numbers),
                      .make_row = {},
                      .row_numbers = count});
}

Status TensorPlan::add_row(const TensorName& name, const NameRow& row, const SourceTensor& source) {
  if (name.expert) return add_expert(name, row, source);
  if (!row.second_target.empty()) return add_halves(name, row, source);
  if (row.edit != Edit::none || row.is_bare) return add_edited(name, row, source);
  return add_whole(name, row.target, source);
}

Status TensorPlan::add_whole(const TensorName& name, std::string_view target,
                             const SourceTensor& source, Width width) {
  std::vector<int64_t> dims = dims_of(source);
  if (target == "token_embd" && family_.trims_embedding && dims.size() == 2) {
    dims[1] = std::min(dims[1], token_count_);
  }
  PlannedTensor tensor = start(target_name(name, target), std::move(dims));
  if (width == Width::of_matrices) tensor.type_id = type_id_of(type_);
  const bool is_norm = source.name.ends_with("norm.weight");
  if (family_.norms_less_one && is_norm) tensor.edit = Edit::add_one;
  if (family_.interleaves_heads) {
    const bool is_q = target == "attn_q", is_k = target == "attn_k";
    const int64_t heads = is_k ? kv_head_count() : heads_;
    if ((is_q || is_k) && heads > 0 && source.shape[0] % (2 * heads) == 0) {
      tensor.head_rows = source.shape[0] / heads;
      if (source.shape.size() == 1) tensor.row_numbers = 1;
    }
  }
  tensor.runs.push_back({&source, 0, tensor.row_count(), tensor.row_numbers});
  return add(std::move(tensor));
}

Status TensorPlan::add_rows(const TensorName& name, std::string_view target,
                            const SourceTensor& source, std::span<const Rows> parts,
                            int64_t head_rows) {
  int64_t row_count = 0;
  for (const Rows& rows : parts) row_count += rows.count;
  const bool is_vector = source.shape.size() == 1;
  const int64_t width = is_vector ? 1 : source.number_count() / source.shape[0];
  PlannedTensor tensor = start(target_name(name, target),
                               is_vector ? std::vector{row_count} : std::vector{width, row_count});
  tensor.row_numbers = width;
  tensor.head_rows = head_rows;
  for (const Rows& rows : parts) {
    tensor.runs.push_back({&source, rows.first * width, rows.count, width});
  }
  return add(std::move(tensor));
}

Status TensorPlan::add_edited(const TensorName& name, const NameRow& row,
                              const SourceTensor& source) {
  std::vector<int64_t> dims = dims_of(source);
  std::string target = target_name(name, row.target);
  if (row.is_bare) target.erase(target.rfind('.'));
  if (row.edit == Edit::transpose && dims.size() >= 2) {
    const int64_t in_width = dims[0], in_rows = dims[1];
    std::swap(dims[0], dims[1]);
    const int64_t matrix_count = dims.size() == 3 ? dims[2] : 1;
    PlannedTensor tensor = start(std::move(target), std::move(dims));
    for (int64_t matrix = 0; matrix < matrix_count; ++matrix) {
      tensor.runs.push_back({&source, matrix * in_rows * in_width, in_width, 1, in_width});
    }
    return add(std::move(tensor));
  }
  if (row.edit == Edit::squeeze && dims.size() == 3 && dims[1] == 1) dims.erase(dims.begin() + 1);
  PlannedTensor tensor = start(std::move(target), std::move(dims));
  tensor.edit = row.edit;
  tensor.runs.push_back({&source, 0, tensor.row_count(), tensor.row_numbers});
  return add(std::move(tensor));
}

// [experts, 2 rows, columns] or [2 rows, columns]: of each the first half of the rows, then of
// each the second.
Status TensorPlan::add_halves(const TensorName& name, const NameRow& row,
                              const SourceTensor& source) {
  std::vector<int64_t> dims = dims_of(source);
  if (dims.size() < 2 || dims[1] % 2 != 0 || (dims.size() == 3 && dims[2] > kExpertCountMax)) {
    return fail(ErrorCode::invalid_data, "tensor {}: expected two matrices in one, found shape {}",
                source.name, shape_text(source));
  }
  const int64_t half = dims[1] / 2, count = dims.size() == 3 ? dims[2] : 1, width = dims[0];
  dims[1] = half;
  const std::string_view targets[] = {half_target(row.target), half_target(row.second_target)};
  for (int64_t part = 0; part < 2; ++part) {
    PlannedTensor tensor = start(target_name(name, targets[part]), dims);
    for (int64_t i = 0; i < count; ++i) {
      tensor.runs.push_back({&source, (2 * i + part) * half * width, half, width});
    }
    CAIRN_TRY(add(std::move(tensor)));
  }
  return Ok{};
}

// Without experts, Granite's shared one is the layer's only one.
std::string_view TensorPlan::half_target(std::string_view target) const {
  if (experts_count_ > 0) return target;
  if (target == "ffn_gate_shexp") return "ffn_gate";
  return target == "ffn_up_shexp" ? "ffn_up" : target;
}

// Each expert has as many matrices as the table has rows for one.
size_t TensorPlan::wanted_count() const {
  const auto is_of_expert = [](const NameRow& row) {
    return row.source.find(".*.") != row.source.npos;
  };
  return size_t(std::count_if(family_.names.begin(), family_.names.end(), is_of_expert)) *
         size_t(experts_count_);
}

Status TensorPlan::add_expert(const TensorName& name, const NameRow& row,
                              const SourceTensor& source) {
  const bool is_matrix = source.shape.size() == 2 && name.ending == ".weight";
  if (!name.layer || !is_matrix || *name.expert >= experts_count_) {
    return fail(ErrorCode::invalid_data,
                "tensor {}: expected a matrix of one of {} experts, found shape {}", source.name,
                experts_count_, shape_text(source));
  }
  Buffer& buffer = experts_[*name.layer];
  buffer[{&row, *name.expert}] = &source;
  if (buffer.size() < wanted_count()) return Ok{};
  CAIRN_TRY(write_experts(name, buffer));
  experts_.erase(*name.layer);
  return Ok{};
}

Status TensorPlan::write_experts(const TensorName& name, const Buffer& buffer) {
  const SourceTensor* first = nullptr;
  std::optional<PlannedTensor> tensor;
  for (const auto& [key, source] : buffer) {
    const auto& [row, expert] = key;
    if (expert == 0) {
      if (tensor) CAIRN_TRY(add(std::move(*tensor)));
      first = source;
      tensor = start(fmt::format("blk.{}.{}.weight", *name.layer, row->target),
                     {source->shape[1], source->shape[0], experts_count_});
    }
    if (first == nullptr || source->shape != first->shape) {
      return fail(ErrorCode::invalid_data, "tensor {}: expected the shape of expert 0, found {}",
                  source->name, shape_text(*source));
    }
    tensor->runs.push_back({source, 0, source->shape[0], source->shape[1]});
  }
  return tensor ? add(std::move(*tensor)) : Status(Ok{});
}

Result<std::vector<PlannedTensor>> TensorPlan::finish() {
  for (const auto& [layer, buffer] : experts_) {
    return fail(ErrorCode::invalid_data, "layer {}: expected {} tensors of experts, found {}",
                layer, wanted_count(), buffer.size());
  }
  return std::move(planned_);
}

}  // namespace cairn::convert
