// The functions of exact-1 against the C library in f64, over a walk through all bit patterns of
// f32 and closer around the places where formulas change. The bounds are what a walk through every
// fifth pattern reached, plus a little; and the sums of all result bits pin the results themselves,
// since every machine and compiler must give the same.
#include "base/elementary.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <random>
#include <vector>

namespace cairn::elementary_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double sigmoid_of(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

double gelu_tanh_of(double x) {
  if (std::abs(x) > 40) return x > 0 ? x : -0.0;
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x * sigmoid_of(2 * u);
}

struct Function {
  const char* name;
  float (*ours)(float);
  double (*truth)(double);
  double ulp_max;  // 1 ulp: the distance of two floats where the true value lies.
  uint64_t bits;   // A sum over the results of the walk.
};

std::ostream& operator<<(std::ostream& out, const Function& function) {
  return out << function.name;
}

const Function kFunctions[] = {
    {"exp", [](float x) { return elementary::exp(x); }, [](double x) { return std::exp(x); }, 1.00,
     0x32a6994f9b33ae62},
    {"log", [](float x) { return elementary::log(x); }, [](double x) { return std::log(x); }, 0.85,
     0x1f0779318d324f15},
    {"sigmoid", [](float x) { return elementary::sigmoid(x); }, sigmoid_of, 0.80,
     0x2a1e7ef30a91b2d0},
    {"silu", [](float x) { return elementary::silu(x); },
     [](double x) { return x < -200 ? -0.0 : x * sigmoid_of(x); }, 0.85, 0x3ec31df7f03bc50c},
    {"softplus", [](float x) { return elementary::softplus(x); },
     [](double x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x))); }, 1.25,
     0x8290f02fadea0312},
    {"tanh", [](float x) { return elementary::tanh(x); }, [](double x) { return std::tanh(x); },
     1.50, 0xb6066b4a2767ec6a},
    {"gelu_tanh", [](float x) { return elementary::gelu_tanh(x); }, gelu_tanh_of, 0.85,
     0x3da37c2d4a5a008f},
    {"gelu_erf", [](float x) { return elementary::gelu_erf(x); },
     [](double x) { return x < -40 ? -0.0 : 0.5 * x * std::erfc(-x * 0.70710678118654752440); },
     0.85, 0xb3804427631ab77d},
};

// The distance of neighbouring floats around a value; below the normal numbers it stays 2^-149.
double ulp_at(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent - 1, -126) - 23);
}

class Elementary : public testing::TestWithParam<Function> {
 protected:
  // Compares at one place; NaN and infinities have to agree, the rest within the bound.
  void compare(float x) {
    const float got = GetParam().ours(x);
    const double truth = GetParam().truth(double(x));
    if (std::isnan(got) || std::isnan(truth)) {
      ASSERT_TRUE(std::isnan(got) && std::isnan(truth)) << x << " gives " << got << ", " << truth;
      return;
    }
    if (std::isinf(got) || std::isinf(float(truth))) {
      ASSERT_EQ(got, float(truth)) << x;
      return;
    }
    const double error = std::abs(double(got) - truth) / ulp_at(truth);
    if (error > worst_) {
      worst_ = error;
      worst_at_ = x;
    }
  }

  // Every float from `centre` on, `count` to each side.
  void compare_around(float centre, int32_t count) {
    const int32_t bits = std::bit_cast<int32_t>(centre);
    for (int32_t step = -count; step <= count; ++step) compare(std::bit_cast<float>(bits + step));
  }

  double worst_ = 0;
  float worst_at_ = 0;
};

TEST_P(Elementary, StaysWithinItsBound) {
  constexpr uint64_t kStride = 8191;  // A prime: all exponents, and no mantissa bit stands still.
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += kStride) {
    compare(std::bit_cast<float>(uint32_t(bits)));
  }
  // Ends of ranges, seams between formulas, and where the results become subnormal.
  for (const float place :
       {0.5625f, 0.70710677f, 1.0f,   1.41421354f, 4.0f,   9.01f,  10.0f,  11.0f,
        13.0f,   14.0f,       14.6f,  17.3f,       87.33f, 88.02f, 88.72f, 89.0f,
        103.97f, 104.0f,      110.0f, 0.34657f,    1e-38f, 1e-42f}) {
    compare_around(place, 300);
    compare_around(-place, 300);
  }
  // The range where activations live, densely.
  std::mt19937 random(7);
  std::uniform_real_distribution<float> values(-20, 20);
  for (int i = 0; i < 100000; ++i) compare(values(random));
  EXPECT_LE(worst_, GetParam().ulp_max) << "at " << worst_at_;
  RecordProperty("ulp_max", std::to_string(worst_));
}

TEST_P(Elementary, GivesTheSameBitsEverywhere) {
  uint64_t sum = 0;
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 65521) {
    const float result = GetParam().ours(std::bit_cast<float>(uint32_t(bits)));
    // Which NaN it is may differ: the instructions' rules for it are not the same.
    const uint32_t pattern = std::isnan(result) ? 0x7fc00000u : std::bit_cast<uint32_t>(result);
    sum = (sum ^ pattern) * 1099511628211u;
  }
  EXPECT_EQ(sum, GetParam().bits);
}

