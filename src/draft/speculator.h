// The drafters of one sequence: asks them all, takes the draft that is worth most, and keeps count
// of what drafts gain and cost. What it decides depends on clocks; which tokens are generated does
// not depend on what it decides. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "draft/account.h"
#include "draft/asked_drafter.h"
#include "draft/calibration.h"
#include "draft/draft.h"

namespace cairn::draft {

// What drafts did for one answer.
struct Report {
  struct Source {
    std::string_view drafter;
    int32_t drafted = 0;          // Tokens whose rows were computed.
    int32_t accepted = 0;         // Those of them that the model chose too.
    std::string_view off_reason;  // Why it was not asked any more; empty: it was.
  };
  std::vector<Source> sources;  // In the order of their rank.
  int32_t steps = 0;            // That checked drafts.
  double saved_seconds = 0;     // Against one row a step, drafting included; negative: lost.
  std::string_view off_reason;  // Why nothing, or nothing more, was drafted; empty: it was.

  int32_t drafted() const;
  int32_t accepted() const;
};

struct SpeculatorOptions {
  // What sequences before this one have shown of the same drafters; outlives the speculator.
  Calibrations* calibrations = nullptr;
  // A drafter that takes longer is late, and its draft is dropped; 0: none ever is.
  double budget_seconds = 0;
  // What drafts cost is not counted, and ends none: for checks of what they do.
  bool is_free = false;
  // Seconds that only grow; empty: a steady clock.
  std::function<double()> clock;
};

class Speculator {
 public:
  // Drafters in the order of their rank: of equal drafts the first one's is taken.
  Speculator(std::vector<std::unique_ptr<Drafter>> drafters, int32_t vocabulary_count,
             SpeculatorOptions options = {});

  // The prompt took so long: what may be lost is a part of it too, since drafters read it. May be
  // left out.
  void add_prompt_seconds(double seconds) { account_.add_elapsed(seconds); }

  struct Proposal {
    std::span<const Token> tokens;
    std::span<const float> reach;  // Of each, how likely it and all before it are right. Descends.
  };
  // The draft that is worth most, no longer than its failure can be paid for; empty where there is
  // none, or where drafts are off: then they are only compared with what comes (shadow mode). Valid
  // until the next call.
  Proposal propose(const View& view);
  // Of the last proposal, once its rows are computed: what was checked and accepted. At most once,
  // and not needed where nothing was.
  void count(const Verdict& verdict);
  // Then, unless the step's time says nothing: how long it took, without propose(), and how long it
  // would have taken without this sequence's drafts (0: not known). `text`: what it is now, to
  // compare drafts that were not checked.
  void learn(double step_seconds, double plain_seconds, std::span<const Token> text);
  // Both.
  void take(const Verdict& verdict, double step_seconds, double plain_seconds,
            std::span<const Token> text) {
    count(verdict);
    learn(step_seconds, plain_seconds, text);
  }

  // Drafts have lost more than they may (1.5 % of the time, and 20 ms): they are only compared.
  bool is_off() const { return account_.is_off(); }
  const Report& report() const { return report_; }

 private:
  static constexpr size_t kNobody = SIZE_MAX;

  void ask_all(View view);
  static double expected_count(const AskedDrafter& drafter);
  // The drafter whose draft is worth most, and the reach of its tokens; kNobody: there is no draft.
  void choose();
  void fill_reach(size_t drafter, std::vector<float>& reach) const;
  size_t agreed_count(size_t drafter) const;
  void count_shadow();
  void refresh_report();
  std::string_view off_reason() const;

  std::vector<AskedDrafter> drafters_;
  int32_t vocabulary_count_;
  SpeculatorOptions options_;
  Account account_;
  Report report_;
  size_t chosen_ = kNobody;
  std::vector<float> reach_;
  std::vector<float> other_reach_;
  size_t proposed_count_ = 0;
  Verdict verdict_;         // Of them.
  bool has_draft_ = false;  // There ever was one.
};

}  // namespace cairn::draft
