// A place in a text that another text follows with changes here and there: which of its tokens
// comes next, and how likely. A changed token is taken for one that replaced one, unless it shows
// that one was put in or left out. Thread rule: none, it has no lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"

namespace cairn::draft {

class TextPlace {
 public:
  TextPlace() = default;
  // `right`: so many tokens before it both texts have.
  TextPlace(size_t next, int32_t right) : next_(next), right_(right) {}

  size_t next() const { return next_; }
  int32_t right() const { return right_; }
  // So many of the other text's last tokens were changed ones.
  int32_t wrong() const { return wrong_; }

  // The other text goes on with this token. `tokens`: the text that it follows.
  void advance(std::span<const Token> tokens, Token token) {
    const auto is_at = [&](size_t place) {
      return place < tokens.size() && tokens[place] == token;
    };
    const bool is_put_in = wrong_ == 1 && next_ > 0 && is_at(next_ - 1);
    if (is_at(next_)) {
      ++next_;
    } else if (is_put_in) {
      // What stands where the changed token was comes behind it.
    } else if (wrong_ == 0 && is_at(next_ + 1)) {
      next_ += 2;
    } else {
      if (wrong_ == 0) before_change_ = right_;
      ++next_;
      ++wrong_;
      right_ = 0;
      return;
    }
    ++right_;
    wrong_ = 0;
  }

  // How likely the token at next() + i is what comes, where those before it are.
  float chance(int32_t i) const {
    if (i == 0 && wrong_ > 0) return kBehindChange / float(wrong_);
    return chance_behind(right_ + before_change_ / kTrustLost + i);
  }

 private:
  // How likely the token behind a changed one is what came there before; and of what had been right
  // before the change, this part counts as still being so.
  static constexpr float kBehindChange = .4f;
  static constexpr int32_t kTrustLost = 4;

  // How likely a text goes on being followed that was for so many tokens: what drafters claim
  // before anything is known. Each value is in a cell of its own of the calibration.
  static float chance_behind(int32_t right) {
    constexpr std::array<float, 7> kChances = {.25f, .4f, .5f, .65f, .75f, .82f, .86f};
    if (size_t(right) < kChances.size()) return kChances[size_t(right)];
    return right <= 14 ? .92f : right <= 30 ? .96f : .985f;
  }

  size_t next_ = 0;
  int32_t right_ = 0;
  int32_t wrong_ = 0;
  int32_t before_change_ = 0;
};

}  // namespace cairn::draft
