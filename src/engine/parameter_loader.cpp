// Looking parameters up and checking what was found.
#include "engine/parameter_loader.h"

#include <fmt/format.h>

namespace cairn {

namespace {

// Tables whose rows are looked up: a scale of products would be for half of what they are, or for
// nothing.
bool is_table(std::string_view name) {
  return name.ends_with("embd.weight") || name == "token_types.weight";
}

bool same_shape(const gguf::Tensor& tensor, std::span<const int64_t> shape) {
  for (size_t dim = 0; dim < tensor.dims.size(); ++dim) {
    const int64_t expected = dim < shape.size() ? shape[dim] : 1;
    if (expected < 0) continue;  // See usual().
    if (tensor.dims[dim] != expected) return false;
  }
  return true;
}

}  // namespace

// Null for an optional parameter that is not there.
Result<const gguf::Tensor*> ParameterLoader::find(std::string_view name,
                                                  std::span<const int64_t> shape, Need need) {
  const gguf::Tensor* tensor = file_->find(name);
  if (tensor == nullptr) {
    if (need == Need::optional) return tensor;
    return fail(ErrorCode::not_found, "{}: expected a tensor of shape [{}], found none", name,
                fmt::join(shape, ", "));
  }
  if (!same_shape(*tensor, shape)) {
    return fail(ErrorCode::invalid_data, "{}: expected the shape [{}], found {}", name,
                fmt::join(shape, ", "), gguf::shape_text(*tensor));
  }
  if (tensor->type == nullptr) {
    return fail(ErrorCode::unsupported, "{}: expected a type of weights, found {}", name,
                gguf::type_name(tensor->type_id));
  }
  parameter_count_ += tensor->weight_count;
  read_.insert(tensor->name);
  return tensor;
}

std::vector<std::string_view> ParameterLoader::unread() const {
  std::vector<std::string_view> names;
  for (const gguf::Tensor& tensor : file_->tensors()) {
    if (!read_.contains(tensor.name)) names.push_back(tensor.name);
  }
  return names;
}

Status ParameterLoader::matrix(std::string_view name, Weight& weight,
                               std::span<const int64_t> shape, Need need) {
  CAIRN_TRY(const gguf::Tensor* tensor, find(name, shape, need));
  if (tensor == nullptr) return Ok{};
  weight = {.name = tensor->name,
            .type = tensor->type,
            .cols = int32_t(tensor->dims[0]),
            .rows = int32_t(tensor->dims[1]),
            .count = int32_t(tensor->dims[2]),
            .blocks = tensor->bytes};
  if (!is_table(weight.name)) weight.scales = scales_beside(weight);
  matrices_.push_back(&weight);
  return Ok{};
}

// "X.scale" beside "X.weight", if there is one: a number for each matrix.
std::span<const float> ParameterLoader::scales_beside(const Weight& weight) {
  constexpr std::string_view kWeight = ".weight";
  if (!weight.name.ends_with(kWeight)) return {};
  std::string name(weight.name.substr(0, weight.name.size() - kWeight.size()));
  const gguf::Tensor* tensor = file_->find(name += ".scale");
  const bool is_ours = tensor != nullptr && tensor->type != nullptr &&
                       tensor->dims[0] == weight.count && tensor->weight_count == weight.count;
  return is_ours ? read_vector(*tensor) : std::span<const float>{};
}

Status ParameterLoader::vector(std::string_view name, Vector& vector,
                               std::span<const int64_t> shape, Need need) {
  CAIRN_TRY(const gguf::Tensor* tensor, find(name, shape, need));
  if (tensor == nullptr) return Ok{};
  vector.values = read_vector(*tensor);
  return Ok{};
}

std::span<const float> ParameterLoader::read_vector(const gguf::Tensor& tensor) {
  read_.insert(tensor.name);
  std::vector<float>& values = vectors_.emplace_back(size_t(tensor.weight_count));
  quant::decode_row(*tensor.type, tensor.bytes, values);
  return values;
}

}  // namespace cairn
