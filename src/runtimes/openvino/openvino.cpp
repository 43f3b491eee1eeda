// OpenVINO in a worker process; openvino.py says how it computes. Thread-safe: constant.
#include "runtimes/runtime.h"
#include "runtimes/worker/python_files.h"
#include "runtimes/worker/worker_runtime.h"

namespace cairn::runtimes {

namespace openvino {

constexpr Claims kClaims = {kRewinds | kSnapshots, Exactness::replay, "openvino, cpu, f32"};

WorkerType type() {
  return {.name = "openvino", .python = python_file("openvino.py"), .claims = kClaims};
}

Status available() {
  return check_worker(type());
}

Result<std::unique_ptr<LoadedRuntime>> load(const ModelProbe& probe,
                                            const RuntimeOptions& options) {
  return load_worker(type(), probe, options);
}

}  // namespace openvino

extern const RuntimeType runtime_openvino;
constinit const RuntimeType runtime_openvino = {.name = "openvino",
                                                .rank = -10,
                                                .available = openvino::available,
                                                .can_serve = check_worker_model,
                                                .load = openvino::load,
                                                .claims = openvino::kClaims};

}  // namespace cairn::runtimes
