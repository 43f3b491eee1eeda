// `cairn doctor` says what is there, in words and as JSON, and agrees with what is looked at here.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/machine/machine_memory.h"
#include "base/machine/sandbox.h"
#include "base/threads.h"
#include "tests/cli/run_program.h"

namespace cairn::cli::doctor_test {
namespace {

using nlohmann::json;

TEST(Doctor, SaysWhatThisMachineHas) {
  const Finished run = run_program({"doctor", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json found = json::parse(run.out);
  EXPECT_EQ(found["processor"]["cores"], usable_core_count());
  EXPECT_EQ(found["memory"]["machine"], read_machine_memory().total_bytes);
  EXPECT_GT(found["memory"]["room"], 0);
  const SandboxSupport support = sandbox_support();
  EXPECT_EQ(found["kernel"]["landlock"], support.landlock_version);
  EXPECT_EQ(found["kernel"]["seccomp"], support.filters_calls);
  EXPECT_EQ(found["sandbox"]["serve_and_run"], support.why_not.empty());
  EXPECT_EQ(found["runtimes"]["cairn"], "") << "the built-in engine is always there";
  EXPECT_GT(found["runtimes"].size(), 1u) << "others have a reason where they are not";
}

TEST(Doctor, SaysItInWords) {
  const Finished run = run_program({"doctor"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* part : {"processor\n", "memory\n", "kernel\n", "sandbox\n", "runtimes\n"}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << run.out;
  }
  EXPECT_EQ(run.out.find("unknown"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace cairn::cli::doctor_test
