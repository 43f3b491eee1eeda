// Turns come in order, can be given up, and what is discarded is destroyed in one.
#include "capi/turnstile.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace cairn::turnstile_test {
namespace {

using capi::Turn;
using capi::Turnstile;

struct User final : Turnstile::User {
  bool is_cancelled() const override {
    is_asked = true;
    return is_marked;
  }
  void end_soon() override { is_told = true; }
  std::atomic<bool> is_marked = false, is_told = false;
  mutable std::atomic<bool> is_asked = false;
};

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Turnstile, TurnsComeInOrder) {
  auto turns = Turnstile::open();
  ASSERT_TRUE(turns);
  std::vector<int> order;  // Of whoever has the turn.
  std::vector<std::thread> threads;
  std::array<User, 5> users;
  {
    const Turn first(turns->get());
    for (int number = 0; number < 5; ++number) {
      threads.emplace_back([&, number] {
        const Turn turn(turns->get(), &users[size_t(number)]);
        order.push_back(number);
      });
      wait_for(users[size_t(number)].is_asked);  // It waits by then.
    }
    EXPECT_TRUE(order.empty());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(Turnstile, MarksAreSeen) {
  auto turns = Turnstile::open();
  ASSERT_TRUE(turns);
  User computing, waiting;
  // The watcher sleeps by then.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  {
    const Turn turn(turns->get(), &computing);
    ASSERT_TRUE(turn);
    std::atomic<bool> has_given_up = false;
    std::thread other([&] {
      const Turn none(turns->get(), &waiting);
      EXPECT_FALSE(none);
      has_given_up = true;
    });
    EXPECT_FALSE(computing.is_told);
    waiting.is_marked = true;
    wait_for(has_given_up);
    other.join();
    computing.is_marked = true;
    wait_for(computing.is_told);
  }
  const Turn again(turns->get(), nullptr);
  EXPECT_TRUE(again);
}

TEST(Turnstile, WhatIsDiscardedIsDestroyedInATurn) {
  auto turns = Turnstile::open();
  ASSERT_TRUE(turns);
  auto item = std::make_shared<const int>(1);
  const std::weak_ptr<const int> left = item;
  {
    const Turn turn(turns->get());
    (*turns)->discard(std::move(item));
    EXPECT_FALSE(left.expired());
  }
  EXPECT_TRUE(left.expired());
  item = std::make_shared<const int>(2);
  const std::weak_ptr<const int> next = item;
  (*turns)->discard(std::move(item));
  EXPECT_TRUE(next.expired());
}

}  // namespace
}  // namespace cairn::turnstile_test
