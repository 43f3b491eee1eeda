// A plan of nothing but products, computed by the backend that computes models.
#include "measure/product_rates.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "base/arena.h"
#include "base/check.h"
#include "device/backend.h"

namespace cairn::measure {

namespace {

// As wide as a model of a billion weights, and together far more than the caches hold.
constexpr int32_t kCols = 2048, kRows = 4096;
constexpr size_t kFromMemoryBytes = size_t(128) << 20;
constexpr int32_t kManyRows = 128;
constexpr size_t kRuns = 5;

// Products of `matrix_count` matrices, each with `row_count` rows.
class Products {
 public:
  Products(Backend* backend, const quant::Type& type, size_t matrix_count, int32_t row_count)
      : backend_(*backend), type_(type), matrix_count_(matrix_count), row_count_(row_count) {}
  ~Products() { backend_.release(plan_); }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  Status prepare() {
    const size_t matrix_bytes = quant::row_bytes(type_, kCols) * kRows;
    CAIRN_TRY(blocks_, reserve(matrix_bytes * matrix_count_));
    const size_t quantized_bytes =
        size_t(QuantizedRows::row_bytes(kCols, backend_.rounds_prompts()));
    const size_t row_bytes = (kCols + kRows) * sizeof(float) + quantized_bytes;
    CAIRN_TRY(workspace_, reserve(row_bytes * size_t(row_count_)));
    const Rows x{.offset = 0, .stride = kCols, .width = kCols};
    const Rows out{.offset = int64_t(kCols) * row_count_, .stride = kRows, .width = kRows};
    const QuantizedRows quantized{.offset = int64_t(kCols + kRows) * row_count_ * 4,
                                  .stride = int32_t(quantized_bytes),
                                  .width = kCols};
    if (!type_.is_float()) plan_.ops.push_back(op::Quantize{.x = x, .out = quantized});
    weights_.reserve(matrix_count_);
    for (size_t matrix = 0; matrix < matrix_count_; ++matrix) {
      weights_.push_back({.name = "w",
                          .type = &type_,
                          .cols = kCols,
                          .rows = kRows,
                          .blocks = std::span<const std::byte>(
                              blocks_->data() + matrix * matrix_bytes, matrix_bytes)});
      CAIRN_TRY(backend_.load(weights_.back()));
      plan_.ops.push_back(op::MatMul{.weight = &weights_.back(),
                                     .x = type_.is_float() ? x : Rows{},
                                     .quantized = type_.is_float() ? QuantizedRows{} : quantized,
                                     .out = out});
    }
    for (size_t op = 0; op < plan_.ops.size(); ++op) plan_.stages.push_back({int32_t(op), 1});
    plan_.row_count_max = row_count_;
    for (int32_t row = 0; row < row_count_; ++row) positions_.push_back(row);
    tokens_.assign(size_t(row_count_), Token(0));
    slice_of_row_.assign(size_t(row_count_), 0);
    slice_ = {.row_count = row_count_, .is_answer = row_count_ == 1};
    return backend_.prepare(plan_);
  }

  // Of nearly the fastest of some runs.
  double seconds() {
    std::vector<double> seconds;
    for (size_t run = 0; run < kRuns; ++run) {
      const auto start = std::chrono::steady_clock::now();
      backend_.execute(plan_, Step{.tokens = tokens_,
                                   .positions = positions_,
                                   .slice_of_row = slice_of_row_,
                                   .slices = {&slice_, 1},
                                   .workspace = workspace_->data()});
      const auto taken = std::chrono::steady_clock::now() - start;
      seconds.push_back(std::chrono::duration<double>(taken).count());
    }
    std::sort(seconds.begin(), seconds.end());
    return std::max(seconds[1], 1e-9);
  }

  StepCosts costs() const { return step_costs(plan_, memory::Layout(), {.rows = row_count_}); }

 private:
  static Result<std::unique_ptr<Arena>> reserve(size_t bytes) {
    CAIRN_TRY(Arena arena, Arena::reserve(bytes));
    // Touched: zeros that nobody has written lie in one page, which the caches hold.
    std::memset(arena.data(), 0, bytes);
    return std::make_unique<Arena>(std::move(arena));
  }

  Backend& backend_;
  const quant::Type& type_;
  size_t matrix_count_;
  int32_t row_count_;
  std::unique_ptr<Arena> blocks_, workspace_;
  std::vector<Weight> weights_;
  std::vector<Token> tokens_;
  std::vector<int32_t> positions_, slice_of_row_;
  Slice slice_;
  Plan plan_;
};

Result<std::unique_ptr<Backend>> make_backend(const RateOptions& options) {
  for (const BackendType* type : backend_types()) {
    if (type->name != "cpu") continue;
    return type->create(
        {.threads = options.threads, .isa = options.isa, .numerics = options.numerics});
  }
  return fail(ErrorCode::not_found, "backend: expected cpu, found none of this name");
}

}  // namespace

Result<ProductRate> measure_product(const quant::Type& type, const RateOptions& options) {
  ProductRate rate;
  CAIRN_TRY(const std::unique_ptr<Backend> backend, make_backend(options));
  {
    const size_t matrix_bytes = quant::row_bytes(type, kCols) * kRows;
    Products one(backend.get(), type, kFromMemoryBytes / matrix_bytes + 1, 1);
    CAIRN_TRY(one.prepare());
    rate.bytes_per_second = one.costs().weight_bytes / one.seconds();
  }
  Products many(backend.get(), type, 1, kManyRows);
  CAIRN_TRY(many.prepare());
  rate.ops_per_second = many.costs().ops() / many.seconds();
  return rate;
}

double expected_seconds(std::span<const TypeCosts> costs, const ProductRates& rates,
                        const MachineLimits& limits) {
  double seconds = 0;
  for (const TypeCosts& part : costs) {
    if (part.type == nullptr) {
      seconds += least_seconds(part.costs, limits);
      continue;
    }
    const auto rate = rates.find(part.type);
    CHECK(rate != rates.end());
    seconds += std::max(part.costs.bytes() / rate->second.bytes_per_second,
                        part.costs.ops() / rate->second.ops_per_second);
  }
  return seconds;
}

}  // namespace cairn::measure
