// Names of the files of a split model.
#include "gguf/split.h"

#include <gtest/gtest.h>

namespace cairn::gguf::split_test {
namespace {

TEST(Split, NamesComeBack) {
  const auto name = parse_split_name("/models/a-b.c-00002-of-00013.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->stem, "/models/a-b.c");
  EXPECT_EQ(name->part, 2u);
  EXPECT_EQ(name->part_count, 13u);
  EXPECT_EQ(split_path(name->stem, 13, name->part_count), "/models/a-b.c-00013-of-00013.gguf");
}

TEST(Split, NothingLooser) {
  for (const char* path :
       {"", "x.gguf", "-00001-of-00002.gguf", "x-00001-of-00002", "x-00001-of-00002.GGUF",
        "x-1-of-2.gguf", "x-00000-of-00002.gguf", "x-00003-of-00002.gguf", "x-+0001-of-00002.gguf",
        "x-00001-of-0002.gguf", "x_00001-of-00002.gguf", "x-00001_of_00002.gguf",
        "x-00001-of- 0002.gguf", "x-00001-of-00002.gguf "}) {
    EXPECT_FALSE(parse_split_name(path).has_value()) << path;
  }
}

}  // namespace
}  // namespace cairn::gguf::split_test
