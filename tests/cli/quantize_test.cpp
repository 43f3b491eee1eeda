// `cairn quantize` from outside: what it says it did, and mistakes by the names of options.
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace cairn::cli::quantize_test {
namespace {

TEST(Quantize, TheCommandSaysWhatItDid) {
  const ScratchFolder folder;
  const std::string path = folder.file("in.gguf"), out = folder.file("out.gguf");
  ASSERT_EQ(run_program({"synth", "--like", "llama", "--layers", "2", "--vocab", "512", "--type",
                         "F16", "-o", path})
                .exit_code,
            0);
  Finished done = run_program({"quantize", path, out, "Q8_0", "--tensor", "*.ffn_up.*=Q4_0"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("2 Q4_0"), std::string::npos) << done.err;
  done = run_program({"quantize", path, out, "Q8_0", "--tensor", "*.attn_q.*=IQ1_S"});
  EXPECT_TRUE(
      done.err.starts_with("cairn: 2 matrices get so few bits that importances "
                           "(--imatrix) matter much\n"))
      << done.err;
  done = run_program({"quantize", path, out, "Q8_0", "--tensor", "blk.*=Q9"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(done.err.starts_with("cairn: --tensor: expected PATTERN=TYPE")) << done.err;
  done = run_program({"quantize", path, out, "Q8_0", "--tensor", "nothing=Q8_0"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(done.err.starts_with("cairn: --tensor: expected a pattern that fits")) << done.err;
  done = run_program({"quantize", path, out, "Q9"});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_NE(done.err.find("type: expected one of F32"), std::string::npos) << done.err;
  done = run_program({"quantize", path});
  EXPECT_NE(done.err.find("OUT: expected a value"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace cairn::cli::quantize_test
