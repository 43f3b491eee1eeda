// The last successor that held is the best one.
#include "draft/recycle_table.h"

#include <gtest/gtest.h>

namespace cairn::draft::recycle_table_test {
namespace {

int32_t best(const RecycleTable& table, int32_t token) {
  return index_of(table.best(Token(token)).token);
}

TEST(RecycleTable, LearnsAndUnlearns) {
  RecycleTable table;
  EXPECT_EQ(best(table, 3), -1);
  table.learn(Token(3), Token(5));
  EXPECT_EQ(best(table, 3), 5);
  EXPECT_EQ(best(table, 2), -1);
  // Confirmed twice, it bears two contradictions.
  table.learn(Token(3), Token(5));
  table.learn(Token(3), Token(5));
  for (int i = 0; i < 2; ++i) {
    table.learn(Token(3), Token(6));
    EXPECT_EQ(best(table, 3), 5);
  }
  table.learn(Token(3), Token(6));
  EXPECT_EQ(best(table, 3), 6);
  for (int i = 0; i < 100; ++i) table.learn(Token(3), Token(6));
  EXPECT_EQ(table.best(Token(3)).confirmed, 7);
  table.forget();
  EXPECT_EQ(best(table, 3), -1);
}

TEST(RecycleTable, TokensThatAreNoneTeachNothing) {
  RecycleTable table;
  const size_t bytes = table.bytes();
  table.learn(Token(-1), Token(1));
  table.learn(Token(1), Token(-1));
  table.learn(Token(2147483647), Token(1));
  EXPECT_EQ(table.bytes(), bytes);
  EXPECT_EQ(best(table, -1), -1);
  EXPECT_EQ(best(table, 2147483647), -1);
}

}  // namespace
}  // namespace cairn::draft::recycle_table_test
