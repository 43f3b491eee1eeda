// Each kernel of the cpu backend beside what the machine can do at best; docs/speed.md says what
// the counters mean.
//   kernels_bench [--threads=N] [--isa=NAME] [--numerics=exact|fast] [--benchmark_…]
#include <fmt/core.h>

#include <cstdlib>
#include <string_view>

#include "bench/kernels.h"

int main(int argument_count, char** arguments) {
  using namespace cairn;
  benchmark::Initialize(&argument_count, arguments);
  int thread_count = usable_core_count();
  IsaLevel isa = best_isa(detect_cpu_features());
  Numerics numerics = Numerics::exact_1;
  for (int i = 1; i < argument_count; ++i) {
    const std::string_view option = arguments[i];
    constexpr std::string_view kThreads = "--threads=", kIsa = "--isa=";
    if (option.starts_with(kThreads)) {
      thread_count = std::clamp(std::atoi(arguments[i] + kThreads.size()), 1, 1024);
    } else if (option.starts_with(kIsa)) {
      Result<IsaLevel> wanted = parse_isa(option.substr(kIsa.size()));
      if (!wanted || !runs_on(*wanted, detect_cpu_features())) {
        fmt::print(stderr, "kernels_bench: {}: not on this machine\n", option);
        return 2;
      }
      isa = *wanted;
    } else if (option == "--numerics=exact" || option == "--numerics=fast") {
      numerics = option.ends_with("fast") ? Numerics::fast_1 : Numerics::exact_1;
    } else {
      fmt::print(stderr,
                 "kernels_bench: {}: expected --threads=N, --isa=NAME or --numerics=exact|fast\n",
                 option);
      return 2;
    }
  }
  bench::Context context(thread_count, isa, numerics);
  if (context.make_backend() == nullptr) {
    fmt::print(stderr, "kernels_bench: numerics {}: not on this machine\n", name(numerics));
    return 2;
  }
  const measure::MachineLimits& limits = context.limits();
  fmt::print(stderr, "{} threads, {}: {:.1f} GB/s read, {:.0f} Gop/s of int8, {:.0f} of f32\n",
             thread_count, name(isa), limits.read_bytes_per_second * 1e-9,
             limits.integer_ops_per_second * 1e-9, limits.float_ops_per_second * 1e-9);
  bench::add_products(context);
  bench::add_attention(context);
  bench::add_recurrences(context);
  bench::add_row_ops(context);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
