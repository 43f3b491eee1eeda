// A matrix is packed by hand (packed.h draws it): the check needs no format and no file.
#include "backends/cpu/product/tiles_check.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "backends/cpu/product/fast_product.h"
#include "base/log.h"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cairn::cpu {
namespace {

constexpr int32_t kGroups = 2, kRows = 21;

struct alignas(64) Line {
  uint8_t bytes[64];
};

// A few of the bits of a linear congruential generator.
uint32_t next(uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return state >> 16;
}

void multiply_rows(const MatrixKernels& kernels, const PackedMatrix& weight,
                   const ProductRow* rows) {
  const size_t scratch_bytes = std::max(product_scratch_bytes(weight), kernels.scratch_bytes);
  std::vector<Line> scratch(scratch_bytes / 64 + 1);
  kernels.multiply({.weight = &weight,
                    .groups = weight.data,
                    .output_count = weight.rows,
                    .row_count = kRows,
                    .rows = rows,
                    .scratch = reinterpret_cast<std::byte*>(scratch.data())});
}

std::vector<float> multiply_sample(const MatrixKernels& kernels, int32_t units, bool halves) {
  uint32_t state = 1;
  PackedMatrix weight{.form = {.plane = Plane::bytes, .scales = Scales::full, .halves = halves}};
  weight.cols = units * 32;
  weight.rows = weight.group_count = kGroups;
  weight.rows *= kGroupRows;
  weight.scales_bytes = units * (halves ? 2 : 1) * kGroupRows * 4;
  weight.group_bytes = weight.scales_bytes + units * plane_bytes(Plane::bytes);
  std::vector<Line> data(size_t(kGroups * weight.group_bytes / 64));
  uint8_t* const bytes = reinterpret_cast<uint8_t*>(data.data());
  weight.data = bytes;
  for (int32_t group = 0; group < kGroups; ++group) {
    uint8_t* at = bytes + group * weight.group_bytes;
    for (int64_t i = 0; i < weight.group_bytes; ++i) at[i] = uint8_t(next(state));
    for (int64_t i = 0; i < weight.scales_bytes / 4; ++i) {
      const float scale = float(int32_t(next(state)) - 32768);
      std::memcpy(at + 4 * i, &scale, 4);
    }
  }
  std::vector<float> x(size_t(kRows * weight.cols)), out(size_t(kRows * weight.rows));
  for (float& value : x) value = float(int32_t(next(state)) - 32768);
  std::vector<int8_t> q(x.size());
  std::vector<float> scales(x.size() / 32);
  std::vector<int32_t> sums(x.size() / 16);
  kernels.quantize(x.data(), int64_t(x.size()), q.data(), scales.data(), sums.data());
  ProductRow rows[kRows] = {};
  for (int32_t row = 0; row < kRows; ++row) {
    rows[row] = {.q = q.data() + row * weight.cols,
                 .scales = scales.data() + row * units,
                 .sums = sums.data() + row * units * 2,
                 .out = out.data() + row * weight.rows};
  }
  multiply_rows(kernels, weight, rows);
  return out;
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
  multiply_rows(kernels, weight, rows);
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
