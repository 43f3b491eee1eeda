// Looking parameters up and checking what was found.
#include "engine/parameter_loader.h"

#include <fmt/format.h>

namespace cairn {

namespace {

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
  matrices_.push_back(&weight);
  return Ok{};
}

Status ParameterLoader::vector(std::string_view name, Vector& vector,
                               std::span<const int64_t> shape, Need need) {
  CAIRN_TRY(const gguf::Tensor* tensor, find(name, shape, need));
  if (tensor == nullptr) return Ok{};
  std::vector<float>& values = vectors_.emplace_back(size_t(tensor->weight_count));
  quant::decode_row(*tensor->type, tensor->bytes, values);
  vector.values = values;
  return Ok{};
}

}  // namespace cairn
