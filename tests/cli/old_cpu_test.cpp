// The program on processors that it may meet and this machine is not: qemu-user plays them. On the
// oldest that are supported it answers as everywhere; older ones are told what they lack.
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"
#include "tests/sanitized.h"

namespace cairn::cli::old_cpu_test {
namespace {

Finished run_on(const std::string& cpu, std::vector<std::string> arguments) {
  const std::vector<std::string> front{"qemu-x86_64", "-cpu", cpu, CAIRN_PROGRAM};
  arguments.insert(arguments.begin(), front.begin(), front.end());
  return run_command(arguments);
}

class OldCpu : public ::testing::Test {
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "the program is not for x86-64";
#endif
    if (test::kIsSanitized) GTEST_SKIP() << "sanitizers need more address space than qemu-user has";
    if (run_command({"qemu-x86_64", "--version"}).exit_code != 0) {
      GTEST_SKIP() << "no qemu-x86_64 (Debian: qemu-user)";
    }
  }
};

// Nehalem: x86-64-v2 and nothing more.
TEST_F(OldCpu, X86_64V2Answers) {
  EXPECT_EQ(run_on("Nehalem", {"--version"}).exit_code, 0);
  const Finished run = run_on("Nehalem", {"run", "-p", "What is the capital of France?"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "The capital of France is Paris.\n");
  EXPECT_NE(run.err.find("CPU: expected AVX2"), std::string::npos) << run.err;
}

// Haswell: AVX2 with FMA and F16C, where qemu plays these (7.2 and later).
TEST_F(OldCpu, Avx2Answers) {
  const Finished run = run_on("Haswell", {"run", "-p", "What is the capital of France?"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "The capital of France is Paris.\n");
}

TEST_F(OldCpu, AskedForMoreThanItHasItSaysWhatItHas) {
  const Finished run = run_on("Nehalem", {"run", "--isa", "avx2", "-p", "x"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.err.find("instruction set: expected one of scalar, found avx2"), std::string::npos)
      << run.err;
}

TEST_F(OldCpu, OlderOnesAreToldWhatTheyLack) {
  for (const char* cpu : {"Conroe", "Opteron_G1"}) {
    const Finished run = run_on(cpu, {"--version"});
    EXPECT_EQ(run.exit_code, 1) << cpu;
    EXPECT_NE(run.err.find("CPU: expected x86-64-v2"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("SSE4.2"), std::string::npos) << run.err;
    EXPECT_EQ(run.out, "");
  }
}

}  // namespace
}  // namespace cairn::cli::old_cpu_test
