// Core ML as a runtime: listed, and never available: nobody has written or run it on a Mac, and it
// computes no GGUF file. What it would take is Apple's states of macOS 15 (MLState), which are
// copied for snapshots. Thread-safe: constant.
#include "runtimes/runtime.h"

namespace cairn::runtimes {

namespace coreml {

Status available() {
#if defined(__APPLE__)
  return fail(ErrorCode::unsupported, "Core ML: not written yet");
#else
  return fail(ErrorCode::unsupported, "Core ML: expected macOS, found another system");
#endif
}

Status can_serve(const ModelProbe& probe) {
  return fail(ErrorCode::unsupported, "{}: expected a Core ML model, found a GGUF file",
              probe.path);
}

Result<std::unique_ptr<LoadedRuntime>> load(const ModelProbe& probe, const RuntimeOptions&) {
  return can_serve(probe).error();
}

}  // namespace coreml

extern const RuntimeType runtime_coreml;
constinit const RuntimeType runtime_coreml = {.name = "coreml",
                                              .rank = -20,
                                              .available = coreml::available,
                                              .can_serve = coreml::can_serve,
                                              .load = coreml::load};

}  // namespace cairn::runtimes
