// The resolver against the plain meaning of its answer, tried position by position.
#include "memory/resolver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cairn::memory::resolver_test {
namespace {

// What a sequence of some length holds, at random.
struct History {
  explicit History(uint32_t seed) {
    std::mt19937 random(seed);
    length = int32_t(random() % 400);
    const size_t group_count = 1 + random() % 4;
    specs.resize(group_count);
    pages.resize(group_count);
    constexpr int32_t kWindows[] = {1, 2, 5, 31, 32, 33, 64, 100};
    constexpr GroupKind kKinds[] = {GroupKind::full, GroupKind::window, GroupKind::chunked,
                                    GroupKind::recurrent};
    for (size_t group = 0; group < group_count; ++group) {
      specs[group] = {.kind = kKinds[random() % 4], .window = kWindows[random() % 8]};
      // Runs of held pages with holes between them, and everything, and nearly nothing.
      const uint32_t holes = uint32_t(random() % 5);
      for (int32_t page = 0; page < specs[group].page_count(length); ++page) {
        const bool is_hole = specs[group].has_window() && random() % 8 < holes;
        pages[group].push_back(is_hole ? kNoPage : PageId(page));
      }
    }
    states = {0};
    for (int32_t position = 1; position <= length; ++position) {
      if (random() % 60 == 0) states.push_back(position);
    }
    log_begin = int32_t(random() % uint32_t(length + 1));
    for (size_t group = 0; group < group_count; ++group) {
      holdings.push_back({.group = int32_t(group),
                          .spec = &specs[group],
                          .pages = pages[group],
                          .states = states,
                          .log_begin = log_begin,
                          .log_end = length});
    }
  }

  bool sees(const GroupSpec& spec, int32_t position, int32_t token) const {
    if (spec.kind == GroupKind::window) return token > position - spec.window;
    return token / spec.window == position / spec.window;
  }
  bool can_resume(size_t group, int32_t position) const {
    const GroupSpec& spec = specs[group];
    if (position == 0 || spec.kind == GroupKind::full) return true;
    if (spec.kind == GroupKind::recurrent) {
      for (const int32_t state : states) {
        if (state == position) return true;
        if (state < position && state >= log_begin) return true;
      }
      return false;
    }
    for (int32_t token = 0; token < position; ++token) {
      const bool is_held = pages[group][size_t(token / kPageTokens)] != kNoPage;
      const bool continues = token == position - 1 && position % kPageTokens != 0;
      if (!is_held && (continues || sees(spec, position, token))) return false;
    }
    return true;
  }

  int32_t length = 0, log_begin = 0;
  std::vector<GroupSpec> specs;
  std::vector<std::vector<PageId>> pages;
  std::vector<int32_t> states;
  std::vector<Holding> holdings;
};

TEST(Resolver, FindsTheLastPositionThatAllGroupsCanResume) {
  int64_t moved_count = 0;
  for (uint32_t seed = 1; seed <= 1500; ++seed) {
    const History history(seed);
    int32_t expected = 0;
    for (int32_t position = 0; position <= history.length; ++position) {
      bool is_possible = true;
      for (size_t group = 0; group < history.specs.size(); ++group) {
        is_possible = is_possible && history.can_resume(group, position);
      }
      if (is_possible) expected = position;
      const Resolution found = resolve(history.holdings, position);
      ASSERT_EQ(found.position, expected) << "seed " << seed << ", position " << position;
      ASSERT_EQ(found.limiting_group < 0, expected == position);
      moved_count += int64_t(expected < position && expected > 0);
      if (found.limiting_group < 0) continue;
      // The group that is named cannot go on from the next higher position.
      ASSERT_FALSE(history.can_resume(size_t(found.limiting_group), expected + 1));
    }
  }
  EXPECT_GT(moved_count, 10000);  // The cases are not all trivial.
}

TEST(Resolver, RunsAreExactlyThePositionsThatAllGroupsCanResume) {
  int64_t inner_count = 0, held_back_count = 0;
  for (uint32_t seed = 1; seed <= 1500; ++seed) {
    const History history(seed);
    std::vector<int32_t> run_of(size_t(history.length) + 1, -1);
    const std::vector<ResumableRun> runs = resumable_runs(history.holdings, history.length);
    int32_t before = history.length + 1;
    for (size_t index = 0; index < runs.size(); ++index) {
      const ResumableRun& run = runs[index];
      ASSERT_TRUE(1 <= run.begin && run.begin <= run.end && run.end < before) << "seed " << seed;
      before = run.begin;
      for (int32_t at = run.begin; at <= run.end; ++at) run_of[size_t(at)] = int32_t(index);
    }
    const bool is_recurrent =
        std::any_of(history.specs.begin(), history.specs.end(),
                    [](const GroupSpec& spec) { return spec.kind == GroupKind::recurrent; });
    for (int32_t position = 1; position <= history.length; ++position) {
      const int32_t run = run_of[size_t(position)];
      const bool is_possible = resolve(history.holdings, position).position == position;
      ASSERT_EQ(run >= 0, is_possible) << "seed " << seed << ", position " << position;
      if (run < 0) continue;
      const auto above = std::upper_bound(history.states.begin(), history.states.end(), position);
      const int32_t state = is_recurrent ? *(above - 1) : 0;
      ASSERT_EQ(runs[size_t(run)].state, state) << "seed " << seed << ", position " << position;
      inner_count += int64_t(position < runs[size_t(run)].end);
      held_back_count += int64_t(is_recurrent && runs[size_t(run)].begin > state);
    }
  }
  EXPECT_GT(inner_count, 10000);
  EXPECT_GT(held_back_count, 100);  // Windows that begin behind the state.
}

}  // namespace
}  // namespace cairn::memory::resolver_test
