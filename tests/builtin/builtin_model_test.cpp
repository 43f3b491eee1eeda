// The bytes in the program are those of the asset, where readers can map them.
#include "builtin/builtin_model.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/scratch_folder.h"

namespace cairn::builtin::builtin_model_test {
namespace {

TEST(BuiltinModel, IsTheAssetAndAligned) {
  const std::string asset = test::contents_of(CAIRN_SOURCE "/assets/nano.gguf");
  ASSERT_EQ(model().size(), asset.size());
  EXPECT_EQ(std::memcmp(model().data(), asset.data(), asset.size()), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(model().data()) % 64, 0u);
}

}  // namespace
}  // namespace cairn::builtin::builtin_model_test
