// The generator's known answers, from the paper's reference implementation (Random123,
// kat_vectors).
#include "base/philox.h"

#include <gtest/gtest.h>

namespace cairn::philox_test {
namespace {

TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// A neighbouring counter changes about half of the bits, in every word.
TEST(Philox, NeighboursShareNothing) {
  for (uint32_t index = 0; index < 1000; ++index) {
    const PhiloxCounter a = philox4x32({index, 7, 0, 0}, {1, 2});
    const PhiloxCounter b = philox4x32({index + 1, 7, 0, 0}, {1, 2});
    for (size_t word = 0; word < 4; ++word) {
      const int changed = __builtin_popcount(a[word] ^ b[word]);
      EXPECT_GE(changed, 2) << index;
      EXPECT_LE(changed, 30) << index;
    }
  }
}

static_assert(philox4x32({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5u, "usable at compile time");

}  // namespace
}  // namespace cairn::philox_test
