// MLX in a worker process; mlx.py says how it computes. Thread-safe: constant.
#include "runtimes/runtime.h"
#include "runtimes/worker/python_files.h"
#include "runtimes/worker/worker_runtime.h"

namespace cairn::runtimes {

namespace mlx {

constexpr Claims kClaims = {kRewinds | kSnapshots, Exactness::replay, "mlx, cpu, f32"};

WorkerType type() {
  return {.name = "mlx", .python = python_file("mlx.py"), .claims = kClaims};
}

Status available() {
  return check_worker(type());
}

Result<std::unique_ptr<LoadedRuntime>> load(const ModelProbe& probe,
                                            const RuntimeOptions& options) {
  return load_worker(type(), probe, options);
}

}  // namespace mlx

extern const RuntimeType runtime_mlx;
constinit const RuntimeType runtime_mlx = {.name = "mlx",
                                           .rank = -10,
                                           .available = mlx::available,
                                           .can_serve = check_worker_model,
                                           .load = mlx::load,
                                           .claims = mlx::kClaims};

}  // namespace cairn::runtimes
