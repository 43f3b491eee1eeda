// Embed, Given, GatherOutputs and PickColumns: what they read and where they write it. (There is no
// vector kernel; every level uses the reference's.)
#include "tests/backends/same_bits.h"

namespace cairn::test::embed_test {
namespace {

TEST(Embed, DecodesTheTokensRowAndScalesIt) {
  World world(2, {{.row_count = 6}});
  constexpr int32_t kWidth = 24, kVocabulary = 97;
  const float* values = world.parameters(size_t(kWidth) * kVocabulary).data();
  const Weight table{.name = "token_embd.weight",
                     .type = quant::find("F32"),
                     .cols = kWidth,
                     .rows = kVocabulary,
                     .blocks = std::as_bytes(std::span(values, size_t(kWidth) * kVocabulary))};
  const op::Embed embed{.table = &table, .out = world.rows(kWidth), .scale = 1.5f};
  const Step step = world.step();
  run_op(reference::kernel_for(embed), embed, step);
  for (int32_t row = 0; row < 6; ++row) {
    const float* expected = values + index_of(step.tokens[size_t(row)]) * kWidth;
    for (int32_t i = 0; i < kWidth; ++i) {
      EXPECT_EQ(expected[i] * 1.5f, step.row(embed.out, row)[i]);
    }
  }
}

TEST(Embed, ByPositionReadsTheRowOfEachPosition) {
  World world(2, {{.row_count = 3, .first_position = 5}, {.row_count = 2}});
  constexpr int32_t kWidth = 9, kPositions = 64;
  const float* values = world.parameters(size_t(kWidth) * kPositions).data();
  const Weight table{.name = "position_embd.weight",
                     .type = quant::find("F32"),
                     .cols = kWidth,
                     .rows = kPositions,
                     .blocks = std::as_bytes(std::span(values, size_t(kWidth) * kPositions))};
  const op::Embed embed{.table = &table, .out = world.rows(kWidth), .by_position = true};
  const Step step = world.step();
  run_op(reference::kernel_for(embed), embed, step);
  for (int32_t row = 0; row < 5; ++row) {
    const float* expected = values + step.positions[size_t(row)] * kWidth;
    EXPECT_EQ(0, std::memcmp(expected, step.row(embed.out, row), kWidth * sizeof(float)));
  }
}

TEST(Embed, AFixedRowIsTheSameForEveryToken) {
  World world(3, {{.row_count = 3}, {.row_count = 2}});
  constexpr int32_t kWidth = 9;
  const float* values = world.parameters(size_t(kWidth) * 2).data();
  const Weight table{.name = "token_types.weight",
                     .type = quant::find("F32"),
                     .cols = kWidth,
                     .rows = 2,
                     .blocks = std::as_bytes(std::span(values, size_t(kWidth) * 2))};
  for (const int32_t fixed_row : {0, 1}) {
    const op::Embed embed{.table = &table, .out = world.rows(kWidth), .fixed_row = fixed_row};
    const Step step = world.step();
    run_op(reference::kernel_for(embed), embed, step);
    for (int32_t row = 0; row < 5; ++row) {
      EXPECT_EQ(0, std::memcmp(values + fixed_row * kWidth, step.row(embed.out, row),
                               kWidth * sizeof(float)));
    }
  }
}

TEST(Given, CopiesTheRowsBesideTheTokens) {
  constexpr size_t kWidth = 19;
  World world(2, {{.row_count = 5}, {.row_count = 4}});
  std::vector<float> rows;
  for (size_t i = 0; i < 9 * kWidth; ++i) rows.push_back(float(i) * 0.5f);
  const op::Given given{.out = world.rows(int32_t(kWidth))};
  Step step = world.step();
  step.given = rows;
  run_op(reference::kernel_for(given), given, step);
  for (size_t row = 0; row < 9; ++row) {
    EXPECT_EQ(0, std::memcmp(step.row(given.out, int32_t(row)), rows.data() + row * kWidth,
                             kWidth * sizeof(float)));
  }
}

TEST(GatherOutputs, CopiesTheWantedRowsInOrder) {
  for (const std::vector<int32_t>& wanted : {std::vector<int32_t>{}, {4}, {0, 2, 3, 8}}) {
    World world(2, {{.row_count = 5}, {.row_count = 4}});
    world.output_rows() = wanted;
    const Rows x = world.rows(19);
    const op::GatherOutputs gather{.x = x, .out = world.rows(19, RowSet::outputs)};
    const Step step = world.step();
    const std::vector<std::byte> before(world.memory().begin(), world.memory().end());
    run_op(reference::kernel_for(gather), gather, step);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(0, std::memcmp(step.row(x, wanted[i]), step.row(gather.out, int32_t(i)), 19 * 4));
    }
    if (wanted.empty()) {
      EXPECT_EQ(0, std::memcmp(before.data(), world.memory().data(), before.size()));
    }
  }
}

TEST(PickColumns, TakesTheSameColumnsOfEachPeriod) {
  World world(3, {{.row_count = 4}});
  Rows x = world.rows(3 * 7);
  x.offset += 2;  // From column 2 on: the last period is cut short.
  x.width -= 2;
  const op::PickColumns pick{.x = x, .out = world.rows(3 * 4), .count = 4, .period = 7};
  const Step step = world.step();
  run_op(reference::kernel_for(pick), pick, step);
  for (int32_t row = 0; row < 4; ++row) {
    for (int32_t i = 0; i < 12; ++i) {
      EXPECT_EQ(step.row(x, row)[i / 4 * 7 + i % 4], step.row(pick.out, row)[i]);
    }
  }
}

TEST(JoinColumns, TakesARunOfEachInTurn) {
  World world(3, {{.row_count = 4}});
  const op::JoinColumns join{.a = world.rows(3 * 5),
                             .b = world.rows(3 * 2),
                             .out = world.rows(3 * 7),
                             .a_run = 5,
                             .b_run = 2};
  const Step step = world.step();
  run_op(reference::kernel_for(join), join, step);
  for (int32_t row = 0; row < 4; ++row) {
    for (int32_t i = 0; i < 21; ++i) {
      const int32_t run = i / 7, column = i % 7;
      const float expected = column < 5 ? step.row(join.a, row)[run * 5 + column]
                                        : step.row(join.b, row)[run * 2 + column - 5];
      EXPECT_EQ(expected, step.row(join.out, row)[i]);
    }
  }
}

TEST(JoinColumns, OneRunStandsBehindEach) {
  World world(4, {{.row_count = 2}});
  const op::JoinColumns join{
      .a = world.rows(3 * 2), .b = world.rows(4), .out = world.rows(3 * 6), .a_run = 2, .b_run = 4};
  const Step step = world.step();
  run_op(reference::kernel_for(join), join, step);
  for (int32_t row = 0; row < 2; ++row) {
    for (int32_t run = 0; run < 3; ++run) {
      const float* out = step.row(join.out, row) + run * 6;
      EXPECT_TRUE(std::equal(out, out + 2, step.row(join.a, row) + run * 2));
      EXPECT_TRUE(std::equal(out + 2, out + 6, step.row(join.b, row)));
    }
  }
}

}  // namespace
}  // namespace cairn::test::embed_test
