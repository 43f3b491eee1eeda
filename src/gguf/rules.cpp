// Each rule with its error: what was expected and what was found.
#include "gguf/rules.h"

#include <algorithm>
#include <bit>

#include "base/printable.h"
#include "gguf/file_int.h"
#include "gguf/tensor.h"

namespace cairn::gguf {
namespace {

template <class... Args>
Error bad(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::invalid_data, format, std::forward<Args>(args)...);
}

Status check_name(std::string_view what, std::string_view sort, std::string_view name,
                  uint64_t bytes_max) {
  if (name.empty() || name.size() > bytes_max) {
    return bad("{}: expected {} of 1 to {} bytes, found {}", what, sort, bytes_max, name.size());
  }
  if (std::all_of(name.begin(), name.end(), [](char c) { return c >= 0x20 && c < 0x7f; })) {
    return Ok{};
  }
  return bad("{}: expected {} of printable ASCII, found \"{}\"", what, sort, shown(name));
}

}  // namespace

std::string shown(std::string_view text, size_t bytes_max) {
  std::string line;
  for (const char c : printable(text.substr(0, bytes_max))) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else {
      line += c;
    }
  }
  return text.size() > bytes_max ? line + "…" : line;
}

Status check_key(std::string_view what, std::string_view key) {
  return check_name(what, "a key", key, kKeyBytesMax);
}

Status check_tensor_name(std::string_view what, std::string_view name) {
  return check_name(what, "a name", name, kTensorNameBytesMax);
}

Status check_alignment(uint64_t alignment) {
  if (std::has_single_bit(alignment) && alignment >= kAlignmentMin && alignment <= kAlignmentMax) {
    return Ok{};
  }
  return bad("{}: expected a power of two from {} to {}, found {}", kAlignmentKey, kAlignmentMin,
             kAlignmentMax, alignment);
}

Result<Extent> check_shape(std::string_view name, std::span<const uint64_t> dims,
                           uint32_t type_id) {
  const std::string what = fmt::format("tensor {}", shown(name));
  if (dims.empty() || dims.size() > kDimCountMax) {
    return bad("{}: expected 1 to {} dimensions, found {}", what, kDimCountMax, dims.size());
  }
  FileInt product(1);
  for (const uint64_t dim : dims) {
    if (dim < 1 || dim > kDimMax) {
      return bad("{}: expected dimensions of 1 to 2^40, found {}", what, dim);
    }
    auto next = product * FileInt(dim);
    if (!next || next->value() > kWeightsMax) {
      return bad("{}: expected at most 2^48 weights, found {} * {}", what, product.value(), dim);
    }
    product = *next;
  }
  const std::optional<Storage> storage = storage_of(type_id);
  if (!storage || storage->block_bytes == 0) {
    return fail(ErrorCode::unsupported, "{}: expected a type that can be read, found {}", what,
                type_name(type_id));
  }
  const uint64_t block_weights = uint64_t(storage->block_weights);
  if (dims[0] % block_weights != 0) {
    return bad("{}: expected rows of whole blocks of {} ({}), found rows of {}", what,
               block_weights, storage->name, dims[0]);
  }
  CAIRN_TRY(const FileInt bytes,
            FileInt(product.value() / block_weights) * FileInt(uint64_t(storage->block_bytes)));
  return Extent{.weight_count = int64_t(product.value()), .bytes = bytes.value()};
}

}  // namespace cairn::gguf
