// Whatever instructions a processor has, a block gives what the definition gives.
#include "base/sha256_block.h"

#include <gtest/gtest.h>

#include <random>

namespace cairn::sha256_block_test {
namespace {

TEST(Sha256Block, TheInstructionsAndTheDefinitionAgree) {
  std::mt19937 random(1);
  Sha256State state{}, defined{};
  for (int round = 0; round < 10'000; ++round) {
    uint8_t block[64 + 3];
    for (uint8_t& byte : block) byte = uint8_t(random());
    if (round % 100 == 0) {
      for (uint32_t& word : state) word = uint32_t(random());
      defined = state;
    }
    const uint8_t* const begin = block + round % 4;  // Alignment does not matter.
    take_sha256_block(state, begin);
    take_sha256_block_by_definition(defined, begin);
    ASSERT_EQ(state, defined) << round;
  }
}

}  // namespace
}  // namespace cairn::sha256_block_test
