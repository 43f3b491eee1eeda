// Sequences taken apart and put together in another memory: the same bits, the same answers
// afterwards, and nothing taken where there is no room. The simulator does it between all other
// operations.
#include "memory/archive.h"

#include <gtest/gtest.h>

#include "tests/memory/archive_bench.h"
#include "tests/memory/simulator.h"
#include "tests/memory/toy_bench.h"

namespace cairn::memory::toy::archive_test {
namespace {

Result<Sequence> moved(const ToyBench& from, const Sequence& sequence, ToyBench& to) {
  const Outline outline = Archive::outline_of(sequence);
  CAIRN_TRY(Assembly assembly, Assembly::begin(*to.memory, outline, sequence.variant()));
  copy_blocks(sequence, outline, from.memory->layout(), assembly);
  return std::move(assembly).finish();
}

void expect_same_bytes(DeviceBytes a, DeviceBytes b, std::span<const BlockPart> parts) {
  ASSERT_EQ(a.exists(), b.exists());
  if (!a.exists()) return;
  for (const BlockPart& part : parts) {
    ASSERT_EQ(std::memcmp(a.data + part.offset, b.data + part.offset, part.bytes), 0);
  }
}

TEST(Archive, ASequenceMovesToAnotherMemoryWithAllItsBits) {
  for (const ToyModel& model : toy_models()) {
    ToyBench here(model, {.log_step = 16}), there(model, {.log_step = 16});
    const Sequence original = conversation(here);
    // Blocks lie elsewhere there.
    Sequence other = there.memory->new_sequence();
    ASSERT_TRUE(bool(there.read(other, tokens(70), {33})));
    Sequence copy = moved(here, original, there).value();
    const Layout& layout = here.memory->layout();
    const Outline outline = Archive::outline_of(original);
    EXPECT_EQ(Archive::outline_of(copy), outline);
    EXPECT_EQ(copy.variant(), Variant(5));
    for (int32_t group = 0; group < int32_t(layout.groups.size()); ++group) {
      for (int32_t page = 0; layout.groups[size_t(group)].has_pages() && page < 3; ++page) {
        expect_same_bytes(Archive::page(original, group, page), Archive::page(copy, group, page),
                          block_parts(layout, group));
      }
    }
    for (const int32_t position : outline.state_positions()) {
      expect_same_bytes(Archive::state(original, position), Archive::state(copy, position),
                        block_parts(layout, layout.recurrent_group));
    }
    for (int32_t target = 0; target <= original.length(); ++target) {
      Sequence branch = there.memory->at(copy, target).value();
      EXPECT_EQ(branch.length(), here.memory->at(original, target).value().length());
      ASSERT_TRUE(bool(there.read(branch, tokens(3, 20))));
      there.expect_exact(branch);
    }
    there.expect_exact(copy);
    there.expect_exact(other);
    there.memory->close(copy);
    there.memory->close(other);
    EXPECT_EQ(there.memory->usage().used_bytes(), 0u);
  }
}

TEST(Archive, WithoutRoomNothingIsTaken) {
  for (const ToyModel& model : toy_models()) {
    ToyBench here(model, {.log_step = 16}), there(model, {.log_step = 16});
    const Sequence original = conversation(here);
    int64_t count = 0;
    for (bool is_moved = false; !is_moved; ++count) {
      Inspector::store(*there.memory).refuse_after(count);
      Result<Sequence> copy = moved(here, original, there);
      is_moved = bool(copy);
      if (is_moved) break;
      ASSERT_EQ(copy.error().code, ErrorCode::memory_full);
      ASSERT_EQ(there.memory->usage().used_bytes(), 0u);
    }
    EXPECT_GT(count, 1);
  }
  ToyBench here(toy_models().back(), {}), there(toy_models().back(), {.budget_bytes = 2000});
  const Sequence original = conversation(here);
  EXPECT_EQ(moved(here, original, there).error().code, ErrorCode::memory_full);
  ToyBench narrow(toy_models().back(), {.context_tokens_max = 40});
  EXPECT_EQ(moved(here, original, narrow).error().code, ErrorCode::context_full);
}

// A memory with a shorter log keeps less of it.
TEST(Archive, TheLogIsAsLongAsTheMemoryWants) {
  const ToyModel model(ToyModel::Layers{{ToyModel::recurrent()}});
  ToyBench here(model, {.log_step = 16, .log_tokens_max = 64}), there(model, {.log_step = 8});
  const Sequence original = conversation(here);
  const Sequence copy = moved(here, original, there).value();
  EXPECT_LT(original.log_begin(), copy.log_begin());
  EXPECT_GE(copy.log_begin(), copy.length() - there.memory->options().log_tokens_max);
  there.expect_exact(copy);
}

}  // namespace
}  // namespace cairn::memory::toy::archive_test
