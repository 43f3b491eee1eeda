// What is known of tensor types.
#include "gguf/tensor.h"

#include <gtest/gtest.h>

namespace cairn::gguf::tensor_test {
namespace {

TEST(Tensor, EveryTypeOfTheQuantTableIsStoredAsItSays) {
  for (const quant::Type* type : quant::all()) {
    const auto storage = storage_of(type->gguf_id);
    ASSERT_TRUE(storage.has_value());
    EXPECT_EQ(storage->name, type->name);
    EXPECT_EQ(storage->block_weights, type->block_weights);
    EXPECT_EQ(storage->block_bytes, type->block_bytes);
  }
}

TEST(Tensor, PlainNumbersAndNamesOnly) {
  EXPECT_EQ(storage_of(26)->block_bytes, 4);  // I32
  EXPECT_EQ(storage_of(28)->block_bytes, 8);  // F64
  EXPECT_EQ(type_name(26), "I32");
  EXPECT_EQ(type_name(32), "Q4_0_4_8");
  EXPECT_EQ(storage_of(32)->block_bytes, 0);
  EXPECT_FALSE(storage_of(255).has_value());
  EXPECT_EQ(type_name(255), "type 255 (unknown)");
}

TEST(Tensor, ShapesInWords) {
  Tensor tensor{};
  tensor.dims = {3, 4, 1, 1};
  tensor.dim_count = 3;
  EXPECT_EQ(shape_text(tensor), "[3, 4, 1]");
  EXPECT_EQ(tensor.row_count(), 4);
}

}  // namespace
}  // namespace cairn::gguf::tensor_test
