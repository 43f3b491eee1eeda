// How often drafters are right, beside how often they say so: a rate for each depth of a draft and
// each claimed chance, smoothed (a Beta prior that is forgotten with time), because what was true
// of an answer's beginning need not be true of its end. Knows no tokens. Thread rule: the engine's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace cairn::draft {

// Of one drafter.
class Calibration {
 public:
  // Tokens after which one that was counted has lost most (1 - 1/e) of its weight, in the rate that
  // follows slowly and the one that follows fast (0: there is none); and how many tokens what is
  // expected before the first counts for.
  struct Memory {
    float slow_window = 0;
    float fast_window = 0;
    float prior_weight = 0;
  };
  // All sequences together, and one of them: this one begins as all others were, and follows its
  // text fast where that has foretold it better of late.
  static constexpr Memory kShared = {.slow_window = 512, .fast_window = 0, .prior_weight = 2};
  static constexpr Memory kSequence = {.slow_window = 100, .fast_window = 8, .prior_weight = 6};

  explicit Calibration(Memory memory) : memory_(memory) {}

  // How likely the token at `depth` (0: the first) is right where those before it are. `claimed`:
  // by its drafter, from 0 to 1. `expected`: the answer while nothing is known.
  float chance(int32_t depth, float claimed, float expected) const;
  void count(int32_t depth, float claimed, float expected, bool is_right);

 private:
  static constexpr size_t kDepths = 8;
  static constexpr size_t kChances = 15;
  struct Rate {
    float right = 0;
    float total = 0;  // 0: nothing was counted.

    float value(float expected) const;
    void count(float window, bool is_right);
  };
  struct Cell {
    Rate slow;
    Rate fast;
  };
  static size_t cell_of(int32_t depth, float claimed);
  float fast_part() const;

  Memory memory_;
  // By how much the fast rate has foretold the last tokens better than the slow one: the logarithm
  // of the chances that they gave to what came, of all cells: a text changes for all depths at
  // once.
  float fast_lead_ = 0;
  std::array<Cell, kDepths* kChances> cells_ = {};
};

// Of all sequences of an engine, by the names of their drafters.
class Calibrations {
 public:
  // The reference stays valid.
  Calibration& of(std::string_view drafter);

 private:
  std::map<std::string, Calibration, std::less<>> drafters_;
};

}  // namespace cairn::draft
