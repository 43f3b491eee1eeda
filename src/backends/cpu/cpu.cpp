// This machine's processors as a backend: the vector kernels of the best instruction set that was
// allowed, and the reference's for what they do not cover. Weights are packed when the first plan
// that multiplies them is prepared, all of them at once and by all threads, or not at all; tables
// that are only gathered from stay as they are in the file.
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "backends/cpu/ops.h"
#include "backends/cpu/pack/pack.h"
#include "backends/cpu/product/matmul.h"
#include "backends/cpu/product/tiles_check.h"
#include "backends/reference/reference.h"
#include "base/cpu_levels.h"
#include "base/log.h"

namespace cairn {
namespace cpu {
namespace {

template <IsaLevel Isa, Numerics kNumerics = Numerics::exact_1>
host::HostKernel choose_kernel(const Op& op) {
  const host::HostKernel kernel = choose_matrix_kernel(op, Isa, kNumerics);
  return kernel.exists() ? kernel : choose_ops_kernel(op, Isa);
}

host::KernelChoice kernel_choice(IsaLevel isa, Numerics numerics) {
  if (numerics == Numerics::fast_1) {
    if (isa == IsaLevel::amx) return &choose_kernel<IsaLevel::amx, Numerics::fast_1>;
    return &choose_kernel<IsaLevel::avx512_vnni, Numerics::fast_1>;
  }
  switch (isa) {
    case IsaLevel::scalar:
      return &choose_kernel<IsaLevel::scalar>;
    case IsaLevel::avx2:
      return &choose_kernel<IsaLevel::avx2>;
    case IsaLevel::avx2_vnni:
      return &choose_kernel<IsaLevel::avx2_vnni>;
    case IsaLevel::avx512_vnni:
      return &choose_kernel<IsaLevel::avx512_vnni>;
    case IsaLevel::amx:
      return &choose_kernel<IsaLevel::amx>;
    case IsaLevel::neon_dot:
      return &choose_kernel<IsaLevel::neon_dot>;
  }
  return &choose_kernel<IsaLevel::scalar>;
}

const Weight* weight_of(const Op& op) {
  if (const auto* matmul = std::get_if<op::MatMul>(&op)) return matmul->weight;
  if (const auto* experts = std::get_if<op::ExpertMatMul>(&op)) return experts->weight;
  return nullptr;
}

class CpuBackend : public host::HostBackend {
 public:
  CpuBackend(const BackendOptions& options, IsaLevel isa)
      : HostBackend(options.threads, kernel_choice(isa, options.numerics), &reference::kernel_for,
                    after_kernels(isa)),
        options_(options),
        isa_(isa),
        weights_({options.pack, options.advice, options.on_progress,
                  isa == IsaLevel::amx && vectors_win_halves()}) {}

  std::string_view isa() const override { return name(isa_); }
  PieceAlignment piece_alignment() const override { return {.product = kGroupRows}; }

  Status load(Weight& weight) override {
    if (isa_ == IsaLevel::scalar) return Ok{};
    CAIRN_TRY(weight.packed, weights_.add(weight));
    return Ok{};
  }

  // Tiles multiply quantized weights as bf16 too; elsewhere their integers are faster.
  bool rounds_prompts() const override {
    return options_.numerics == Numerics::fast_1 && isa_ == IsaLevel::amx;
  }

  size_t weight_bytes(const Plan& plan) const override {
    return weights_.needed_bytes(matrices_of(plan));
  }

  Status prepare(const Plan& plan) override {
    CAIRN_TRY(weights_.pack(matrices_of(plan), *options_.threads));
    return HostBackend::prepare(plan);
  }

 private:
  static std::vector<const PackedMatrix*> matrices_of(const Plan& plan) {
    std::vector<const PackedMatrix*> matrices;
    for (const Op& op : plan.ops) {
      const Weight* weight = weight_of(op);
      if (weight == nullptr || weight->packed == nullptr) continue;
      matrices.push_back(static_cast<const PackedMatrix*>(weight->packed));
    }
    return matrices;
  }

  BackendOptions options_;
  IsaLevel isa_;
  PackedWeights weights_;
};

// The named level, or the best; none that this machine lacks.
Result<IsaLevel> choose_level(std::string_view wanted) {
  const CpuFeatures features = detect_cpu_features();
  if (wanted.empty()) {
    const IsaLevel best = best_isa(features);
    if (best == IsaLevel::scalar) {
      log::warning("CPU: expected AVX2 with FMA and F16C, found less: answers will take long");
    }
    return best;
  }
  CAIRN_TRY(const IsaLevel level, parse_isa(wanted));
  if (!runs_on(level, features)) {
    return fail(ErrorCode::unsupported, "instruction set: expected one of {}, found {}",
                names_of_levels(features), wanted);
  }
  return level;
}

Result<std::unique_ptr<Backend>> create(const BackendOptions& options) {
  if (options.threads == nullptr) {
    return fail(ErrorCode::invalid_argument, "backend cpu: expected a thread pool, found none");
  }
  CAIRN_TRY(const IsaLevel wanted, choose_level(options.isa));
  const IsaLevel isa = usable_level(wanted, options.numerics);
  if (options.numerics == Numerics::fast_1) {
    const std::string_view lacking = lacks_for_fast(isa, detect_cpu_features());
    if (!lacking.empty()) {
      return fail(ErrorCode::unsupported,
                  "numerics {}: expected a CPU with {}, found kernels for {}",
                  name(options.numerics), lacking, name(isa));
    }
  }
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(options, isa));
}

}  // namespace
}  // namespace cpu

extern const BackendType backend_cpu;
constinit const BackendType backend_cpu{.name = "cpu", .create = &cpu::create};

}  // namespace cairn
