// LiteRT-LM as a runtime: it is listed, with what is missing, and computes no GGUF file: it reads
// files of its own, and gives text instead of logits. Thread-safe: constant.
#include <optional>
#include <string>

#include "base/env.h"
#include "runtimes/litert_lm/litert_library.h"
#include "runtimes/runtime.h"

namespace cairn::runtimes {

namespace litert_lm {

Status available() {
  const std::optional<std::string> path = env("CAIRN_LITERT_LM");
  if (!path || path->empty()) {
    return fail(ErrorCode::unsupported,
                "CAIRN_LITERT_LM: expected the path of liblitert-lm.so, which is in the package of "
                "`pip install litert-lm-api==0.18.1`, found none");
  }
  CAIRN_TRY(open_litert_library(*path, known_litert_versions()));
  return Ok{};
}

Status can_serve(const ModelProbe& probe) {
  return fail(ErrorCode::unsupported,
              "{}: expected a .litertlm file, found a GGUF file; and its engine gives text, not "
              "logits",
              probe.path);
}

Result<std::unique_ptr<LoadedRuntime>> load(const ModelProbe& probe, const RuntimeOptions&) {
  return can_serve(probe).error();
}

}  // namespace litert_lm

extern const RuntimeType runtime_litert_lm;
constinit const RuntimeType runtime_litert_lm = {.name = "litert-lm",
                                                 .rank = -20,
                                                 .available = litert_lm::available,
                                                 .can_serve = litert_lm::can_serve,
                                                 .load = litert_lm::load};

}  // namespace cairn::runtimes
