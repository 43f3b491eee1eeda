// Matrix products: of every type at one row, few and many, and of experts.
#include <fmt/core.h>

#include "bench/kernels.h"

namespace cairn::bench {

namespace {

constexpr int32_t kCols = 2048, kRows = 8192;
constexpr int32_t kExpertCols = 1024, kExpertRows = 512, kExperts = 64, kExpertsUsed = 8;

// Blocks of a matrix: some rows of random weights again and again, or where the type has no encoder
// random codes (of small scales, without NaN).
std::vector<std::byte> random_blocks(const quant::Type& type, int32_t cols, int64_t rows) {
  constexpr int64_t kDistinctRows = 32;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const size_t row_bytes = quant::row_bytes(type, cols);
  std::vector<std::byte> blocks(row_bytes * size_t(rows));
  std::vector<float> weights(static_cast<size_t>(cols));
  for (int64_t row = 0; row < rows; ++row) {
    const auto place = std::span(blocks).subspan(size_t(row) * row_bytes, row_bytes);
    if (row >= kDistinctRows) {
      const auto earlier =
          std::span(blocks).subspan(size_t(row % kDistinctRows) * row_bytes, row_bytes);
      std::copy(earlier.begin(), earlier.end(), place.begin());
    } else if (type.encode == nullptr) {
      for (std::byte& byte : place) byte = std::byte(random() & 0x3b);
    } else {
      for (float& weight : weights) weight = normal(random) * 0.02f;
      quant::encode_row(type, weights, place);
    }
  }
  return blocks;
}

struct Products final : Rowwise {
  using Rowwise::Rowwise;
  std::span<const std::byte> matrix(size_t copy, size_t bytes) const {
    return std::span(blocks).subspan(copy * bytes, bytes);
  }
  std::vector<std::byte> blocks;  // Of all copies.
};

std::unique_ptr<Work> make_products(Context& context, const quant::Type& type, int32_t row_count) {
  auto work = std::make_unique<Products>(context, row_count);
  const size_t matrix_bytes = quant::row_bytes(type, kCols) * kRows;
  const size_t copies = row_count < kManyRows ? kFromMemoryBytes / matrix_bytes + 1 : 1;
  work->blocks = random_blocks(type, kCols, int64_t(kRows) * int64_t(copies));
  const Rows x = work->rows(kCols), out = work->rows(kRows);
  const QuantizedRows quantized = work->quantized(kCols);
  std::vector<Op> ops;
  if (!type.is_float()) ops.push_back(op::Quantize{.x = x, .out = quantized});
  for (size_t copy = 0; copy < copies; ++copy) {
    const Weight& weight = work->weight({.name = "w",
                                         .type = &type,
                                         .cols = kCols,
                                         .rows = kRows,
                                         .blocks = work->matrix(copy, matrix_bytes)});
    ops.push_back(op::MatMul{.weight = &weight,
                             .x = type.is_float() ? x : Rows{},
                             .quantized = type.is_float() ? QuantizedRows{} : quantized,
                             .out = out});
  }
  work->prepare(std::move(ops));
  return work;
}

std::unique_ptr<Work> make_experts(Context& context, const quant::Type& type, int32_t row_count) {
  auto work = std::make_unique<Products>(context, row_count);
  const size_t matrix_bytes = quant::row_bytes(type, kExpertCols) * kExpertRows * kExperts;
  const size_t copies = kFromMemoryBytes / matrix_bytes + 1;
  work->blocks =
      random_blocks(type, kExpertCols, int64_t(kExpertRows) * kExperts * int64_t(copies));
  const Rows x = work->rows(kExpertCols), logits = work->rows(kExperts);
  const Rows chosen = work->rows(kExpertsUsed), weights = work->rows(kExpertsUsed);
  const Rows out = work->rows(kExpertsUsed * kExpertRows);
  const QuantizedRows quantized = work->quantized(kExpertCols);
  std::vector<Op> ops{op::Quantize{.x = x, .out = quantized},
                      op::Route{.logits = logits, .chosen = chosen, .weights = weights}};
  for (size_t copy = 0; copy < copies; ++copy) {
    const Weight& weight = work->weight({.name = "experts",
                                         .type = &type,
                                         .cols = kExpertCols,
                                         .rows = kExpertRows,
                                         .count = kExperts,
                                         .blocks = work->matrix(copy, matrix_bytes)});
    ops.push_back(op::ExpertMatMul{.weight = &weight,
                                   .x = type.is_float() ? x : Rows{},
                                   .quantized = type.is_float() ? QuantizedRows{} : quantized,
                                   .chosen = chosen,
                                   .out = out});
  }
  work->prepare(std::move(ops));
  return work;
}

}  // namespace

void add_products(Context& context) {
  for (const quant::Type* type : quant::all()) {
    for (const int32_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32, 64, 128, 512}) {
      context.add(fmt::format("matmul/{}/rows:{}", type->name, rows),
                  [&context, type, rows] { return make_products(context, *type, rows); });
    }
  }
  for (const char* name : {"Q4_0", "Q4_K", "Q6_K", "Q8_0", "BF16"}) {
    const quant::Type* type = quant::find(name);
    for (const int32_t rows : {1, 4, 16, 512}) {
      context.add(fmt::format("experts/{}/rows:{}", name, rows),
                  [&context, type, rows] { return make_experts(context, *type, rows); });
    }
  }
}

}  // namespace cairn::bench
