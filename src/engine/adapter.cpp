// A pair is named as its matrix: "blk.0.attn_q.weight.lora_a" and "….lora_b".
#include "engine/adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace cairn {
namespace {

// No layer is wider (gguf/hyperparameters.cpp), and a higher rank than the matrix has is no use.
constexpr int64_t kRankMax = 1 << 20;
constexpr std::string_view kFirst = ".lora_a", kSecond = ".lora_b";
constexpr std::string_view kEmbedding = "token_embd.weight";
// Of aLoRA: from which tokens on the adapter counts.
constexpr std::string_view kInvocation = "adapter.alora.invocation_tokens";

Weight weight_of(const gguf::Tensor& tensor) {
  return {.name = tensor.name,
          .type = tensor.type,
          .cols = int32_t(tensor.dims[0]),
          .rows = int32_t(tensor.dims[1]),
          .count = int32_t(tensor.dims[2]),
          .blocks = tensor.bytes};
}

const Weight* find_matrix(std::span<Weight* const> matrices, std::string_view name) {
  for (const Weight* matrix : matrices) {
    if (matrix->name == name) return matrix;
  }
  return nullptr;
}

Status check_pair(const Weight& matrix, const gguf::Tensor& a, const gguf::Tensor& b) {
  const bool has_types = a.type != nullptr && b.type != nullptr;
  if (!has_types) {
    return fail(ErrorCode::unsupported, "{}: expected a type of weights, found {} and {}", a.name,
                gguf::type_name(a.type_id), gguf::type_name(b.type_id));
  }
  const bool fits = a.dims[0] == matrix.cols && b.dims[1] == matrix.rows && a.dims[1] == b.dims[0];
  const auto has_as_many = [&](const gguf::Tensor& half) {
    return half.dims[2] == matrix.count && half.row_count() == half.dims[1] * half.dims[2];
  };
  if (fits && has_as_many(a) && has_as_many(b) && a.dims[1] <= kRankMax) return Ok{};
  const std::string count = matrix.count == 1 ? "" : fmt::format(", {}", matrix.count);
  return fail(ErrorCode::invalid_data,
              "{}: expected [{}, rank{}] and [rank, {}{}], found {} and {}", a.name, matrix.cols,
              count, matrix.rows, count, gguf::shape_text(a), gguf::shape_text(b));
}

Sha256Digest digest_of(const gguf::File& file, float alpha) {
  Sha256 sha;
  sha.add(std::as_bytes(std::span(&alpha, 1)));
  for (const gguf::Tensor& tensor : file.tensors()) {
    sha.add(uint64_t(tensor.name.size())).add(tensor.name).add(tensor.type_id);
    for (const int64_t dim : tensor.dims) sha.add(uint64_t(dim));
    sha.add(tensor.bytes);
  }
  return sha.finish();
}

}  // namespace

Adapter::Adapter(gguf::File file, float alpha)
    : file_(std::move(file)), alpha_(alpha), digest_(digest_of(file_, alpha)) {}

Result<Adapter> Adapter::open(const std::string& path, std::string_view architecture) {
  CAIRN_TRY(gguf::File file, gguf::File::open(path));
  const gguf::Fields& fields = file.fields();
  const auto text = [&](std::string_view key) -> Result<std::string_view> {
    return fields.get_or<std::string_view>(key, "none");
  };
  CAIRN_TRY(const std::string_view type, text("general.type"));
  CAIRN_TRY(const std::string_view kind, text("adapter.type"));
  if (type != "adapter" || kind != "lora") {
    return fail(ErrorCode::unsupported, "{}: expected a LoRA adapter, found type {} and adapter {}",
                path, type, kind);
  }
  CAIRN_TRY(const std::string_view found, text("general.architecture"));
  if (found != architecture) {
    return fail(ErrorCode::unsupported, "{}: expected an adapter for {}, found one for {}", path,
                architecture, found);
  }
  if (fields.find(kInvocation) != nullptr) {
    return fail(ErrorCode::unsupported, "{}: expected an adapter that is always on, found {}", path,
                kInvocation);
  }
  if (file.tensors().empty()) {
    return fail(ErrorCode::invalid_data, "{}: expected pairs of matrices, found none", path);
  }
  CAIRN_TRY(const float alpha, fields.get_or<float>("adapter.lora.alpha", 0.0f));
  return Adapter(std::move(file), alpha);
}

Status Adapter::bind(std::span<Weight* const> matrices, const models::Program& program) {
  for (const gguf::Tensor& tensor : file_.tensors()) {
    if (program.skips_tensor(tensor.name)) continue;
    const bool is_first = tensor.name.ends_with(kFirst);
    if (!is_first && !tensor.name.ends_with(kSecond)) {
      return fail(ErrorCode::unsupported, "{}: expected a name ending in {} or {}", tensor.name,
                  kFirst, kSecond);
    }
    const std::string_view name = tensor.name.substr(0, tensor.name.size() - kFirst.size());
    const std::string other = std::string(name) + std::string(is_first ? kSecond : kFirst);
    const gguf::Tensor* second = file_.find(other);
    if (second == nullptr) {
      return fail(ErrorCode::invalid_data, "{}: expected {} beside it, found none", tensor.name,
                  other);
    }
    if (is_first) CAIRN_TRY(bind_pair(tensor, *second, matrices));
  }
  return Ok{};
}

Status Adapter::bind_pair(const gguf::Tensor& first, const gguf::Tensor& second,
                          std::span<Weight* const> matrices) {
  const std::string_view name = first.name.substr(0, first.name.size() - kFirst.size());
  // Where it makes the logits too, only that half of the change would come to be.
  if (name == kEmbedding) {
    return fail(ErrorCode::unsupported,
                "{}: expected a matrix that is only multiplied with, found the embedding",
                first.name);
  }
  const Weight* matrix = find_matrix(matrices, name);
  if (matrix == nullptr) {
    return fail(ErrorCode::unsupported, "{}: expected a matrix of the model, found no {}",
                first.name, name);
  }
  CAIRN_TRY(check_pair(*matrix, first, second));
  const float factor = alpha_ == 0 ? 1.0f : alpha_ / float(first.dims[1]);
  if (!std::isfinite(factor)) {
    return fail(ErrorCode::invalid_data, "{}: expected a finite scale, found {} / {}", first.name,
                alpha_, first.dims[1]);
  }
  pairs_.push_back({.of = matrix, .a = weight_of(first), .b = weight_of(second), .factor = factor});
  return Ok{};
}

Status Adapter::load(Backend& backend) {
  for (Pair& pair : pairs_) {
    CAIRN_TRY(backend.load(pair.a));
    CAIRN_TRY(backend.load(pair.b));
  }
  return Ok{};
}

void Adapter::add_changes(float scale, std::vector<LowRank>& changes) const {
  for (const Pair& pair : pairs_) {
    changes.push_back({.of = pair.of, .a = &pair.a, .b = &pair.b, .scale = scale * pair.factor});
  }
}

float Adapter::largest_factor() const {
  float largest = 0;
  for (const Pair& pair : pairs_) largest = std::max(largest, std::abs(pair.factor));
  return largest;
}

}  // namespace cairn
