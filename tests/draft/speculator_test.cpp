// One draft of several; and in simulated answers: nothing is lost to useless drafters, and little
// to the best number of rows that could have been chosen afterwards.
#include "draft/speculator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/draft/world.h"

namespace cairn::draft::speculator_test {
namespace {

using test::answer;
using test::Curve;
using test::guessing;
using test::kFlat;
using test::kSteep;
using test::kUsual;
using test::kVocabulary;
using test::only;
using test::Outcome;
using test::RunOptions;
using test::Scripted;
using test::Text;
using test::timeless;

using Drafters = std::vector<std::unique_ptr<Drafter>>;

std::unique_ptr<Drafter> proposing(std::string_view name, std::vector<int32_t> ids, float chance) {
  return std::make_unique<Scripted>(
      [ids = std::move(ids), chance](const View&, Draft& draft) {
        for (const int32_t id : ids) draft.add(Token(id), chance);
      },
      name);
}

std::vector<int32_t> ids_of(std::span<const Token> tokens) {
  std::vector<int32_t> ids;
  for (const Token token : tokens) ids.push_back(index_of(token));
  return ids;
}

std::vector<int32_t> proposed(Drafters drafters) {
  Speculator speculator(std::move(drafters), kVocabulary, timeless());
  const Text text(10, Token(1));
  return ids_of(speculator.propose({.text = text, .count_max = 4}).tokens);
}

TEST(Speculator, TakesTheDraftThatIsWorthMost) {
  using Ids = std::vector<int32_t>;
  const auto pair = [](std::unique_ptr<Drafter> a, std::unique_ptr<Drafter> b) {
    Drafters drafters;
    drafters.push_back(std::move(a));
    drafters.push_back(std::move(b));
    return drafters;
  };
  // 0.5 + 0.25 + 0.125 + 0.0625 against 0.9.
  EXPECT_EQ(proposed(pair(proposing("a", {1, 2, 3, 4}, .5f), proposing("b", {5}, .9f))),
            Ids({1, 2, 3, 4}));
  EXPECT_EQ(proposed(pair(proposing("a", {1, 2}, .5f), proposing("b", {5}, .9f))), Ids({5}));
  // The same chance: the first of them.
  EXPECT_EQ(proposed(pair(proposing("a", {1, 2}, .5f), proposing("b", {5, 6}, .5f))), Ids({1, 2}));
  // Where they agree, the surer one speaks for both: 0.9 + 0.45 against 0.9.
  EXPECT_EQ(proposed(pair(proposing("a", {5, 2}, .5f), proposing("b", {5}, .9f))), Ids({5, 2}));
  EXPECT_EQ(proposed(pair(proposing("a", {}, .5f), proposing("b", {}, .9f))), Ids());
  EXPECT_EQ(proposed({}), Ids());
}

TEST(Speculator, TellsDraftersWhatBecameOfTheirDrafts) {
  auto chosen = std::make_unique<Scripted>(
      [](const View&, Draft& draft) {
        for (const int32_t id : {1, 2, 3}) draft.add(Token(id), .9f);
      },
      "chosen");
  auto agreeing = std::make_unique<Scripted>(
      [](const View&, Draft& draft) {
        for (const int32_t id : {1, 5}) draft.add(Token(id), .5f);
      },
      "agreeing");
  Scripted* const first = chosen.get();
  Scripted* const second = agreeing.get();
  Drafters drafters;
  drafters.push_back(std::move(chosen));
  drafters.push_back(std::move(agreeing));
  Speculator speculator(std::move(drafters), kVocabulary, timeless());
  Text text(10, Token(1));
  const Speculator::Proposal proposal = speculator.propose({.text = text, .count_max = 4});
  ASSERT_EQ(proposal.tokens.size(), 3u);
  EXPECT_GE(proposal.reach[0], proposal.reach[1]);
  for (const int32_t id : {1, 2, 7}) text.push_back(Token(id));
  speculator.take({.checked = 3, .accepted = 2}, .014, .01, text);
  ASSERT_EQ(first->verdicts.size(), 1u);
  EXPECT_EQ(first->verdicts[0].checked, 3);
  EXPECT_EQ(first->verdicts[0].accepted, 2);
  ASSERT_EQ(second->verdicts.size(), 1u);
  EXPECT_EQ(second->verdicts[0].checked, 1);
  EXPECT_EQ(second->verdicts[0].accepted, 1);
  const Report& report = speculator.report();
  EXPECT_EQ(report.drafted(), 3);
  EXPECT_EQ(report.accepted(), 2);
  EXPECT_EQ(report.sources[0].drafter, "chosen");
  EXPECT_EQ(report.sources[1].drafted, 0);
  EXPECT_EQ(report.steps, 1);
  EXPECT_NEAR(report.saved_seconds, .016, 1e-9);
  EXPECT_EQ(report.off_reason, "");
  // What was not checked is nobody's success.
  speculator.propose({.text = text, .count_max = 4});
  text.push_back(Token(1));
  speculator.take({}, .01, .01, text);
  EXPECT_EQ(first->verdicts.size(), 1u);
  EXPECT_EQ(speculator.report().drafted(), 3);
}

// A drafter that computes: reads the text in so many calls, and gives up after as many more.
class Computing : public Scripted {
 public:
  Computing(int32_t reads, int32_t until, double* now)
      : Scripted(
            [this](const View& view, Draft& draft) {
              *now_ += 1;
              step_seconds = view.step_seconds;
              if (!is_reading() && off_reason().empty()) draft.add(Token(3), .5f);
            },
            "computing"),
        reads_(reads),
        until_(until),
        now_(now) {}
  bool is_costly() const override { return true; }
  bool is_reading() const override { return asked <= reads_; }
  std::string_view off_reason() const override {
    return asked >= until_ ? "enough" : std::string_view();
  }

