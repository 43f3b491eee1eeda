// How fast block formats are encoded, decoded and read as integers, in MB of f32 a second on one
// core, and what encoding costs in RMS error on gaussian weights: `quant_bench [TYPE…]`.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "quant/quant.h"

namespace cairn::quant {
namespace {

constexpr size_t kWeights = size_t(1) << 20;

// The best of three runs, in MB of f32 a second.
template <class Work>
double speed_of(const Work& work) {
  double best = 0;
  for (int run = 0; run < 3; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = std::max(best, double(kWeights * sizeof(float)) / 1e6 / elapsed.count());
  }
  return best;
}

double relative_error(const std::vector<float>& weights, const std::vector<float>& restored) {
  double error = 0, power = 0;
  for (size_t i = 0; i < kWeights; ++i) {
    const double difference = double(weights[i]) - double(restored[i]);
    error += difference * difference;
    power += double(weights[i]) * double(weights[i]);
  }
  return std::sqrt(error / power);
}

void measure(const Type& type, const std::vector<float>& weights) {
  std::vector<std::byte> row(row_bytes(type, int64_t(kWeights)));
  std::vector<float> restored(kWeights);
  fmt::print("{:8} {:6.3f} bits", type.name, double(row.size()) * 8 / double(kWeights));
  if (type.encode != nullptr) {
    fmt::print("  encode {:7.0f} MB/s", speed_of([&] { encode_row(type, weights, row); }));
  } else {
    fmt::print("  encode {:>7} MB/s", "-");
  }
  fmt::print("  decode {:7.0f} MB/s", speed_of([&] { decode_row(type, row, restored); }));
  if (type.integers != nullptr) {
    std::vector<Unit> units(size_t(type.block_weights) / 32);
    fmt::print("  integers {:7.0f} MB/s", speed_of([&] {
                 for (size_t at = 0; at < row.size(); at += size_t(type.block_bytes)) {
                   type.integers(row.data() + at, units.data());
                 }
               }));
  }
  if (type.encode != nullptr) fmt::print("  error {:.5f}", relative_error(weights, restored));
  fmt::print("\n");
}

int run(int count, char** names) {
  std::mt19937 bits(1);
  std::normal_distribution<float> noise(0, 0.02f);
  std::vector<float> weights(kWeights);
  for (float& v : weights) v = noise(bits);
  if (count < 2) {
    for (const Type* type : all()) measure(*type, weights);
    return 0;
  }
  for (int i = 1; i < count; ++i) {
    const Type* type = find(names[i]);
    if (type == nullptr) {
      fmt::print(stderr, "{}: no such block format\n", names[i]);
      return 1;
    }
    measure(*type, weights);
  }
  return 0;
}

}  // namespace
}  // namespace cairn::quant

int main(int count, char** names) {
  return cairn::quant::run(count, names);
}
