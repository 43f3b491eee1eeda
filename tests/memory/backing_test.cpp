// What is committed, what goes back and what is counted, on a device that writes down what it is
// asked for: slabs of 8 units of 10 bytes.
#include "memory/backing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cairn::memory::backing_test {
namespace {

constexpr size_t kUnit = 10, kSlab = 80, kSlabCount = 6;

// Which units the system backs: all of a slab when it is committed, as huge pages are.
struct Backed {
  std::vector<bool> units = std::vector<bool>(kSlab / kUnit * kSlabCount);
  std::vector<bool> slabs = std::vector<bool>(kSlabCount);
  int commits_left = INT32_MAX;
  int discard_count = 0;

  void touch(size_t offset, size_t bytes) {
    for (size_t unit = offset / kUnit; unit * kUnit < offset + bytes; ++unit) units[unit] = true;
  }
  size_t bytes() const { return size_t(std::count(units.begin(), units.end(), true)) * kUnit; }
};

class FakeBuffer final : public Buffer {
 public:
  explicit FakeBuffer(Backed* backed) : Buffer({nullptr, kSlab * kSlabCount}), backed_(*backed) {}
  bool commit(size_t offset, size_t bytes) override {
    if (backed_.commits_left-- <= 0) return false;
    EXPECT_FALSE(backed_.slabs[offset / kSlab]);
    set_slab(offset, bytes, true);
    return true;
  }
  void decommit(size_t offset, size_t bytes) override {
    EXPECT_TRUE(backed_.slabs[offset / kSlab]);
    set_slab(offset, bytes, false);
  }
  void discard(size_t offset, size_t bytes) override {
    EXPECT_EQ(offset % kUnit + bytes % kUnit, 0u);
    ++backed_.discard_count;
    for (size_t unit = offset / kUnit; unit < (offset + bytes) / kUnit; ++unit) {
      EXPECT_TRUE(backed_.units[unit]);
      backed_.units[unit] = false;
    }
  }

 private:
  void set_slab(size_t offset, size_t bytes, bool value) {
    EXPECT_EQ(offset % kSlab, 0u);
    EXPECT_EQ(bytes, kSlab);
    backed_.slabs[offset / kSlab] = value;
    for (size_t unit = offset / kUnit; unit < (offset + bytes) / kUnit; ++unit) {
      backed_.units[unit] = value;
    }
  }

  Backed& backed_;
};

Backing backing_of(Backed& backed) {
  return Backing(std::make_unique<FakeBuffer>(&backed), {.slab_bytes = kSlab, .unit_bytes = kUnit});
}

TEST(Backing, SlabsComeWithTheirFirstBytesAndGoWithTheirLast) {
  Backed backed;
  Backing backing = backing_of(backed);
  EXPECT_EQ(backing.resident_bytes(), 0u);
  ASSERT_TRUE(backing.use(70, 20));  // On two slabs.
  EXPECT_EQ(backing.resident_bytes(), 2 * kSlab);
  EXPECT_EQ(backing.slack_bytes(), 2 * kSlab - 20);
  ASSERT_TRUE(backing.use(90, 30));
  backing.drop(70, 20);
  EXPECT_EQ(backed.bytes(), kSlab) << "the first one went";
  EXPECT_EQ(backing.slack_bytes(), kSlab - 30);
  backing.drop(90, 30);
  EXPECT_EQ(backed.bytes(), 0u);
  EXPECT_EQ(backing.resident_bytes(), 0u);
}

// Blocks smaller than a unit: it goes when none of them is left.
TEST(Backing, UnitsAreShared) {
  Backed backed;
  Backing backing = backing_of(backed);
  for (size_t offset = 0; offset < 40; offset += 4) ASSERT_TRUE(backing.use(offset, 4));
  EXPECT_EQ(backing.slack_bytes(), kSlab - 40);
  for (size_t offset = 4; offset < 20; offset += 4) backing.drop(offset, 4);
  EXPECT_EQ(backing.slack_bytes(), kSlab - 30) << "the first unit is used by the first block";
  backing.reduce_slack(0);
  EXPECT_EQ(backing.resident_bytes(), 30u);
  EXPECT_EQ(backed.bytes(), 30u);
  ASSERT_TRUE(backing.use(12, 4));
  EXPECT_EQ(backing.resident_bytes(), 40u);
}

TEST(Backing, TakesSlackFromTheSlabThatHasMost) {
  Backed backed;
  Backing backing = backing_of(backed);
  for (size_t offset = 0; offset < 3 * kSlab; offset += kUnit) {
    ASSERT_TRUE(backing.use(offset, kUnit));
  }
  for (const size_t unit : {1, 9, 11, 13, 14, 17}) backing.drop(unit * kUnit, kUnit);
  EXPECT_EQ(backing.slack_bytes(), 60u);
  backing.reduce_slack(60);
  EXPECT_EQ(backed.discard_count, 0);
  backing.reduce_slack(59);
  EXPECT_EQ(backed.discard_count, 3) << "neighbours at once";
  EXPECT_EQ(backing.slack_bytes(), 20u);
  EXPECT_TRUE(backed.units[1]);
  EXPECT_FALSE(backed.units[14]);
}

TEST(Backing, ARefusalLeavesNothing) {
  Backed backed;
  Backing backing = backing_of(backed);
  backed.commits_left = 1;
  EXPECT_FALSE(backing.use(70, 20));
  EXPECT_EQ(backed.bytes(), 0u);
  EXPECT_EQ(backing.resident_bytes(), 0u);
  backed.commits_left = 2;
  ASSERT_TRUE(backing.use(10, 10));
  EXPECT_TRUE(backing.use(70, 20));
  EXPECT_EQ(backing.resident_bytes(), 2 * kSlab);
}

// Whatever is used and dropped, the count is what the device has.
TEST(Backing, CountsWhatIsBacked) {
  std::mt19937 random(1);
  for (const size_t block : {4, 10, 25, 80, 130}) {
    Backed backed;
    Backing backing = backing_of(backed);
    const size_t count = kSlab * kSlabCount / block;
    std::vector<bool> used(count, false);
    for (int round = 0; round < 3000; ++round) {
      const size_t index = random() % count;
      if (used[index]) {
        backing.drop(index * block, block);
      } else {
        ASSERT_TRUE(backing.use(index * block, block));
        backed.touch(index * block, block);
      }
      used[index] = !used[index];
      if (random() % 16 == 0) backing.reduce_slack(random() % 100);
      ASSERT_EQ(backing.resident_bytes(), backed.bytes());
      std::vector<bool> needed(backed.units.size(), false);
      for (size_t each = 0; each < count; ++each) {
        for (size_t byte = each * block; used[each] && byte < (each + 1) * block; ++byte) {
          needed[byte / kUnit] = true;
        }
      }
      size_t needed_bytes = 0;
      for (size_t unit = 0; unit < needed.size(); ++unit) {
        ASSERT_TRUE(backed.units[unit] || !needed[unit]);
        needed_bytes += needed[unit] ? kUnit : 0;
      }
      ASSERT_EQ(backing.slack_bytes(), backed.bytes() - needed_bytes);
    }
  }
}

}  // namespace
}  // namespace cairn::memory::backing_test
