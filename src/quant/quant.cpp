// The table of block formats and the loops over rows. Which formats exist is known only to the
// generated table (src/quant/CMakeLists.txt); what a block means only to the format's own file.
#include "quant/quant.h"

#include "base/check.h"

namespace cairn::quant {

const Type* find(uint32_t gguf_id) {
  for (const Type* type : all()) {
    if (type->gguf_id == gguf_id) return type;
  }
  return nullptr;
}

const Type* find(std::string_view name) {
  for (const Type* type : all()) {
    if (type->name == name) return type;
  }
  return nullptr;
}

size_t row_bytes(const Type& type, int64_t weight_count) {
  CHECK(weight_count >= 0 && weight_count % type.block_weights == 0);
  return size_t(weight_count / type.block_weights) * size_t(type.block_bytes);
}

void decode_row(const Type& type, std::span<const std::byte> row, std::span<float> weights) {
  CHECK(row.size() == row_bytes(type, int64_t(weights.size())));
  const std::byte* block = row.data();
  for (size_t first = 0; first < weights.size(); first += size_t(type.block_weights)) {
    type.decode(block, weights.data() + first);
    block += type.block_bytes;
  }
}

void encode_row(const Type& type, std::span<const float> weights, std::span<std::byte> row,
                std::span<const float> importance) {
  CHECK(type.encode != nullptr);
  CHECK(row.size() == row_bytes(type, int64_t(weights.size())));
  CHECK(importance.empty() || importance.size() == weights.size());
  std::byte* block = row.data();
  for (size_t first = 0; first < weights.size(); first += size_t(type.block_weights)) {
    type.encode(weights.data() + first, importance.empty() ? nullptr : importance.data() + first,
                block);
    block += type.block_bytes;
  }
}

}  // namespace cairn::quant
