// Seconds from rates, and rates that are measured: of every type that kernels multiply.
#include "measure/product_rates.h"

#include <gtest/gtest.h>

namespace cairn::measure::product_rates_test {
namespace {

TEST(ProductRates, EachTypeTakesTheLongerOfReadingAndComputing) {
  const quant::Type* const q4 = quant::find("Q4_K");
  const quant::Type* const f16 = quant::find("F16");
  const ProductRates rates = {{q4, {.bytes_per_second = 10, .ops_per_second = 100}},
                              {f16, {.bytes_per_second = 20, .ops_per_second = 5}}};
  const MachineLimits limits{.read_bytes_per_second = 1000, .float_ops_per_second = 10};
  const TypeCosts costs[] = {{nullptr, {.kv_bytes = 3000, .float_ops = 20}},
                             {q4, {.weight_bytes = 50, .integer_ops = 200}},
                             {f16, {.weight_bytes = 10, .float_ops = 15}}};
  EXPECT_DOUBLE_EQ(expected_seconds(costs, rates, limits), 3 + 5 + 3);
}

TEST(ProductRates, AreMeasured) {
  ThreadPool threads(1);
  for (const char* name : {"Q4_K", "F32"}) {
    auto rate = measure_product(*quant::find(name), {.threads = &threads});
    ASSERT_TRUE(rate) << rate.error().message;
    // Less than any machine does, and more.
    EXPECT_GT(rate->bytes_per_second, 1e6) << name;
    EXPECT_LT(rate->bytes_per_second, 1e13) << name;
    EXPECT_GT(rate->ops_per_second, 1e6) << name;
    EXPECT_LT(rate->ops_per_second, 1e15) << name;
  }
  EXPECT_FALSE(measure_product(*quant::find("F32"), {.threads = &threads, .isa = "none"}));
}

}  // namespace
}  // namespace cairn::measure::product_rates_test
