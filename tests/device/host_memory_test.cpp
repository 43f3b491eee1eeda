// Memory of devices that compute where the host does.
#include "device/host_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cairn::host_memory_test {
namespace {

TEST(HostMemory, GivesWholeSlabsOfZeros) {
  HostMemory memory;
  const std::unique_ptr<Buffer> buffer = memory.allocate(3).value();
  EXPECT_EQ(buffer->size(), memory.slab_bytes());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % memory.slab_bytes(), 0u);
  EXPECT_EQ(buffer->data()[buffer->size() - 1], std::byte(0));
  EXPECT_EQ(memory.allocate(0).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(memory.allocate(SIZE_MAX / 2).error().code, ErrorCode::memory_full);
}

TEST(HostMemory, CopiesFillsAndShows) {
  HostMemory memory;
  const std::unique_ptr<Buffer> from = memory.allocate(4096).value();
  const std::unique_ptr<Buffer> to = memory.allocate(4096).value();
  memory.fill({from->data(), 4096}, std::byte(7));
  memory.copy({to->data() + 10, 100}, {from->data(), 100});
  const std::span<const std::byte> seen = memory.view({to->data() + 9, 102});
  EXPECT_EQ(seen.data(), to->data() + 9) << "no copy";
  EXPECT_EQ(seen.size(), 102u);
  EXPECT_EQ(seen[0], std::byte(0));
  EXPECT_EQ(seen[1], std::byte(7));
  EXPECT_EQ(seen[100], std::byte(7));
  EXPECT_EQ(seen[101], std::byte(0));
}

TEST(HostMemory, ReservesAddressesForMuchMore) {
  HostMemory memory;
  const std::unique_ptr<Buffer> buffer = memory.reserve(size_t(1) << 40).value();
  const size_t slab = memory.slab_bytes();
  EXPECT_EQ(slab % memory.unit_bytes(), 0u);
  ASSERT_TRUE(buffer->commit(slab, slab));
  memory.fill({buffer->data() + slab, slab}, std::byte(7));
  buffer->decommit(slab, slab);
  ASSERT_TRUE(buffer->commit(slab, slab));
  EXPECT_EQ(buffer->data()[slab], std::byte(0));
  EXPECT_EQ(memory.reserve(0).error().code, ErrorCode::invalid_argument);
}

TEST(HostMemory, DiscardedBytesAreZerosAgain) {
  std::unique_ptr<Buffer> buffer;
  {
    HostMemory memory;
    buffer = memory.allocate(1).value();  // Outlives its memory.
    memory.fill({buffer->data(), buffer->size()}, std::byte(7));
  }
  buffer->discard(4096, 4096);
  EXPECT_EQ(buffer->data()[4095], std::byte(7));
  EXPECT_EQ(buffer->data()[4096], std::byte(0));
  EXPECT_EQ(buffer->data()[8192], std::byte(7));
}

}  // namespace
}  // namespace cairn::host_memory_test
