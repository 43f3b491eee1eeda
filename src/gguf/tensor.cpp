// Names and sizes of tensor types that are no weights of cairn's, so that files with them can be
// read and refused by name. Source of the numbers: the GGUF specification.
#include "gguf/tensor.h"

#include <fmt/format.h>

namespace cairn::gguf {
namespace {

struct PlainType {
  uint32_t id;
  Storage storage;
};

constexpr PlainType kPlainTypes[] = {
    {24, {"I8", 1, 1}},
    {25, {"I16", 1, 2}},
    {26, {"I32", 1, 4}},
    {27, {"I64", 1, 8}},
    {28, {"F64", 1, 8}},
    // Formats of activations while computing; files have no use for them.
    {9, {"Q8_1", 32, 0}},
    {15, {"Q8_K", 256, 292}},
    // Taken out of the format; old files may still have them.
    {4, {"Q4_2", 16, 0}},
    {5, {"Q4_3", 16, 0}},
    {31, {"Q4_0_4_4", 32, 0}},
    {32, {"Q4_0_4_8", 32, 0}},
    {33, {"Q4_0_8_8", 32, 0}},
    {36, {"IQ4_NL_4_4", 32, 0}},
    {37, {"IQ4_NL_4_8", 32, 0}},
    {38, {"IQ4_NL_8_8", 32, 0}},
    // Weights that this program cannot decode.
    {40, {"NVFP4", 64, 36}},
    {41, {"Q1_0", 128, 18}},
};

}  // namespace

std::optional<Storage> storage_of(uint32_t type_id) {
  if (const quant::Type* type = quant::find(type_id)) {
    return Storage{type->name, type->block_weights, type->block_bytes};
  }
  for (const PlainType& plain : kPlainTypes) {
    if (plain.id == type_id) return plain.storage;
  }
  return std::nullopt;
}

std::string type_name(uint32_t type_id) {
  if (const auto storage = storage_of(type_id)) return std::string(storage->name);
  return fmt::format("type {} (unknown)", type_id);
}

std::string shape_text(const Tensor& tensor) {
  std::string text = "[";
  for (int32_t dim = 0; dim < tensor.dim_count; ++dim) {
    text += fmt::format("{}{}", dim == 0 ? "" : ", ", tensor.dims[size_t(dim)]);
  }
  return text + "]";
}

}  // namespace cairn::gguf
