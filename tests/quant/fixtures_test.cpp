// Every format's decoder against values decoded elsewhere, bit for bit: this covers each file of
// src/quant that defines a format, and the code books in grid_*.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "quant/quant.h"

namespace cairn::quant::fixtures_test {
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

// E2M1 by its definition: a sign, two bits of exponent (bias 1), one of fraction.
float fp4(int code) {
  const int exponent = code >> 1 & 3;
  const float fraction = float(code & 1) / 2;
  const float magnitude = exponent == 0 ? fraction : std::ldexp(1 + fraction, exponent - 1);
  return code & 8 ? -magnitude : magnitude;
}

// The fixtures hold common exponents only; here are all, the subnormal ones included.
TEST(Formats, Mxfp4HasAllExponents) {
  for (int exponent = 0; exponent < 256; ++exponent) {
    std::vector<std::byte> block(17);
    block[0] = std::byte(exponent);
    for (size_t i = 0; i < 16; ++i) block[1 + i] = std::byte(i | (15 - i) << 4);
    std::vector<float> weights(32);
    decode_row(*find("MXFP4"), block, weights);
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(weights[size_t(i)], std::ldexp(fp4(i), exponent - 127)) << exponent;
      EXPECT_EQ(weights[size_t(i) + 16], std::ldexp(fp4(15 - i), exponent - 127)) << exponent;
    }
  }
}

// No fixture has NVFP4: all its scales (E4M3, bias 7, unsigned; 0 and 127 mean 0) and codes.
TEST(Formats, Nvfp4HasAllScales) {
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15;
    const float fraction = float(code & 7) / 8;
    float scale = exponent == 0 ? std::ldexp(fraction, -6) : std::ldexp(1 + fraction, exponent - 7);
    if (code == 127) scale = 0;
    std::vector<std::byte> block(36);
    for (size_t group = 0; group < 4; ++group) {
      block[group] = std::byte(group == 2 ? code : 0);
      for (size_t i = 0; i < 8; ++i) block[4 + 8 * group + i] = std::byte(i | (15 - i) << 4);
    }
    std::vector<float> weights(64);
    decode_row(*find("NVFP4"), block, weights);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(weights[size_t(32 + i)], scale * fp4(i)) << code;
      EXPECT_EQ(weights[size_t(40 + i)], scale * fp4(15 - i)) << code;
    }
    for (const size_t i : {0u, 31u, 48u, 63u}) EXPECT_EQ(weights[i], 0) << code;
  }
}

}  // namespace
}  // namespace cairn::quant::fixtures_test
