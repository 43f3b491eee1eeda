// LiteRT-LM's functions over a library of the same names (tests/fake_sdk/litert_lm): devices in
// their order, texts, rewinds by reading again, nothing lost. And the real library, where Python's
// package is here: every name that is used is there.
#include "runtimes/litert_lm/litert_engine.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <string>

#include "base/env.h"
#include "base/mapped_file.h"
#include "base/sha256.h"
#include "runtimes/runtime.h"

namespace cairn::litert_engine_test {
namespace {

using runtimes::LiteRtEngine;
using runtimes::LiteRtFunctions;
using runtimes::LiteRtVersion;

LiteRtFunctions fake() {
  auto file = MappedFile::open(CAIRN_FAKE_LITERT_LM);
  EXPECT_TRUE(file);
  const std::string digest = hex_of(Sha256().add(file->bytes()).finish());
  const LiteRtVersion known[] = {{"the fake", digest}};
  auto functions = runtimes::open_litert_library(CAIRN_FAKE_LITERT_LM, known);
  EXPECT_TRUE(functions) << (functions ? "" : functions.error().message);
  return *functions;
}

int live_count() {
  void* const library = ::dlopen(CAIRN_FAKE_LITERT_LM, RTLD_NOW | RTLD_LOCAL);
  const auto count = reinterpret_cast<int (*)()>(::dlsym(library, "fake_litert_live_count"));
  return count();
}

TEST(LiteRtEngine, TakesTheFirstDeviceThatTakesTheModel) {
  const LiteRtFunctions functions = fake();
  const std::pair<const char*, const char*> cases[] = {
      {"npu-gpu.litertlm", "npu"}, {"gpu.litertlm", "gpu"}, {"plain.litertlm", "cpu"}};
  for (const auto& [path, device] : cases) {
    auto engine = LiteRtEngine::open(functions, path, {.thread_count = 2, .context_tokens = 64});
    ASSERT_TRUE(engine);
    EXPECT_EQ((*engine)->device(), device);
  }
  EXPECT_EQ(LiteRtEngine::open(functions, "nothing.litertlm", {}).error().message,
            "nothing.litertlm: expected a device that takes it, found none of npu, gpu, cpu");
  EXPECT_FALSE(LiteRtEngine::open(functions, "model.gguf", {}));
  EXPECT_EQ(live_count(), 0);
}

TEST(LiteRtEngine, RewindsByReadingAgain) {
  const LiteRtFunctions functions = fake();
  {
    auto engine = LiteRtEngine::open(functions, "plain.litertlm", {});
    ASSERT_TRUE(engine);
    auto session = (*engine)->open_session(), fresh = (*engine)->open_session();
    ASSERT_TRUE(session && fresh);
    ASSERT_TRUE((*session)->prefill("one"));
    ASSERT_TRUE((*session)->prefill("two"));
    ASSERT_TRUE((*session)->decode());
    EXPECT_EQ((*session)->length(), 3u);
    EXPECT_EQ((*session)->prefill("fail").error().message, "litert-lm: prefill: found status 13");
    ASSERT_TRUE((*session)->rewind(1));
    ASSERT_TRUE((*session)->prefill("three"));
    ASSERT_TRUE((*fresh)->prefill("one"));
    ASSERT_TRUE((*fresh)->prefill("three"));
    EXPECT_EQ((*session)->decode().value(), (*fresh)->decode().value());
    (*session)->cancel();
    EXPECT_FALSE((*session)->decode());
  }
  EXPECT_EQ(live_count(), 0);
}

TEST(LiteRtEngine, OtherLibrariesAreRefused) {
  const auto known = runtimes::known_litert_versions();
  const Result<LiteRtFunctions> other = runtimes::open_litert_library(CAIRN_FAKE_LITERT_LM, known);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("found another version"), std::string::npos);
  EXPECT_FALSE(runtimes::open_litert_library("/no/such/library.so", known));
}

TEST(LiteRtEngine, IsListedWithWhatIsMissing) {
  for (const runtimes::RuntimeType* type : runtimes::runtime_types()) {
    if (type->name != "litert-lm" && type->name != "coreml") continue;
    EXPECT_LT(type->rank, 0);
    EXPECT_FALSE(type->available());
    const Status gguf = type->can_serve({.path = "x.gguf"});
    ASSERT_FALSE(gguf);
    EXPECT_NE(gguf.error().message.find("found a GGUF file"), std::string::npos);
    EXPECT_EQ(type->load({.path = "x.gguf"}, {}).error().message, gguf.error().message);
  }
}

TEST(LiteRtEngine, NamesAreThoseOfTheRealLibrary) {
  const std::optional<std::string> named = env("CAIRN_PYTHON");
  const std::string command =
      named.value_or("python3") +
      " -c \"import importlib.util as u; s = u.find_spec('litert_lm'); "
      "print(s.submodule_search_locations[0] + '/liblitert-lm.so' if s else '', end='')\"";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char path[4096] = {};
  (void)!std::fread(path, 1, sizeof path - 1, pipe);
  ::pclose(pipe);
  if (path[0] == 0) GTEST_SKIP() << "litert-lm: no module named litert_lm";
  const auto functions = runtimes::open_litert_library(path, runtimes::known_litert_versions());
  EXPECT_TRUE(functions) << (functions ? "" : functions.error().message);
}

}  // namespace
}  // namespace cairn::litert_engine_test
