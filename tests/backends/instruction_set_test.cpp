// Which instruction set a backend's kernels use: it asks the CPU itself, and refuses by name what
// there is not.
#include <gtest/gtest.h>

#include <string>

#include "backends/cpu/product/tiles_check.h"
#include "base/cpu_levels.h"
#include "device/backend.h"

namespace cairn::instruction_set_test {
namespace {

const BackendType& backend(std::string_view name) {
  for (const BackendType* type : backend_types()) {
    if (type->name == name) return *type;
  }
  ADD_FAILURE() << "no backend " << name;
  return *backend_types().front();
}

class InstructionSet : public testing::Test {
 protected:
  Result<std::unique_ptr<Backend>> make(std::string_view name, std::string isa) {
    return backend(name).create({.threads = &threads_, .isa = std::move(isa)});
  }
  ThreadPool threads_{1};
};

TEST_F(InstructionSet, IsTheNamedOneOrTheBest) {
  const CpuFeatures features = detect_cpu_features();
  for (const IsaLevel level : levels_of(features)) {
    auto made = make("cpu", std::string(name(level)));
    ASSERT_TRUE(made) << name(level);
    // Tiles that the system does not lend give way.
    EXPECT_EQ((*made)->isa(), name(cpu::usable_level(level)));
  }
  EXPECT_EQ(make("cpu", "").value()->isa(), name(cpu::usable_level(best_isa(features))));
  EXPECT_EQ(make("reference", "").value()->isa(), "scalar");
}

TEST_F(InstructionSet, ThatThereIsNotIsRefusedByName) {
  const auto unknown = make("cpu", "mmx");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(unknown.error().message.find("avx2_vnni"), std::string::npos);
  EXPECT_NE(unknown.error().message.find("\"mmx\""), std::string::npos);
  // Of another machine, whichever this one is.
  const CpuFeatures features = detect_cpu_features();
  const IsaLevel other =
      runs_on(IsaLevel::neon_dot, features) ? IsaLevel::avx2 : IsaLevel::neon_dot;
  const auto missing = make("cpu", std::string(name(other)));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::unsupported);
  EXPECT_EQ(missing.error().message, fmt::format("instruction set: expected one of {}, found {}",
                                                 names_of_levels(features), name(other)));
}

}  // namespace
}  // namespace cairn::instruction_set_test
