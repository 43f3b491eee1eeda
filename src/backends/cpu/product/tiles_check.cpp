// A matrix is packed by hand (packed.h draws it): the check needs no format and no file.
#include "backends/cpu/product/tiles_check.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <vector>

#include "backends/cpu/product/fast_product.h"
#include "base/log.h"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cairn::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int32_t kGroups = 2, kRows = 53;

struct alignas(64) Line {
  uint8_t bytes[64];
};

// A few of the bits of a linear congruential generator.
uint32_t next(uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return state >> 16;
}

class Scratch {
 public:
  Scratch(const MatrixKernels& kernels, const PackedMatrix& weight)
      : lines_(std::max(product_scratch_bytes(weight), kernels.scratch_bytes) / 64 + 1) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }

 private:
  std::vector<Line> lines_;
};

void multiply_rows(const MatrixKernels& kernels, const PackedMatrix& weight,
                   std::span<const ProductRow> rows, Scratch& scratch) {
  kernels.multiply({.weight = &weight,
                    .groups = weight.data,
                    .output_count = weight.rows,
                    .row_count = int32_t(rows.size()),
                    .rows = rows.data(),
                    .scratch = scratch.data()});
}

// Random bytes with random scales, one or two (`halves`) a unit, and random rows.
class Sample {
 public:
  Sample(int32_t units, bool halves, int32_t row_count) {
    weight_.form = {.plane = Plane::bytes, .scales = Scales::full, .halves = halves};
    weight_.cols = units * 32;
    weight_.group_count = kGroups;
    weight_.rows = kGroups * kGroupRows;
    weight_.scales_bytes = units * (halves ? 2 : 1) * kGroupRows * 4;
    weight_.group_bytes = weight_.scales_bytes + units * plane_bytes(Plane::bytes);
    data_.resize(size_t(kGroups * weight_.group_bytes / 64));
    uint8_t* const bytes = reinterpret_cast<uint8_t*>(data_.data());
    weight_.data = bytes;
    for (int32_t group = 0; group < kGroups; ++group) {
      uint8_t* at = bytes + group * weight_.group_bytes;
      for (int64_t i = 0; i < weight_.group_bytes; ++i) at[i] = uint8_t(next(state_));
      for (int64_t i = 0; i < weight_.scales_bytes / 4; ++i) {
        const float scale = random_number();
        std::memcpy(at + 4 * i, &scale, 4);
      }
    }
    x_.resize(size_t(row_count * weight_.cols));
    for (float& value : x_) value = random_number();
    q_.resize(x_.size());
    scales_.resize(x_.size() / 32);
    sums_.resize(x_.size() / 16);
    out_.resize(size_t(row_count * weight_.rows));
    for (int32_t row = 0; row < row_count; ++row) {
      rows_.push_back({.q = q_.data() + row * weight_.cols,
                       .scales = scales_.data() + row * units,
                       .sums = sums_.data() + row * units * 2,
                       .out = out_.data() + row * weight_.rows});
    }
  }
  const PackedMatrix& weight() const { return weight_; }
  void quantize(const MatrixKernels& kernels) {
    kernels.quantize(x_.data(), int64_t(x_.size()), q_.data(), scales_.data(), sums_.data());
  }
  // REQUIRES: quantize(), by any kernels: they give the same bits.
  const std::vector<float>& multiply(const MatrixKernels& kernels, Scratch& scratch) {
    multiply_rows(kernels, weight_, rows_, scratch);
    return out_;
  }

 private:
  float random_number() { return float(int32_t(next(state_)) - 32768); }

  uint32_t state_ = 1;
  PackedMatrix weight_;
  std::vector<Line> data_;
  std::vector<float> x_, out_, scales_;
  std::vector<int8_t> q_;
  std::vector<int32_t> sums_;
  std::vector<ProductRow> rows_;
};

std::vector<float> multiply_sample(const MatrixKernels& kernels, int32_t units, bool halves) {
  Sample sample(units, halves, kRows);
  Scratch scratch(kernels, sample.weight());
  sample.quantize(kernels);
  return sample.multiply(kernels, scratch);
}

