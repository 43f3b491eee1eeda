// What holds for every block format, by walking the generated table: each file of src/quant that
// defines a format is tested here (and its layout in fixtures_test.cpp), a new one without being
// told.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "tests/quant/data.h"

namespace cairn::quant::all_types_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::byte> random_bytes(size_t count, uint32_t seed) {
  std::mt19937 bits(seed);
  std::vector<std::byte> out(count);
  for (std::byte& b : out) b = std::byte(bits() & 255);
  return out;
}

std::vector<std::byte> encoded(const Type& type, std::span<const float> weights,
                               std::span<const float> importance = {}) {
  std::vector<std::byte> row(row_bytes(type, int64_t(weights.size())));
  encode_row(type, weights, row, importance);
  return row;
}

TEST(AllTypes, NamesAndIdsAreUnique) {
  std::set<std::string_view> names;
  std::set<uint32_t> ids;
  for (const Type* type : all()) {
    EXPECT_TRUE(names.insert(type->name).second) << type->name;
    EXPECT_TRUE(ids.insert(type->gguf_id).second) << type->name;
    EXPECT_EQ(find(type->name), type);
    EXPECT_EQ(find(type->gguf_id), type);
  }
  EXPECT_GE(names.size(), 26u);
}

TEST(AllTypes, BlocksHaveOneOfFourSizes) {
  for (const Type* type : all()) {
    const std::set<int32_t> sizes = {1, 32, 64, 256};
    EXPECT_TRUE(sizes.contains(type->block_weights)) << type->name;
    EXPECT_GT(type->block_bytes, 0) << type->name;
    EXPECT_EQ(type->is_float(), type->block_weights == 1) << type->name;
  }
}

// Every bit pattern is a block: scales that are infinite or NaN included.
TEST(AllTypes, IntegersMeanWhatDecodeSays) {
  for (const Type* type : all()) {
    if (type->is_float()) continue;
    constexpr int kBlocks = 300;
    const size_t bytes = size_t(type->block_bytes);
    const std::vector<std::byte> blocks = random_bytes(kBlocks * bytes, type->gguf_id);
    std::vector<float> weights(size_t(type->block_weights));
    std::vector<Unit> units(weights.size() / 32);
    for (int block = 0; block < kBlocks; ++block) {
      type->decode(blocks.data() + size_t(block) * bytes, weights.data());
      type->integers(blocks.data() + size_t(block) * bytes, units.data());
      for (size_t i = 0; i < weights.size(); ++i) {
        const Unit& unit = units[i / 32];
        const size_t half = i / 16 % 2;
        const float meant = unit.scale[half] * float(unit.q[i % 32]) + unit.offset[half];
        ASSERT_TRUE(meant == weights[i] || (std::isnan(meant) && std::isnan(weights[i])))
            << type->name << " weight " << i << ": " << meant << " against " << weights[i];
      }
    }
  }
}

TEST(AllTypes, FlagsTellWhatUnitsHold) {
  for (const Type* type : all()) {
    if (type->is_float()) continue;
    bool halves = false, offsets = false;
    for (uint32_t seed = 0; seed < 50; ++seed) {
      const std::vector<std::byte> block = random_bytes(size_t(type->block_bytes), seed);
      std::vector<Unit> units(size_t(type->block_weights / 32));
      type->integers(block.data(), units.data());
      for (const Unit& unit : units) {
        halves |= std::memcmp(&unit.scale[0], &unit.scale[1], sizeof(float)) != 0;
        halves |= std::memcmp(&unit.offset[0], &unit.offset[1], sizeof(float)) != 0;
        offsets |= unit.offset[0] != 0 || unit.offset[1] != 0;
      }
    }
    EXPECT_EQ(type->halves, halves) << type->name;
    EXPECT_EQ(type->offsets, offsets) << type->name;
  }
}

// Kernels rely on these: how far a sum of 32 products can grow, which types may hold -128.
TEST(AllTypes, IntegersStayWithinTheirRange) {
  using Limits = std::pair<int, int>;
  const std::map<std::string_view, Limits> expected = {
      {"Q4_0", {-8, 7}},      {"Q4_1", {0, 15}},       {"Q5_0", {-16, 15}},
      {"Q5_1", {0, 31}},      {"Q8_0", {-128, 127}},   {"Q2_K", {0, 3}},
      {"Q3_K", {-4, 3}},      {"Q4_K", {0, 15}},       {"Q5_K", {0, 31}},
      {"Q6_K", {-32, 31}},    {"IQ1_S", {-9, 9}},      {"IQ1_M", {-9, 9}},
      {"IQ2_XXS", {-43, 43}}, {"IQ2_XS", {-43, 43}},   {"IQ2_S", {-43, 43}},
      {"IQ3_XXS", {-62, 62}}, {"IQ3_S", {-15, 15}},    {"IQ4_NL", {-127, 113}},
      {"TQ1_0", {-1, 1}},     {"IQ4_XS", {-127, 113}}, {"TQ2_0", {-1, 2}},
      {"MXFP4", {-12, 12}},   {"NVFP4", {-12, 12}}};
  for (const Type* type : all()) {
    if (type->is_float()) continue;
    int lowest = 127, highest = -128;
    for (uint32_t seed = 0; seed < 400; ++seed) {
      const std::vector<std::byte> block = random_bytes(size_t(type->block_bytes), seed);
      std::vector<Unit> units(size_t(type->block_weights / 32));
      type->integers(block.data(), units.data());
      for (const Unit& unit : units) {
        for (const int8_t q : unit.q) {
          lowest = std::min<int>(lowest, q);
          highest = std::max<int>(highest, q);
        }
      }
    }
    ASSERT_TRUE(expected.contains(type->name)) << type->name;
    EXPECT_EQ(Limits(lowest, highest), expected.at(type->name)) << type->name;
  }
}

