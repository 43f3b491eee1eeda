// A tensor of a file: name, shape, type and where its bytes are. A view; nothing is decoded here.
// Thread-safe: constant data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "quant/quant.h"

namespace cairn::gguf {

struct Tensor {
  std::string_view name;
  // dims[0] is the length of a row, whose weights lie side by side; the rest are 1.
  std::array<int64_t, 4> dims;
  int32_t dim_count;
  uint32_t type_id;         // The number in the file.
  const quant::Type* type;  // Null where this program cannot decode it: plain numbers (I32 …),
                            // and unknown types in a file opened for inspection.
  int64_t weight_count;     // Product of dims; 0 where a file opened for inspection breaks a rule.
  uint64_t offset;          // From the start of its part's tensor data.
  int32_t part;             // The file of a split model that holds it, from 0.
  // All of the tensor's bytes; empty where a file opened for inspection breaks a rule.
  std::span<const std::byte> bytes;

  int64_t row_count() const { return dims[1] * dims[2] * dims[3]; }
};

// How a type is stored; bytes are 0 where only its name is known.
struct Storage {
  std::string_view name;
  int32_t block_weights;
  int32_t block_bytes;
};

// The types of cairn::quant, the plain number types of GGUF (I8 … I64, F64), and types that cairn
// knows by name only. Nothing for other numbers.
std::optional<Storage> storage_of(uint32_t type_id);

// "Q4_K", "I32", "type 255 (unknown)".
std::string type_name(uint32_t type_id);

// "[2048, 4096]".
std::string shape_text(const Tensor& tensor);

}  // namespace cairn::gguf
