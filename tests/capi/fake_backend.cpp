// A table of the fake and of those that come from Python packages, as the build makes it of the
// library's.
#include "tests/capi/fake_backend.h"

#include "gguf/gguf.h"

namespace cairn::test {

FakeSettings& fake_settings() {
  static FakeSettings settings;
  return settings;
}

namespace {

Status available() {
  if (fake_settings().is_available) return Ok{};
  return fail(ErrorCode::unsupported, "no such device");
}

Status can_serve(const runtimes::ModelProbe& probe) {
  if (probe.file->find("token_embd.weight") != nullptr) return Ok{};
  return fail(ErrorCode::unsupported, "a model without token_embd.weight");
}

Result<std::unique_ptr<runtimes::LoadedRuntime>> load(const runtimes::ModelProbe& probe,
                                                      const runtimes::RuntimeOptions& options) {
  FakeSwitches switches = fake_settings().switches;
  switches.vocabulary_count = int32_t(probe.file->find("token_embd.weight")->dims[1]);
  if (options.context_tokens > 0) switches.context_tokens = options.context_tokens;
  auto made = std::make_unique<FakeRuntime>(switches);
  fake_settings().last = made.get();
  return std::unique_ptr<runtimes::LoadedRuntime>(std::move(made));
}

constexpr runtimes::RuntimeType kFake{
    .name = "fake",
    .rank = -1,
    .available = available,
    .can_serve = can_serve,
    .load = load,
    .claims = {runtimes::kRewinds | runtimes::kSnapshots, runtimes::Exactness::bitwise, "hashes"}};

}  // namespace

}  // namespace cairn::test

namespace cairn::runtimes {

extern const RuntimeType runtime_mlx, runtime_openvino;

std::span<const RuntimeType* const> runtime_types() {
  static constexpr const RuntimeType* kTypes[] = {&test::kFake, &runtime_mlx, &runtime_openvino};
  return kTypes;
}

}  // namespace cairn::runtimes
