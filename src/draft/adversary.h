// A drafter that is as it is told to be: right, wrong, random, or breaking every rule there is.
// What shows that drafts change nothing (session/drafts/draft_verifier.h, tests). Thread rule: that
// of drafters.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "draft/draft.h"

namespace cairn::draft {

// What drafts are like.
enum class Habit : uint8_t {
  right,  // All of them.
  wrong,  // None.
  right_at_first,
  random,
  alternating,  // A right one, a wrong one, …
  end,          // The first token of the vocabulary again and again.
  nonsense,     // Ids that no vocabulary has, chances that are no numbers, far too many.
  changing,     // Another one of these at each call.
};
inline constexpr std::array kHabits = {Habit::right,    Habit::wrong,       Habit::right_at_first,
                                       Habit::random,   Habit::alternating, Habit::end,
                                       Habit::nonsense, Habit::changing};
inline constexpr std::array<std::string_view, kHabits.size()> kHabitNames = {
    "right",       "wrong",     "right at first", "random",
    "alternating", "one token", "nonsense",       "changing"};

class Adversary final : public Drafter {
 public:
  // `plain`: the whole text that plain decoding makes.
  Adversary(Habit habit, std::vector<Token> plain, int32_t vocabulary_count, uint64_t seed)
      : habit_(habit),
        plain_(std::move(plain)),
        vocabulary_count_(uint32_t(vocabulary_count)),
        random_(seed) {}

  std::string_view name() const override { return "adversary"; }
  void propose(const View& view, Draft& draft) override {
    Habit habit = habit_;
    if (habit == Habit::changing) habit = kHabits[random_() % (kHabits.size() - 1)];
    const size_t right = random_() % 12;
    const size_t count = habit == Habit::nonsense ? 1000 : 1 + random_() % 24;
    for (size_t i = 0; i < count; ++i) {
      const size_t at = view.text.size() + i;
      const Token known = at < plain_.size() ? plain_[at] : Token(0);
      const bool is_right = habit == Habit::right ||
                            (habit == Habit::right_at_first && i < right) ||
                            (habit == Habit::alternating && i % 2 == 0);
      Token token = is_right ? known : Token(int32_t(random_() % vocabulary_count_));
      if (habit == Habit::end) token = Token(1);
      if (habit == Habit::wrong) token = Token(int32_t((index_of(known) + 1) % vocabulary_count_));
      if (habit == Habit::nonsense && i > right) token = Token(int32_t(random_()));
      const bool is_no_number = habit == Habit::nonsense && random_() % 3 == 0;
      draft.add(token, is_no_number ? std::numeric_limits<float>::quiet_NaN() : 1.0f);
    }
  }

 private:
  Habit habit_;
  std::vector<Token> plain_;
  uint32_t vocabulary_count_;
  std::mt19937_64 random_;
};

}  // namespace cairn::draft