// Whole numbers from -8 to 8 in bf16, more columns than a window has.
std::vector<float> multiply_whole_sample(const MatrixKernels& kernels) {
  uint32_t state = 1;
  PackedMatrix weight{.form = {.plane = Plane::bf16}};
  weight.cols = kFastColumns + 70;
  weight.group_count = kGroups;
  weight.rows = kGroups * kGroupRows;
  weight.group_bytes = (weight.cols * plane_bytes(Plane::bf16) + 63) / 64 * 64;
  const auto number = [&state] { return float(int32_t(next(state) % 17) - 8); };
  std::vector<Line> data(size_t(kGroups * weight.group_bytes / 64));
  weight.data = reinterpret_cast<const uint8_t*>(data.data());
  for (Line& line : data) {
    for (int byte = 0; byte < 64; byte += 2) {
      const float value = number();
      std::memcpy(line.bytes + byte, reinterpret_cast<const char*>(&value) + 2, 2);
    }
  }
  std::vector<float> x(size_t(kRows * weight.cols)), out(size_t(kRows * weight.rows));
  for (float& value : x) value = number();
  ProductRow rows[kRows] = {};
  for (int32_t row = 0; row < kRows; ++row) {
    rows[row] = {.x = x.data() + row * weight.cols, .out = out.data() + row * weight.rows};
  }
  Scratch scratch(kernels, weight);
  multiply_rows(kernels, weight, rows, scratch);
  return out;
}

}  // namespace

// Linux saves tiles only for programs that asked (arch_prctl, kernel 5.16 and later).
bool ask_for_tiles() {
#if defined(__x86_64__)
  constexpr int kRequest = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
}

bool same_products(const MatrixKernels& a, const MatrixKernels& b) {
  // Of 8 units, the tiles of a group begin while those of the group before it end; of 5 they don't.
  for (const int32_t units : {5, 8}) {
    for (const bool halves : {false, true}) {
      const std::vector<float> left = multiply_sample(a, units, halves);
      const std::vector<float> right = multiply_sample(b, units, halves);
      if (std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) != 0) return false;
    }
  }
  return true;
}

bool same_whole_products(const MatrixKernels& a, const MatrixKernels& b) {
  const std::vector<float> left = multiply_whole_sample(a), right = multiply_whole_sample(b);
  return std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

bool is_faster(const MatrixKernels& a, const MatrixKernels& b, bool halves) {
  constexpr int32_t kUnits = 16;
  constexpr int kRounds = 12;
  Sample sample(kUnits, halves, kChunkRows);
  sample.quantize(a);
  const MatrixKernels* const both[] = {&a, &b};
  Scratch scratch[] = {{a, sample.weight()}, {b, sample.weight()}};
  // The quickest of some rounds by turns: what else the machine does can only take time.
  auto best = std::array{Clock::duration::max(), Clock::duration::max()};
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < best.size(); ++i) {
      const Clock::time_point start = Clock::now();
      sample.multiply(*both[i], scratch[i]);
      best[i] = std::min(best[i], Clock::now() - start);
    }
  }
  return best[0] < best[1];
}

bool vectors_win_halves() {
#if defined(__x86_64__)
  return is_faster(avx512::matrix_kernels, amx::matrix_kernels, true);
#else
  return false;
#endif
}

IsaLevel usable_level(IsaLevel wanted, [[maybe_unused]] Numerics numerics) {
#if defined(__x86_64__)
  if (wanted != IsaLevel::amx) return wanted;
  if (!ask_for_tiles()) {
    log::warning("AMX: expected the operating system's permission, found error {}: using {}", errno,
                 name(IsaLevel::avx512_vnni));
    return IsaLevel::avx512_vnni;
  }
  const bool is_right = same_products(amx::matrix_kernels, avx512::matrix_kernels);
  const bool needs_pairs = numerics == Numerics::fast_1 && detect_cpu_features().amx_bf16;
  if (!is_right ||
      (needs_pairs && !same_whole_products(amxbf16::matrix_kernels, avx512::matrix_kernels))) {
    log::warning("AMX: expected the products of AVX-512, found others: using {}",
                 name(IsaLevel::avx512_vnni));
    return IsaLevel::avx512_vnni;
  }
#endif
  return wanted;
}

}  // namespace cairn::cpu
