// Encoders against plain ones: at equal size ours must not lose more, whatever the weights look
// like.
#include <gtest/gtest.h>

#include "tests/quant/baselines.h"
#include "tests/quant/data.h"

namespace cairn::quant::encoders_test {
namespace {

using Plain = void (*)(std::span<const float>, std::span<float>);

std::vector<float> plain_round_trip(const Type& type, const std::vector<float>& weights,
                                    Plain plain) {
  std::vector<float> restored(weights.size());
  const size_t count = size_t(type.block_weights);
  for (size_t first = 0; first < weights.size(); first += count) {
    plain(std::span(weights).subspan(first, count), std::span(restored).subspan(first, count));
  }
  return restored;
}

enum class Judged { evenly, by_squares };  // By squares: large weights count more.

void expect_no_worse(const char* name, Plain plain, Judged judged = Judged::evenly) {
  const Type* type = find(name);
  ASSERT_NE(type, nullptr);
  for (const Sample& sample : samples(1 << 14)) {
    std::vector<float> factors;
    for (const float v : sample.weights) factors.push_back(v * v);
    if (judged == Judged::evenly) factors.clear();
    const double ours = relative_error(sample.weights, round_trip(*type, sample.weights), factors);
    const double theirs =
        relative_error(sample.weights, plain_round_trip(*type, sample.weights, plain), factors);
    // Of weights far from 0 the plain rule sees all, ours the minimum and the steps in turn.
    const double slack = judged == Judged::evenly ? 1 : 1.03;
    EXPECT_LE(ours, slack * theirs) << name << ", " << sample.name;
  }
}

TEST(Encoders, Q4_0) {
  expect_no_worse("Q4_0", [](auto x, auto out) { plain::signed_codes(x, -8, 7, out); });
}
TEST(Encoders, Q5_0) {
  expect_no_worse("Q5_0", [](auto x, auto out) { plain::signed_codes(x, -16, 15, out); });
}
TEST(Encoders, Q4_1) {
  expect_no_worse("Q4_1", [](auto x, auto out) { plain::line_codes(x, 15, out); });
}
TEST(Encoders, Q5_1) {
  expect_no_worse("Q5_1", [](auto x, auto out) { plain::line_codes(x, 31, out); });
}
TEST(Encoders, Q8_0) {
  expect_no_worse("Q8_0", plain::bytes);
}
TEST(Encoders, Mxfp4) {
  expect_no_worse("MXFP4", plain::mxfp4);
}
TEST(Encoders, Iq4Nl) {
  expect_no_worse("IQ4_NL", plain::iq4_nl);
}
TEST(Encoders, Iq4Xs) {
  expect_no_worse("IQ4_XS", plain::iq4_xs);
}
TEST(Encoders, Ternary) {
  expect_no_worse("TQ1_0", plain::ternary);
  expect_no_worse("TQ2_0", plain::ternary);
}
TEST(Encoders, Q6K) {
  expect_no_worse("Q6_K", [](auto x, auto out) { plain::scaled_k(x, -32, 127, out); });
}
TEST(Encoders, Q3K) {
  expect_no_worse(
      "Q3_K", [](auto x, auto out) { plain::scaled_k(x, -4, 31, out); }, Judged::by_squares);
}
TEST(Encoders, Q2K) {
  expect_no_worse(
      "Q2_K",
      [](auto x, auto out) {
        plain::offset_k(x, {16, 3, 15}, out);
      },
      Judged::by_squares);
}
TEST(Encoders, Q4K) {
  expect_no_worse("Q4_K", [](auto x, auto out) { plain::offset_k(x, {32, 15, 63}, out); });
}
TEST(Encoders, Q5K) {
  expect_no_worse("Q5_K", [](auto x, auto out) { plain::offset_k(x, {32, 31, 63}, out); });
}

// What a format can hold exactly comes back exactly.
TEST(Encoders, DecodedBlocksWithOneScaleComeBack) {
  for (const char* name : {"Q4_0", "Q5_0", "Q8_0", "MXFP4"}) {
    const Type& type = *find(name);
    std::vector<float> weights(32);
    for (size_t i = 0; i < 32; ++i) weights[i] = 0.25f * float(int(i % 9) - 4);
    weights[0] = type.name == "Q5_0" ? -4 : weights[0];
    weights[1] = type.name == "Q4_0" ? -2 : weights[1];
    if (type.name == "Q8_0") weights[2] = 0.25f * 127;
    EXPECT_EQ(round_trip(type, weights), weights) << name;
  }
}

TEST(Encoders, TernaryWeightsComeBack) {
  for (const char* name : {"TQ1_0", "TQ2_0"}) {
    std::vector<float> weights(512);
    for (size_t i = 0; i < 512; ++i) weights[i] = 0.75f * float(int(i * i % 11 % 3) - 1);
    EXPECT_EQ(round_trip(*find(name), weights), weights) << name;
  }
}

TEST(Encoders, ConstantBlocksNeedNoSteps) {
  for (const char* name : {"Q4_1", "Q5_1"}) {
    for (const float value : {1.0f / 3, -1000.1f, 1e-3f, 65504.0f, -65504.0f}) {
      const std::vector<float> weights(32, value);
      const float bound = std::abs(value) * 1e-6f + 0x1p-24f;  // The finest step of f16.
      for (const float v : round_trip(*find(name), weights)) EXPECT_NEAR(v, value, bound) << name;
    }
  }
}

TEST(Encoders, HalvesRoundToNearest) {
  const std::vector<float> weights = {1.0f + 0x1p-11f, 65519.0f, 65520.0f, 0x1p-24f, NAN};
  const std::vector<float> restored = round_trip(*find("F16"), weights);
  EXPECT_EQ(restored[0], 1.0f);
  EXPECT_EQ(restored[1], 65504.0f);
  EXPECT_EQ(restored[2], INFINITY);
  EXPECT_EQ(restored[3], 0x1p-24f);
  EXPECT_TRUE(std::isnan(restored[4]));
  EXPECT_EQ(round_trip(*find("BF16"), {1.0f + 0x1p-8f, 1.0f + 0x3p-8f})[1], 1.0f + 0x1p-6f);
}

}  // namespace
}  // namespace cairn::quant::encoders_test
