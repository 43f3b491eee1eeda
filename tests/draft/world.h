// A world without a model for tests of drafts: a text that is known beforehand, drafters that see
// it (and say what they like), and steps whose time follows a curve. Time is counted, not measured.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random_stream.h"
#include "draft/row_choice.h"
#include "draft/speculator.h"

namespace cairn::draft::test {

using Text = std::vector<Token>;

inline constexpr int32_t kVocabulary = 1000;

inline Text random_text(int32_t count, uint64_t seed, uint32_t symbols = uint32_t(kVocabulary)) {
  RandomStream random(seed, 1, 0);
  Text text;
  for (int32_t i = 0; i < count; ++i) text.push_back(Token(int32_t(random.below(symbols))));
  return text;
}

// A drafter that is a function.
class Scripted : public Drafter {
 public:
  using Propose = std::function<void(const View&, Draft&)>;
  explicit Scripted(Propose propose, std::string_view name = "scripted")
      : propose_(std::move(propose)), name_(name) {}
  std::string_view name() const override { return name_; }
  void propose(const View& view, Draft& draft) override {
    ++asked;
    propose_(view, draft);
  }
  void take(const Verdict& verdict) override { verdicts.push_back(verdict); }

  int32_t asked = 0;
  std::vector<Verdict> verdicts;

 private:
  Propose propose_;
  std::string_view name_;
};

inline std::vector<std::unique_ptr<Drafter>> only(Scripted::Propose propose) {
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<Scripted>(std::move(propose)));
  return drafters;
}

// Knows the text; each token is right as often as `chance` says of its place in the text.
inline Scripted::Propose guessing(const Text& text, std::function<double(size_t)> chance,
                                  int32_t length, float claimed, uint64_t seed = 7) {
  return [&text, chance, length, claimed, random = RandomStream(seed, 2, 0)](const View& view,
                                                                             Draft& draft) mutable {
    for (int32_t i = 0; i < std::min(length, view.count_max); ++i) {
      const size_t at = view.text.size() + size_t(i);
      if (at >= text.size()) return;
      const bool is_right = double(random.unit()) < chance(at);
      const int32_t id = index_of(text[at]);
      draft.add(is_right ? text[at] : Token((id + 1) % kVocabulary), claimed);
    }
  };
}

// Steps of 1, 2, 4, 8 and 16 rows, as multiples of a step of one; others lie between.
struct Curve {
  std::array<double, 5> at;
  double operator()(int32_t rows) const {
    double known = at[0];
    for (size_t i = 1; i < at.size(); ++i) {
      const int32_t end = 1 << i;
      if (rows <= end) {
        const double part = double(rows - end / 2) / double(end / 2);
        return known + part * (at[i] - known);
      }
      known = at[i];
    }
    return known + double(rows - 16) / 16 * (at[4] - at[3]) * 2;
  }
};
inline constexpr Curve kUsual = {{1, 1.05, 1.2, 1.6, 2.4}};
inline constexpr Curve kFlat = {{1, 1, 1.02, 1.05, 1.1}};
inline constexpr Curve kSteep = {{1, 1.9, 3.7, 7.2, 14.5}};

// One answer of a model that says `text`, whose first tokens are the prompt.
struct Outcome {
  double seconds = 0;        // Of all steps.
  double plain_seconds = 0;  // Of as many steps of one row as there are tokens.
  double speed() const { return plain_seconds / seconds; }
};

struct RunOptions {
  Curve curve = kUsual;
  double step_seconds = 0.02;
  int32_t row_count_max = 17;
  std::function<void(const Speculator::Proposal&, int32_t right)> see = {};
};

inline Outcome answer(Speculator& speculator, const Text& text, size_t prompt_count,
                      const RunOptions& options) {
  Outcome run;
  const std::span<const Token> all(text);
  size_t known = prompt_count;
  while (known < text.size()) {
    const int32_t room = int32_t(text.size() - known) - 1;
    const int32_t count_max = std::min(options.row_count_max - 1, room);
    const auto proposal = speculator.propose({.text = all.first(known), .count_max = count_max});
    const auto seconds = [&](int32_t rows) { return options.curve(rows) * options.step_seconds; };
    int32_t count = 0;
    choose_counts({&proposal.reach, 1}, options.row_count_max, seconds, {&count, 1});
    int32_t right = 0;
    while (size_t(right) < proposal.tokens.size() &&
           proposal.tokens[size_t(right)] == text[known + size_t(right)]) {
      ++right;
    }
    if (options.see) options.see(proposal, right);
    const int32_t accepted = std::min(right, count);
    known += size_t(accepted) + 1;
    const double step = seconds(count + 1);
    run.seconds += step;
    speculator.take({.checked = count, .accepted = accepted}, step, seconds(1), all.first(known));
  }
  run.plain_seconds = double(text.size() - prompt_count) * options.step_seconds;
  return run;
}

// No time passes while drafts are looked for.
inline SpeculatorOptions timeless(Calibrations* calibrations = nullptr) {
  return {.calibrations = calibrations, .clock = [] { return 0.0; }};
}

}  // namespace cairn::draft::test
