// Reserving and giving back.
#include "base/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace cairn::arena_test {
namespace {

TEST(Arena, IsAlignedZeroedAndRoundedUp) {
  Result<Arena> arena = Arena::reserve(3 << 20);
  ASSERT_TRUE(arena) << arena.error().message;
  EXPECT_EQ(arena->size(), size_t(4) << 20);
  EXPECT_EQ(uintptr_t(arena->data()) % Arena::kHugePageBytes, 0u);
  for (size_t offset = 0; offset < arena->size(); offset += 4096) {
    ASSERT_EQ(arena->data()[offset], std::byte(0));
  }
  EXPECT_EQ(arena->data()[arena->size() - 1], std::byte(0));
}

TEST(Arena, DiscardsWholePagesOnly) {
  Result<Arena> arena = Arena::reserve(1 << 20);
  ASSERT_TRUE(arena);
  std::memset(arena->data(), 7, arena->size());
  arena->discard(100, 3 * 4096);  // Pages 1 and 2 lie inside, 0 and 3 only in part.
  EXPECT_EQ(arena->data()[4095], std::byte(7));
  EXPECT_EQ(arena->data()[4096], std::byte(0));
  EXPECT_EQ(arena->data()[3 * 4096 - 1], std::byte(0));
  EXPECT_EQ(arena->data()[3 * 4096], std::byte(7));
  arena->discard(10, 20);
  EXPECT_EQ(arena->data()[15], std::byte(7));
  arena->discard(arena->size(), 0);
}

TEST(Arena, MovesWithItsMemory) {
  Result<Arena> arena = Arena::reserve(1);
  ASSERT_TRUE(arena);
  std::byte* const data = arena->data();
  data[0] = std::byte(9);
  Arena moved = std::move(*arena);
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(arena->data(), nullptr);
  EXPECT_EQ(arena->size(), 0u);
  moved = Arena::reserve(1).value();
  EXPECT_EQ(moved.data()[0], std::byte(0));
}

TEST(Arena, AddressesBecomeMemoryAndAddressesAgain) {
  constexpr size_t kSlab = Arena::kHugePageBytes;
  Result<Arena> arena = Arena::reserve_addresses(size_t(1) << 40);
  ASSERT_TRUE(arena) << arena.error().message;
  ASSERT_TRUE(arena->commit(3 * kSlab, 2 * kSlab));
  std::byte* const first = arena->data() + 3 * kSlab;
  std::memset(first, 7, 2 * kSlab);
  arena->discard(3 * kSlab + 4096, 8192);
  EXPECT_EQ(first[4095], std::byte(7));
  EXPECT_EQ(first[4096], std::byte(0));
  EXPECT_EQ(first[3 * 4096], std::byte(7));
  arena->decommit(3 * kSlab, kSlab);
  EXPECT_EQ(first[kSlab], std::byte(7));
  ASSERT_TRUE(arena->commit(3 * kSlab, kSlab));
  for (size_t at = 0; at < kSlab; at += 4096) ASSERT_EQ(first[at], std::byte(0));
}

TEST(Arena, RefusesNothingAndTooMuch) {
  EXPECT_EQ(Arena::reserve(0).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(Arena::reserve(SIZE_MAX).error().code, ErrorCode::memory_full);
  EXPECT_EQ(Arena::reserve(SIZE_MAX / 2).error().code, ErrorCode::memory_full);
}

}  // namespace
}  // namespace cairn::arena_test
