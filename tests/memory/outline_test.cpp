// Outlines: where they resume without what could not be read, and that strange ones are refused.
#include "memory/outline.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/memory/archive_bench.h"
#include "tests/memory/simulator.h"

namespace cairn::memory::toy::outline_test {
namespace {

TEST(Outline, WhatCannotBeReadIsForgotten) {
  const ToyModel model({{ToyModel::recurrent()}, {ToyModel::full()}, {ToyModel::window(33)}});
  ToyBench bench(model, {.log_step = 16});
  const Sequence sequence = conversation(bench);
  const Layout& layout = bench.memory->layout();
  const Outline whole = Archive::outline_of(sequence);
  const int32_t length = whole.length();
  const int32_t full = layout.kv_planes[0].group;
  ASSERT_EQ(resume_position(whole, layout, length, false), length);

  Outline without_log = whole;
  without_log.drop_log(layout);
  EXPECT_TRUE(bool(check(without_log, layout)));
  EXPECT_EQ(resume_position(without_log, layout, length, false), whole.state_positions().back());
  EXPECT_LT(whole.state_positions().back(), length);

  Outline without_state = whole;
  without_state.drop_state(layout, 45);
  EXPECT_TRUE(bool(check(without_state, layout)));
  EXPECT_EQ(resume_position(without_state, layout, 50, false), 40);

  Outline without_page = whole;
  without_page.drop_pages(layout, full, {.first = 1, .count = 1});
  EXPECT_TRUE(bool(check(without_page, layout)));
  EXPECT_EQ(resume_position(without_page, layout, length, false), 10);
  EXPECT_EQ(Assembly::begin(*bench.memory, without_page, Variant::plain).error().code,
            ErrorCode::invalid_data);
  without_page.cut(layout, 10);
  EXPECT_TRUE(bool(Assembly::begin(*bench.memory, without_page, Variant::plain)));
}

// Whatever a field says, an outline is refused or safe to make a sequence of.
TEST(Outline, OutlinesFromElsewhereAreChecked) {
  std::mt19937 random(1);
  int32_t refused = 0, made = 0;
  for (const ToyModel& model : toy_models()) {
    ToyBench bench(model, {.log_step = 16});
    const Outline whole = Archive::outline_of(conversation(bench));
    const size_t used = bench.memory->usage().used_bytes();
    constexpr int32_t kValues[] = {-1, 0, 1, 2, 31, 32, 65, 66, 67, INT32_MAX, INT32_MIN};
    for (int32_t round = 0; round < 500; ++round) {
      Outline outline = whole;
      const auto value = [&] { return kValues[random() % std::size(kValues)]; };
      auto& runs = outline.runs[random() % outline.runs.size()];
      OutlineAnchor& anchor = outline.anchors[random() % outline.anchors.size()];
      switch (random() % 10) {
        case 0:
          outline.log_begin = value();
          break;
        case 1:
          outline.protected_from = value();
          break;
        case 2:
          anchor.position = value();
          break;
        case 3:
          anchor.kind = AnchorKind(random() % 9);
          break;
        case 4:
          anchor.has_state = !anchor.has_state;
          break;
        case 5:
          anchor.has_hidden = !anchor.has_hidden;
          break;
        case 6:
          outline.has_state = !outline.has_state;
          break;
        case 7:
          runs.push_back({.first = value(), .count = value()});
          break;
        case 8:
          outline.tokens.resize(random() % 80);
          break;
        default:
          if (!runs.empty()) runs[0] = {.first = value(), .count = value()};
      }
      Result<Assembly> begun = Assembly::begin(*bench.memory, outline, Variant::plain);
      refused += int32_t(!begun);
      made += int32_t(bool(begun));
      if (!begun) {
        ASSERT_EQ(begun.error().code, ErrorCode::invalid_data) << begun.error().message;
      }
    }
    ASSERT_EQ(bench.memory->usage().used_bytes(), used);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(made, 100);
}

}  // namespace
}  // namespace cairn::memory::toy::outline_test