INSTANTIATE_TEST_SUITE_P(All, Elementary, testing::ValuesIn(kFunctions),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

TEST(ElementaryLimits, AreThoseOfTheFunctions) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Function& function : kFunctions) {
    EXPECT_TRUE(std::isnan(function.ours(nan))) << function.name;
    EXPECT_TRUE(std::isnan(function.ours(-nan))) << function.name;
  }
  EXPECT_EQ(elementary::exp(kInfinity), kInfinity);
  EXPECT_EQ(elementary::exp(-kInfinity), 0.0f);
  EXPECT_EQ(elementary::exp(0.0f), 1.0f);
  EXPECT_EQ(elementary::log(kInfinity), kInfinity);
  EXPECT_EQ(elementary::log(0.0f), -kInfinity);
  EXPECT_EQ(elementary::log(-0.0f), -kInfinity);
  EXPECT_EQ(elementary::log(1.0f), 0.0f);
  EXPECT_TRUE(std::isnan(elementary::log(-1e-45f)));
  EXPECT_TRUE(std::isnan(elementary::log(-kInfinity)));
  EXPECT_EQ(elementary::sigmoid(kInfinity), 1.0f);
  EXPECT_EQ(elementary::sigmoid(-kInfinity), 0.0f);
  EXPECT_EQ(elementary::tanh(kInfinity), 1.0f);
  EXPECT_EQ(elementary::tanh(-kInfinity), -1.0f);
  EXPECT_TRUE(std::signbit(elementary::tanh(-0.0f)));
  EXPECT_EQ(elementary::softplus(kInfinity), kInfinity);
  EXPECT_EQ(elementary::softplus(-kInfinity), 0.0f);
  for (float (*gate)(float) : {kFunctions[3].ours, kFunctions[6].ours, kFunctions[7].ours}) {
    EXPECT_EQ(gate(kInfinity), kInfinity);
    EXPECT_EQ(gate(-kInfinity), 0.0f);
    EXPECT_EQ(gate(0.0f), 0.0f);
    EXPECT_EQ(gate(std::numeric_limits<float>::max()), std::numeric_limits<float>::max());
    EXPECT_EQ(gate(std::numeric_limits<float>::lowest()), 0.0f);
  }
}

TEST(ElementaryLimits, SubnormalResultsAreKept) {
  EXPECT_EQ(elementary::exp(-103.0f), float(std::exp(-103.0)));
  EXPECT_GT(elementary::exp(-103.9f), 0.0f);
  EXPECT_GT(elementary::sigmoid(-103.0f), 0.0f);
  EXPECT_LT(elementary::silu(-105.0f), 0.0f);  // e^-105 alone would be 0.
  EXPECT_LT(elementary::gelu_tanh(-10.7f), 0.0f);
  EXPECT_LT(elementary::gelu_erf(-14.1f), 0.0f);
}

// Angles up to 2^24 rad, and those next to multiples of pi / 2, where digits cancel.
TEST(ElementaryLimits, TheShortExponentialHasTheSameBits) {
  for (const float last : {-87.0f, 88.0f}) {
    for (uint32_t bits = 0;; bits += 997) {
      const float x = last < 0 ? -std::bit_cast<float>(bits) : std::bit_cast<float>(bits);
      if (!(std::abs(x) <= std::abs(last))) break;
      ASSERT_EQ(std::bit_cast<uint32_t>(elementary::exp(x)),
                std::bit_cast<uint32_t>(elementary::exp_within_range(x)))
          << x;
    }
    EXPECT_EQ(elementary::exp(last), elementary::exp_within_range(last));
  }
  EXPECT_TRUE(std::isnan(elementary::exp_within_range(std::nanf(""))));
}

TEST(Sincos, IsWithinOneUlpAndRoundsRightToF32) {
  std::mt19937_64 random(3);
  double worst = 0;
  const auto compare = [&](double x) {
    double sine = 0, cosine = 0;
    elementary::sincos(x, sine, cosine);
    const long double truths[] = {std::sin((long double)x), std::cos((long double)x)};
    const double results[] = {sine, cosine};
    for (int which = 0; which < 2; ++which) {
      const long double error = std::abs(results[which] - truths[which]);
      int exponent = 0;
      std::frexp(double(truths[which]), &exponent);
      worst = std::max(worst, double(error) / std::ldexp(1.0, exponent - 53));
      EXPECT_EQ(float(results[which]), float(truths[which])) << x;
    }
  };
  for (int i = 0; i < 100000; ++i) {
    const uint64_t word = random();
    const double unit = double(word >> 11) * 0x1p-53;
    compare(std::ldexp(unit, int(word % 80) - 55));
    compare(-unit * 0x1p24);
    compare(double(word >> 42) * (M_PI / 2) + (double(word & 1023) - 512) * 0x1p-50);
  }
  EXPECT_LE(worst, 0.85);
}

TEST(Sincos, SmallAndForbiddenAngles) {
  double sine = 1, cosine = 0;
  elementary::sincos(0.0, sine, cosine);
  EXPECT_EQ(sine, 0.0);
  EXPECT_EQ(cosine, 1.0);
  elementary::sincos(-0x1p24, sine, cosine);
  EXPECT_NEAR(sine * sine + cosine * cosine, 1.0, 1e-15);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double outside : {0x1.0000001p24, -1e300, infinity, -infinity, std::nan("")}) {
    elementary::sincos(outside, sine, cosine);
    EXPECT_TRUE(std::isnan(sine) && std::isnan(cosine)) << outside;
  }
}

}  // namespace
}  // namespace cairn::elementary_test
