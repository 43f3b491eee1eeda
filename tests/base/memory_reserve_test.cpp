#include "base/machine/memory_reserve.h"

#include <gtest/gtest.h>

#include <new>

namespace cairn::memory_reserve_test {

// As `operator new` calls what it finds.
void fail_an_allocation() {
  std::get_new_handler()();
}

class MemoryReserve : public ::testing::Test {
 protected:
  MemoryReserve() { keep_memory_reserve(); }
  ~MemoryReserve() override { std::set_new_handler(nullptr); }
};

TEST_F(MemoryReserve, LetsSomeFailuresPassAndThenNoMore) {
  for (int part = 0; part < 8; ++part) {
    fail_an_allocation();
    EXPECT_NE(std::get_new_handler(), nullptr) << part;
  }
  fail_an_allocation();
  EXPECT_EQ(std::get_new_handler(), nullptr);
}

TEST_F(MemoryReserve, IsMadeWholeAgain) {
  for (int round = 0; round < 3; ++round) {
    for (int part = 0; part < 8; ++part) fail_an_allocation();
    EXPECT_TRUE(has_memory_reserve());
    EXPECT_NE(std::get_new_handler(), nullptr);
  }
}

}  // namespace cairn::memory_reserve_test