  double step_seconds = -1;

 private:
  int32_t reads_, until_;
  double* now_;
};

TEST(Speculator, AsksWhoComputesWhereNobodyElseKnows) {
  double now = 0;
  std::vector<int32_t> known = {1, 1, 1, 1};
  auto cheap = std::make_unique<Scripted>([&known](const View&, Draft& draft) {
    for (const int32_t id : known) draft.add(Token(id), .98f);
  });
  auto costly = std::make_unique<Computing>(0, 100, &now);
  Computing* const asked = costly.get();
  Drafters drafters;
  drafters.push_back(std::move(cheap));
  drafters.push_back(std::move(costly));
  Speculator speculator(std::move(drafters), kVocabulary, {.clock = [&now] { return now; }});
  Text text(10, Token(1));
  EXPECT_EQ(speculator.propose({.text = text, .count_max = 4}).tokens.size(), 4u);
  EXPECT_EQ(asked->asked, 0);
  speculator.take({}, 200, 200, text);
  known = {1, 1};
  speculator.propose({.text = text, .count_max = 4});
  EXPECT_EQ(asked->asked, 1);
  EXPECT_EQ(asked->step_seconds, 200);
}

// Its time is told, and is no reason to end drafts.
TEST(Speculator, ReadingIsNoDrafting) {
  double now = 0;
  Drafters drafters;
  drafters.push_back(std::make_unique<Computing>(5, 7, &now));
  Speculator speculator(std::move(drafters), kVocabulary,
                        {.budget_seconds = .5, .clock = [&now] { return now; }});
  Text text(10, Token(1));
  for (int32_t call = 0; call < 5; ++call) {
    EXPECT_EQ(speculator.propose({.text = text, .count_max = 4}).tokens.size(), 0u);
    speculator.take({}, 1, 1, text);
    EXPECT_FALSE(speculator.is_off());
  }
  EXPECT_DOUBLE_EQ(speculator.report().saved_seconds, -5);
  // From now on it is late.
  EXPECT_EQ(speculator.propose({.text = text, .count_max = 4}).tokens.size(), 0u);
  speculator.take({}, 1, 1, text);
  EXPECT_EQ(speculator.report().off_reason, "drafts lost more time than they may");
}

TEST(Speculator, TellsWhyADrafterGaveUp) {
  double now = 0;
  Drafters drafters;
  drafters.push_back(std::make_unique<Computing>(0, 1, &now));
  Speculator speculator(std::move(drafters), kVocabulary, timeless());
  const Text text(10, Token(1));
  EXPECT_EQ(speculator.propose({.text = text, .count_max = 4}).tokens.size(), 0u);
  speculator.take({}, 1, 1, text);
  EXPECT_EQ(speculator.report().off_reason, "enough");
  EXPECT_EQ(speculator.report().sources[0].off_reason, "enough");
}

TEST(Speculator, SaysWhyNothingWasDrafted) {
  const Text text = test::random_text(300, 1);
  const auto reason_after = [&](Drafters drafters, double step_seconds, double budget = 0) {
    double now = 0;
    Speculator speculator(std::move(drafters), kVocabulary,
                          {.budget_seconds = budget, .clock = [&now] { return now += 1e-5; }});
    answer(speculator, text, 10, {.curve = kSteep, .step_seconds = step_seconds});
    return std::string(speculator.report().off_reason);
  };
  const auto nothing = [](const View&, Draft&) {};
  const auto invalid = [](const View&, Draft& draft) { draft.add(Token(-1), .5f); };
  const auto poor = guessing(
      text, [](size_t) { return .3; }, 3, .3f);
  EXPECT_EQ(reason_after({}, .02), "there is no drafter");
  EXPECT_EQ(reason_after(only(nothing), .02), "nothing in the text was a draft");
  EXPECT_EQ(reason_after(only(invalid), .02), "its drafts were not valid");
  EXPECT_EQ(reason_after(only(nothing), .02, 1e-6), "its drafts came too late");
  EXPECT_EQ(reason_after(only(poor), .02), "no draft was worth its time");
  // Ten microseconds of looking in a step of twenty.
  const Text longer = test::random_text(5000, 1);
  double now = 0;
  Speculator speculator(only(nothing), kVocabulary, {.clock = [&now] { return now += 1e-5; }});
  answer(speculator, longer, 10, {.step_seconds = 2e-5});
  EXPECT_EQ(speculator.report().off_reason, "drafts lost more time than they may");
}

TEST(Speculator, IsSilentWhereThereIsNoRoom) {
  auto drafters = only([](const View&, Draft& draft) { draft.add(Token(1), .9f); });
  auto* const drafter = static_cast<Scripted*>(drafters[0].get());
  Speculator speculator(std::move(drafters), kVocabulary, timeless());
  const Text text(10, Token(1));
  EXPECT_TRUE(speculator.propose({.text = text, .count_max = 0}).tokens.empty());
  EXPECT_EQ(drafter->asked, 0);
  speculator.take({}, .01, .01, text);
}

// Drafters that are worth nothing, or break every rule there is.
struct Adversary {
  const char* name;
  std::function<Scripted::Propose(const Text&)> make;
};

void lie(const View& view, Draft& draft, int32_t id, float chance = 1) {
  for (int32_t i = 0; i < view.count_max; ++i) draft.add(Token(id), chance);
}

std::vector<Adversary> adversaries() {
  return {
      {"always wrong, modest",
       [](const Text& text) {
         return guessing(
             text, [](size_t) { return 0.0; }, 16, .5f);
       }},
      {"always wrong, boasting",
       [](const Text& text) {
         return guessing(
             text, [](size_t) { return 0.0; }, 16, 1);
       }},
      {"random",
       [](const Text&) {
         return [random = RandomStream(3, 0, 0)](const View& view, Draft& draft) mutable {
           for (int32_t i = 0; i < view.count_max; ++i) {
             draft.add(Token(int32_t(random.below(kVocabulary))), random.unit());
           }
         };
       }},
      {"right in one of four, boasting",
       [](const Text& text) {
         return guessing(
             text, [](size_t) { return .25; }, 16, 1);
       }},
      {"alternating",
       [](const Text& text) {
         return guessing(
             text, [](size_t at) { return at / 16 % 2 == 0 ? 1.0 : 0.0; }, 16, .9f);
       }},
      {"right until it is trusted",
       [](const Text& text) {
         return guessing(
             text, [](size_t at) { return at < 60 ? 1.0 : 0.0; }, 16, 1);
       }},
      {"the same token for ever",
       [](const Text&) { return [](const View& view, Draft& draft) { lie(view, draft, 1); }; }},
      {"chances that are no numbers",
       [](const Text&) {
         return [](const View& view, Draft& draft) {
           lie(view, draft, 1, std::numeric_limits<float>::quiet_NaN());
         };
       }},
      {"ids beyond the vocabulary",
       [](const Text&) {
         return [](const View& view, Draft& draft) { lie(view, draft, kVocabulary); };
       }},
      {"a million tokens",
       [](const Text&) {
         return [](const View&, Draft& draft) {
           for (int i = 0; i < 1000000; ++i) draft.add(Token(2), 1);
         };
       }},
      {"other answers to the same question",
       [](const Text& text) {
         return [&text, call = 0](const View& view, Draft& draft) mutable {
           ++call;
           for (size_t i = 0; i < size_t(view.count_max); ++i) {
             const size_t at = view.text.size() + i;
             if (at >= text.size()) return;
             draft.add(call % 3 == 0 ? text[at] : Token(call % kVocabulary), .99f);
           }
         };
       }},
  };
}

TEST(Speculator, UselessDraftersCostNextToNothing) {
  const Text text = test::random_text(10 + 256, 11);
  for (const Adversary& adversary : adversaries()) {
    for (const Curve& curve : {kUsual, kFlat, kSteep}) {
      for (const double step_seconds : {.001, .02, .1}) {
        Speculator speculator(only(adversary.make(text)), kVocabulary, timeless());
        const Outcome run =
            answer(speculator, text, 10, {.curve = curve, .step_seconds = step_seconds});
        const double lost = run.seconds - run.plain_seconds;
        EXPECT_GE(run.speed(), 0.98) << adversary.name << ", steps of 16: " << curve.at[4]
                                     << ", of " << step_seconds << " s";
        EXPECT_LE(lost, 0.02 + 0.02 * run.plain_seconds) << adversary.name;
        EXPECT_NEAR(speculator.report().saved_seconds, -lost, 1e-6) << adversary.name;
      }
    }
  }
}

// The fixed number of rows that was best, afterwards: each step drafts so many tokens as it says.
double best_fixed_seconds(const Text& text, size_t prompt_count, const RunOptions& options,
                          const std::function<Scripted::Propose()>& make) {
  double best = std::numeric_limits<double>::infinity();
  for (const int32_t count : {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16}) {
    Scripted::Propose propose = make();
    const std::span<const Token> all(text);
    double seconds = 0;
    size_t known = prompt_count;
    Draft draft;
    while (known < text.size()) {
      const int32_t room = std::min(count, int32_t(text.size() - known) - 1);
      draft.clear();
      propose({.text = all.first(known), .count_max = 16}, draft);
      const size_t rows = std::min(size_t(std::max(room, 0)), draft.tokens.size());
      size_t right = 0;
      while (right < rows && draft.tokens[right] == text[known + right]) ++right;
      known += right + 1;
      seconds += options.curve(int32_t(rows) + 1) * options.step_seconds;
    }
    best = std::min(best, seconds);
  }
  return best;
}

// How often a drafter is right, by the place in the text.
struct Trace {
  const char* name;
  std::function<double(size_t)> chance;
};

std::vector<Trace> traces() {
  std::vector<Trace> traces;
  static constexpr std::array<std::pair<const char*, double>, 7> kRates = {
      {{"0", 0}, {".1", .1}, {".3", .3}, {".5", .5}, {".7", .7}, {".9", .9}, {".97", .97}}};
  for (const auto& [name, rate] : kRates) {
    traces.push_back({name, [rate = rate](size_t) { return rate; }});
  }
  traces.push_back({"good, then useless", [](size_t at) { return at < 1000 ? .9 : 0.0; }});
  traces.push_back({"useless, then good", [](size_t at) { return at < 1000 ? 0.0 : .9; }});
  traces.push_back({"in turns of 200", [](size_t at) { return at / 200 % 2 == 0 ? .95 : .05; }});
  traces.push_back({"in turns of 50", [](size_t at) { return at / 50 % 2 == 0 ? .95 : .3; }});
  return traces;
}

constexpr uint64_t kSeeds = 8;

TEST(Speculator, IsNearlyAsGoodAsTheBestFixedNumberOfRows) {
  for (const Trace& trace : traces()) {
    for (const Curve& curve : {kUsual, kFlat, kSteep}) {
      double seconds = 0, best = 0, plain = 0;
      for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Text text = test::random_text(10 + 2000, seed);
        const auto make = [&] { return guessing(text, trace.chance, 16, .6f, seed); };
        Speculator speculator(only(make()), kVocabulary, timeless());
        const Outcome outcome = answer(speculator, text, 10, {.curve = curve});
        seconds += outcome.seconds;
        plain += outcome.plain_seconds;
        best += best_fixed_seconds(text, 10, {.curve = curve}, make);
      }
      EXPECT_LE(seconds / best, 1.05)
          << trace.name << ", steps of 16: " << curve.at[4] << "; without drafts " << plain / best;
    }
  }
}

TEST(Speculator, ReachIsHowOftenTokensAreRight) {
  for (const Trace& trace : traces()) {
    // What was said and what was, in ten classes of what was said; by drafters that claim the same
    // of all tokens, after one answer from which the others begin.
    std::array<double, 10> said{}, was{};
    double all = 0;
    Calibrations calibrations;
    for (uint64_t seed = 0; seed <= kSeeds; ++seed) {
      const auto see = [&](const Speculator::Proposal& proposal, int32_t right) {
        if (seed == 0) return;
        for (size_t i = 0; i < proposal.reach.size(); ++i) {
          const auto part = std::min(size_t(proposal.reach[i] * 10), size_t(9));
          said[part] += double(proposal.reach[i]);
          was[part] += int32_t(i) < right ? 1 : 0;
          ++all;
        }
      };
      const Text text = test::random_text(10 + 2000, seed);
      Speculator speculator(only(guessing(text, trace.chance, 16, .6f, seed)), kVocabulary,
                            timeless(&calibrations));
      answer(speculator, text, 10, {.see = see});
    }
    double error = 0;
    for (size_t part = 0; part < 10; ++part) error += std::abs(said[part] - was[part]) / all;
    EXPECT_LE(error, 0.05) << trace.name;
  }
}

TEST(Speculator, SharesWhatItHasLearned) {
  const Text text = test::random_text(10 + 64, 19);
  Calibrations calibrations;
  const auto boasting = [&] {
    return only(guessing(
        text, [](size_t) { return 0.0; }, 8, 1));
  };
  Speculator first(boasting(), kVocabulary, timeless(&calibrations));
  answer(first, text, 10, {});
  Speculator second(boasting(), kVocabulary, timeless(&calibrations));
  answer(second, text, 10, {});
  EXPECT_GT(first.report().drafted(), 2);
  EXPECT_LE(second.report().drafted(), first.report().drafted() / 2);
}

TEST(Speculator, DraftsThatAreOffAreStillComparedAndReturn) {
  // Wrong and boasting for 600 tokens, right after that. Checks cost what the curve does not say:
  // so the account ends them, not the choice of rows.
  const Text text = test::random_text(10 + 3000, 23);
  Speculator speculator(only(guessing(
                            text, [](size_t at) { return at < 610 ? .5 : 1.0; }, 1, .5f)),
                        kVocabulary, timeless());
  const std::span<const Token> all(text);
  bool was_off = false;
  size_t known = 10;
  int32_t accepted_after = 0;
  while (known + 1 < text.size()) {
    const auto proposal = speculator.propose({.text = all.first(known), .count_max = 1});
    const int32_t checked = int32_t(proposal.tokens.size());
    const bool is_right = checked > 0 && proposal.tokens[0] == text[known];
    known += is_right ? 2 : 1;
    if (speculator.is_off()) was_off = true;
    if (was_off && is_right) ++accepted_after;
    speculator.take({.checked = checked, .accepted = is_right ? 1 : 0}, checked > 0 ? .016 : .01,
                    .01, all.first(known));
  }
  EXPECT_TRUE(was_off);
  EXPECT_FALSE(speculator.is_off());
  EXPECT_GT(accepted_after, 900);
  EXPECT_GT(speculator.report().saved_seconds, 0);
}

}  // namespace
}  // namespace cairn::draft::speculator_test
