// Every format's decoder against values decoded elsewhere, bit for bit: this covers each file of
// src/quant that defines a format, and the code books in grid_*.cpp.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "quant/quant.h"

namespace cairn::quant {
namespace {

std::vector<std::byte> read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes(size_t(std::filesystem::file_size(path)));
  file.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size()));
  EXPECT_TRUE(file.good()) << path;
  return bytes;
}

const std::filesystem::path kFolder = std::filesystem::path(CAIRN_FIXTURES) / "quants";

TEST(Fixtures, EveryDecoderMatchesBitForBit) {
  ASSERT_TRUE(std::filesystem::is_directory(kFolder)) << kFolder;
  size_t checked_count = 0;
  for (const Type* type : all()) {
    const std::string name(type->name);
    const std::filesystem::path blocks = kFolder / (name + ".bin");
    if (!std::filesystem::exists(blocks)) continue;
    const std::vector<std::byte> row = read_all(blocks);
    const std::vector<std::byte> expected = read_all(kFolder / (name + ".f32"));
    std::vector<float> weights(expected.size() / sizeof(float));
    ASSERT_EQ(row.size(), row_bytes(*type, int64_t(weights.size()))) << name;
    decode_row(*type, row, weights);
    EXPECT_EQ(std::memcmp(weights.data(), expected.data(), expected.size()), 0) << name;
    ++checked_count;
  }
  EXPECT_EQ(checked_count, 25u);
}

// The other way round: no fixture is without a format.
TEST(Fixtures, EveryFixtureHasAFormat) {
  ASSERT_TRUE(std::filesystem::is_directory(kFolder)) << kFolder;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".bin") continue;
    EXPECT_NE(find(entry.path().stem().string()), nullptr) << entry.path();
  }
}

}  // namespace
}  // namespace cairn::quant