TEST(AllTypes, BlocksMayLieAtAnyAddress) {
  for (const Type* type : all()) {
    const size_t bytes = size_t(type->block_bytes), count = size_t(type->block_weights);
    std::vector<std::byte> block = random_bytes(bytes, 9);
    std::vector<float> aligned(count), shifted(count);
    type->decode(block.data(), aligned.data());
    block.insert(block.begin(), std::byte(0));
    type->decode(block.data() + 1, shifted.data());
    EXPECT_EQ(std::memcmp(aligned.data(), shifted.data(), count * sizeof(float)), 0) << type->name;
  }
}

TEST(AllTypes, EncodersKeepTheirPromise) {
  const std::vector<float> weights = gaussian(1 << 16, 0, 0.02f, 11);
  for (const Type* type : all()) {
    const double error = relative_error(weights, round_trip(*type, weights));
    EXPECT_LE(error, double(type->rms_error_max)) << type->name;
    // A bound far above the truth would hide a worse encoder.
    EXPECT_GE(error * 1.03, double(type->rms_error_max)) << type->name;
  }
}

TEST(AllTypes, EncodersAreThere) {
  for (const Type* type : all()) EXPECT_NE(type->encode, nullptr) << type->name;
}

// Whatever the block's memory held before: encoders write every bit.
TEST(AllTypes, EncodingIsAFunctionOfTheWeights) {
  for (const Type* type : all()) {
    const std::vector<float> weights = gaussian(size_t(type->block_weights), 0, 1, 12);
    std::vector<std::byte> zeros(size_t(type->block_bytes), std::byte(0));
    std::vector<std::byte> ones(size_t(type->block_bytes), std::byte(255));
    type->encode(weights.data(), nullptr, zeros.data());
    type->encode(weights.data(), nullptr, ones.data());
    EXPECT_EQ(zeros, ones) << type->name;
  }
}

TEST(AllTypes, ZerosStayZeros) {
  for (const Type* type : all()) {
    const std::vector<float> weights(size_t(type->block_weights), 0.0f);
    for (const float v : round_trip(*type, weights)) EXPECT_EQ(v, 0.0f) << type->name;
  }
}

TEST(AllTypes, WeightsThatAreNotFiniteCountAsZero) {
  for (const Type* type : all()) {
    if (type->is_float()) continue;
    std::vector<float> clean = gaussian(size_t(type->block_weights), 0, 1, 13);
    std::vector<float> broken = clean;
    for (size_t i = 0; i < clean.size(); i += 7) {
      clean[i] = 0;
      broken[i] = i % 3 == 0 ? kNan : i % 3 == 1 ? kInfinity : -kInfinity;
    }
    EXPECT_EQ(encoded(*type, broken), encoded(*type, clean)) << type->name;
  }
}

TEST(AllTypes, ExtremeWeightsStayFinite) {
  const float magnitudes[] = {1e-45f, 1e-39f, 1e-30f, 1e-9f, 6e4f, 1e7f, 1e20f, 3.4e38f};
  for (const Type* type : all()) {
    if (type->is_float()) continue;
    for (const float magnitude : magnitudes) {
      std::vector<float> weights = gaussian(size_t(type->block_weights), 0, 0.3f, 14);
      for (float& v : weights) v = std::clamp(v, -1.0f, 1.0f) * magnitude;
      for (const float v : round_trip(*type, weights)) {
        ASSERT_TRUE(std::isfinite(v)) << type->name << " at " << magnitude;
        ASSERT_LE(double(std::abs(v)), std::max(1.5 * double(magnitude), 3e-7))
            << type->name << " at " << magnitude;
      }
    }
  }
}

// One huge weight among small ones: the rest may vanish, nothing else may happen.
TEST(AllTypes, OutliersSurvive) {
  for (const Type* type : all()) {
    std::vector<float> weights(size_t(type->block_weights), 1e-12f);
    weights.back() = -40;
    EXPECT_NEAR(round_trip(*type, weights).back(), -40, 0.21 * 40) << type->name;
  }
}

TEST(AllTypes, ImportanceLowersTheErrorThatItWeighs) {
  const std::vector<float> weights = gaussian(1 << 15, 0, 0.02f, 15);
  std::vector<float> importance = gaussian(weights.size(), 0, 1.5f, 16);
  for (float& v : importance) v = std::exp(v);
  for (const Type* type : all()) {
    if (type->is_float()) continue;
    const double plain = relative_error(weights, round_trip(*type, weights), importance);
    const double aware =
        relative_error(weights, round_trip(*type, weights, importance), importance);
    EXPECT_LT(aware, plain) << type->name;
  }
}

TEST(AllTypes, ImportanceWithoutMeaningIsNone) {
  for (const Type* type : all()) {
    const std::vector<float> weights = gaussian(size_t(type->block_weights), 0, 1, 17);
    const std::vector<std::byte> expected = encoded(*type, weights);
    for (const float factor : {0.0f, -1.0f, kNan, kInfinity}) {
      const std::vector<float> importance(weights.size(), factor);
      EXPECT_EQ(encoded(*type, weights, importance), expected) << type->name << " at " << factor;
    }
  }
}

}  // namespace
}  // namespace cairn::quant::all_types_test
