// Names, ranks and reasons.
#include "runtimes/selection.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/runtimes/fake_runtime.h"

namespace cairn::selection_test {
namespace {

using runtimes::choose;
using runtimes::LoadedRuntime;
using runtimes::ModelProbe;
using runtimes::RuntimeOptions;
using runtimes::RuntimeType;

Status yes() {
  return Ok{};
}
Status no() {
  return fail(ErrorCode::unsupported, "no such device");
}
Status any(const ModelProbe&) {
  return Ok{};
}
Status none(const ModelProbe&) {
  return fail(ErrorCode::unsupported, "no kernels for it");
}
Result<std::unique_ptr<LoadedRuntime>> load(const ModelProbe&, const RuntimeOptions&) {
  return std::unique_ptr<LoadedRuntime>(std::make_unique<test::FakeRuntime>(test::FakeSwitches()));
}

constexpr RuntimeType kFast{"fast", 5, yes, any, load}, kFaster{"faster", 9, no, any, load},
    kFastest{"fastest", 20, yes, none, load}, kSlow{"slow", -3, yes, any, load};
constexpr const RuntimeType* kTypes[] = {&kSlow, &kFaster, &kFast, &kFastest};

TEST(Selection, TakesTheBestThatCan) {
  unsetenv("CAIRN_BACKEND");
  auto best = choose(kTypes, {}, {});
  ASSERT_TRUE(best);
  EXPECT_EQ(*best, &kFast);
  auto built_in = choose(std::span(kTypes).first(2), {}, {});
  ASSERT_TRUE(built_in);
  EXPECT_EQ(*built_in, nullptr);
}

TEST(Selection, TakesWhatWasAskedForOrSaysWhyNot) {
  setenv("CAIRN_BACKEND", "slow", 1);
  EXPECT_EQ(choose(kTypes, {}, {}).value(), &kSlow);
  EXPECT_EQ(choose(kTypes, "cairn", {}).value(), nullptr);
  EXPECT_EQ(choose(kTypes, "fast", {}).value(), &kFast);
  setenv("CAIRN_BACKEND", "fasst", 1);
  auto wrong = choose(kTypes, {}, {});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "CAIRN_BACKEND: expected fastest, faster, fast, cairn, slow, found fasst: did you mean "
            "fast?");
  unsetenv("CAIRN_BACKEND");
  wrong = choose(kTypes, "faster", {});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::unsupported);
  EXPECT_EQ(wrong.error().message,
            "backend: faster cannot be used: no such device; there are fastest, faster, fast, "
            "cairn, slow");
  wrong = choose(kTypes, "fastest", {});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("no kernels for it"), std::string::npos);
}

TEST(Selection, ListsAllWithReasons) {
  const auto all = runtimes::list(kTypes);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[1].name, "faster");
  EXPECT_EQ(all[1].why_not, "no such device");
  EXPECT_EQ(all[3].name, "cairn");
  EXPECT_TRUE(all[3].why_not.empty());
  EXPECT_TRUE(runtimes::list(runtimes::runtime_types()).front().name == "cairn");
}

}  // namespace
}  // namespace cairn::selection_test
