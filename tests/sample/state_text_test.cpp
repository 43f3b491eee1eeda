// What samplers remember survives as text, to the bit.
#include "sample/state_text.h"

#include <gtest/gtest.h>

#include <bit>

namespace cairn::sample {
namespace {

TEST(SamplerStateText, KeepsEveryBit) {
  const SamplerState state({{.position = 0, .token = Token(7), .memory = {0.1f, -0.0f}},
                            {.position = 9, .token = Token(1 << 30), .memory = {1e-42f, 3e38f}}});
  const std::string text = to_text(state);
  const SamplerState read = read_sampler_state(text).value();
  EXPECT_EQ(to_text(read), text);
  EXPECT_EQ(text, "0 7 3dcccccd 80000000;9 1073741824 000002ca 7f61b1e6");
  EXPECT_EQ(read_sampler_state("").value().size(), 0u);
}

TEST(SamplerStateText, RefusesWhatItDidNotWrite) {
  for (const char* text :
       {"1", "1 2 3", "1 2 3 4;", ";1 2 3 4", "-1 2 3 4", "1 -2 3 4", "1 2 7fc00000 0",
        "1 2 0 ff800000", "5 2 0 0;5 2 0 0", "5 2 0 0;4 2 0 0", "1  2 3 4", "1 2 3 4 ",
        "99999999999 2 3 4", "1 2 123456789 4", "1 2 g 4"}) {
    EXPECT_EQ(read_sampler_state(text).error().code, ErrorCode::invalid_data) << text;
  }
}

}  // namespace
}  // namespace cairn::sample
