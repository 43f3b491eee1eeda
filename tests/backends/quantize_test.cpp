// Activations in 8 bits: the definition, and its bits on every instruction set.
#include "tests/backends/matmul_fixture.h"

namespace cairn::matmul_test::quantize_test {
namespace {

struct Quantized {
  std::vector<int8_t> q;
  std::vector<float> scales;
  std::vector<int32_t> sums;
};

Quantized quantize(const Case& on, const std::vector<float>& x, int32_t rows) {
  ThreadPool threads(on.threads);
  const std::unique_ptr<Backend> backend = make_backend(on, threads);
  const int32_t width = int32_t(x.size()) / rows;
  const Rows from{.offset = 0, .stride = width, .width = width};
  const QuantizedRows to{.offset = (int64_t(x.size()) * 4 + 63) / 64 * 64,
                         .stride = QuantizedRows::row_bytes(width, false),
                         .width = width};
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> workspace(size_t(to.offset + int64_t(rows) * to.stride) / 64);
  std::memcpy(workspace.data(), x.data(), x.size() * 4);
  Plan plan;
  plan.ops.push_back(op::Quantize{.x = from, .out = to});
  plan.stages.push_back({.first_op = 0, .op_count = 1});
  const std::vector<Token> tokens(size_t(rows), Token{0});
  Step step;
  step.tokens = tokens;
  step.workspace = reinterpret_cast<std::byte*>(workspace.data());
  EXPECT_TRUE(backend->prepare(plan));
  backend->execute(plan, step);
  Quantized out;
  for (int32_t row = 0; row < rows; ++row) {
    const std::byte* bytes = step.row(to, row);
    const auto* q = reinterpret_cast<const int8_t*>(bytes);
    const auto* scales = reinterpret_cast<const float*>(bytes + to.scales_offset());
    const auto* sums = reinterpret_cast<const int32_t*>(bytes + to.sums_offset());
    out.q.insert(out.q.end(), q, q + width);
    out.scales.insert(out.scales.end(), scales, scales + width / 32);
    out.sums.insert(out.sums.end(), sums, sums + width / 16);
  }
  return out;
}

// Ordinary values, and blocks of zeros, subnormals, huge values, infinities and NaN.
std::vector<float> awkward_values(size_t count) {
  Random random(21);
  std::vector<float> x = gaussian(count, random);
  for (size_t i = 0; i < count; ++i) {
    const size_t block = i / 32 % 16;
    if (block == 3) x[i] = 0;
    if (block == 5) x[i] *= 1e-43f;
    if (block == 6) x[i] = std::bit_cast<float>(uint32_t(random() % 200));
    if (block == 7) x[i] *= 1e37f;
    if (block == 9 && i % 32 == 17) x[i] = std::bit_cast<float>(0x7f800000u);
    if (block == 10 && i % 32 == 31) x[i] = std::bit_cast<float>(0xffc00000u);
    if (block == 12) x[i] = i % 32 == 0 ? 127.0f : float(i % 32) + 0.5f;  // Ties.
  }
  return x;
}

TEST(Quantize, EveryInstructionSetHasTheReferencesBits) {
  for (const size_t width : {size_t{32}, size_t{96}, size_t{5120}}) {
    for (const int32_t rows : {1, 3, 40}) {
      const std::vector<float> x = awkward_values(width * size_t(rows));
      const Quantized expected = quantize({.backend = "reference"}, x, rows);
      for (const IsaLevel isa : levels_here()) {
        const Quantized found = quantize({"cpu", isa, 2}, x, rows);
        EXPECT_EQ(expected.q, found.q) << name(isa);
        EXPECT_EQ(expected.sums, found.sums) << name(isa);
        EXPECT_TRUE(same_bits(expected.scales, found.scales)) << name(isa);
      }
    }
  }
}

TEST(Quantize, IsWhatTheContractSays) {
  const std::vector<float> x = awkward_values(32 * 16);
  const Quantized found = quantize({.backend = "reference"}, x, 1);
  for (size_t block = 0; block < 16; ++block) {
    float amax = 0;
    bool finite = true;
    int32_t sums[2] = {0, 0};
    for (size_t i = 32 * block; i < 32 * block + 32; ++i) {
      amax = std::max(amax, std::abs(x[i]));
      finite = finite && std::isfinite(x[i]);
      sums[i % 32 / 16] += found.q[i];
    }
    EXPECT_EQ(found.sums[2 * block], sums[0]);
    EXPECT_EQ(found.sums[2 * block + 1], sums[1]);
    const float s = found.scales[block];
    if (!finite) {
      EXPECT_TRUE(std::isnan(s));
      EXPECT_EQ(sums[0] + sums[1], 0);
      continue;
    }
    EXPECT_EQ(s, amax / 127.0f);
    for (size_t i = 32 * block; i < 32 * block + 32 && s > 1e-37f; ++i) {
      EXPECT_LE(std::abs(double(x[i]) / s - found.q[i]), 0.5 + 1e-4);
    }
  }
  // 32 * 12 + 2 is a tie: 2.5 with scale 1 becomes 2, and 3.5 becomes 4.
  EXPECT_EQ(found.scales[12], 1.0f);
  EXPECT_EQ(found.q[32 * 12 + 2], 2);
  EXPECT_EQ(found.q[32 * 12 + 3], 4);
}

}  // namespace
}  // namespace cairn::matmul_test::quantize_test
