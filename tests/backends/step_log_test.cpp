// StoreLog and LoadLog: rows come back from the pages of their sequences, at their positions; what
// has no page is not written. (There is no vector kernel; every level uses the reference's.)
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backends/reference/reference.h"
#include "tests/backends/step_builder.h"

namespace cairn::test::step_log_test {
namespace {

constexpr int32_t kWidth = 19;
constexpr int32_t kPageCount = 8;

// Two sequences on a plane in the middle of its group's blocks; the first has no page 1.
struct Log {
  std::vector<float> blocks;
  LogPlane plane;
  std::vector<PageId> first_pages = {PageId(6), kNoPage, PageId(1)};
  std::vector<PageId> second_pages = {kNoPage, PageId(3), PageId(0), PageId(5)};
  const PageId* tables_of_first[2] = {nullptr, first_pages.data()};
  const PageId* tables_of_second[2] = {nullptr, second_pages.data()};
  std::vector<Slice> slices;

  explicit Log(const Step& step) : blocks(size_t(kPageCount) * 256, -1.0f) {
    plane = {.first = reinterpret_cast<std::byte*>(blocks.data() + 32),
             .page_bytes = 256 * sizeof(float),
             .group = 1,
             .width = kWidth};
    slices.assign(step.slices.begin(), step.slices.end());
    slices[0].pages = tables_of_first;
    slices[1].pages = tables_of_second;
  }
  Step on(Step step) const {
    step.slices = slices;
    step.log_planes = {&plane, 1};
    return step;
  }
  size_t float_of(PageId page, int32_t position) const {
    return size_t(index_of(page)) * 256 + 32 + size_t(position % kLogPageTokens * kWidth);
  }
};

TEST(StepLog, RowsComeBackFromTheirPagesAndNothingElseIsWritten) {
  const std::vector<SliceSpec> specs = {{.row_count = 21, .first_position = 2},
                                        {.row_count = 9, .first_position = 15}};
  World world(5, specs);
  const op::StoreLog store{.x = world.rows(kWidth), .log_plane = 0};
  const op::LoadLog load{.out = world.rows(kWidth), .log_plane = 0};
  Log log(world.step());
  const Step step = log.on(world.step());
  std::vector<float> expected = log.blocks;
  for (int32_t row = 0; row < 30; ++row) {
    const int32_t position = step.positions[size_t(row)];
    const auto& pages = row < 21 ? log.first_pages : log.second_pages;
    const PageId page = pages[size_t(position / kLogPageTokens)];
    if (page == kNoPage) continue;
    std::memcpy(expected.data() + log.float_of(page, position), step.row(store.x, row), kWidth * 4);
  }
  run_op(reference::kernel_for(store), store, step);
  EXPECT_EQ(std::memcmp(expected.data(), log.blocks.data(), expected.size() * sizeof(float)), 0);

  // The second sequence alone has all its pages.
  Step second = step;
  second.slices = second.slices.subspan(1);
  second.positions = second.positions.subspan(21);
  second.tokens = second.tokens.subspan(21);
  const std::vector<int32_t> slice_of_row(9, 0);
  second.slice_of_row = slice_of_row;
  run_op(reference::kernel_for(load), load, second);
  for (int32_t row = 0; row < 9; ++row) {
    EXPECT_EQ(std::memcmp(step.row(load.out, row), step.row(store.x, 21 + row), kWidth * 4), 0);
  }
}

TEST(StepLog, AStepWithoutALogStoresNothing) {
  World world(5, {{.row_count = 3}});
  const op::StoreLog store{.x = world.rows(kWidth), .log_plane = 0};
  const host::HostKernel kernel = reference::kernel_for(store);
  EXPECT_EQ(kernel.task_count(store, world.step()), 0);
}

}  // namespace
}  // namespace cairn::test::step_log_test
