// A reference calls the thing itself, not a copy of it.
#include "base/function_ref.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace cairn::function_ref_test {
namespace {

int twice(int value) {
  return 2 * value;
}

int apply(FunctionRef<int(int)> function, int value) {
  return function(value);
}

TEST(FunctionRef, CallsLambdasFunctionsAndObjects) {
  EXPECT_EQ(apply([](int value) { return value + 1; }, 4), 5);
  EXPECT_EQ(apply(twice, 4), 8);
  EXPECT_EQ(apply(&twice, 4), 8);
  const auto constant = [offset = 3](int value) { return value + offset; };
  EXPECT_EQ(apply(constant, 4), 7);
}

TEST(FunctionRef, RefersAndDoesNotCopy) {
  int calls = 0;
  auto count = [&calls, seen = 0](int value) mutable {
    seen += value;
    ++calls;
    return seen;
  };
  const FunctionRef<int(int)> reference(count);
  const FunctionRef<int(int)> copy = reference;
  EXPECT_EQ(reference(2), 2);
  EXPECT_EQ(copy(3), 5) << "both call the same object";
  EXPECT_EQ(calls, 2);
}

TEST(FunctionRef, PassesWhatOnlyMoves) {
  const auto read = [](std::unique_ptr<int> value) { return *value; };
  const FunctionRef<int(std::unique_ptr<int>)> function = read;
  EXPECT_EQ(function(std::make_unique<int>(6)), 6);
}

}  // namespace
}  // namespace cairn::function_ref_test
