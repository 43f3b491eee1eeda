// One draft of several, and the report.
#include "draft/speculator.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace cairn::draft {

namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Who drafts by computing hardly finds more than so many.
constexpr double kEnough = 3;

// While drafts are off, so many tokens of one are compared before the next one is looked at.
constexpr int32_t kWatchedMost = 8;

size_t common_count(std::span<const Token> a, std::span<const Token> b) {
  return size_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

int32_t Report::drafted() const {
  int32_t count = 0;
  for (const Source& source : sources) count += source.drafted;
  return count;
}

int32_t Report::accepted() const {
  int32_t count = 0;
  for (const Source& source : sources) count += source.accepted;
  return count;
}

Speculator::Speculator(std::vector<std::unique_ptr<Drafter>> drafters, int32_t vocabulary_count,
                       SpeculatorOptions options)
    : vocabulary_count_(vocabulary_count), options_(std::move(options)) {
  if (!options_.clock) options_.clock = steady_seconds;
  for (auto& drafter : drafters) {
    const std::string_view name = drafter->name();
    Calibration* shared =
        options_.calibrations != nullptr ? &options_.calibrations->of(name) : nullptr;
    drafters_.emplace_back(std::move(drafter), shared);
    report_.sources.push_back({.drafter = name});
  }
  refresh_report();
}

Speculator::Proposal Speculator::propose(const View& view) {
  for (AskedDrafter& drafter : drafters_) drafter.follow(view.text);
  count_shadow();
  chosen_ = kNobody;
  proposed_count_ = 0;
  verdict_ = {};
  if (view.count_max <= 0 || (!options_.is_free && !account_.may_look())) {
    for (AskedDrafter& drafter : drafters_) drafter.skip();
    return {};
  }
  ask_all(view);
  choose();
  if (chosen_ == kNobody) return {};
  has_draft_ = true;
  if (!options_.is_free && account_.is_off()) {
    const int32_t count = std::min(account_.worth(reach_), kWatchedMost);
    if (count > 0) drafters_[chosen_].watch(count);
    return {};
  }
  proposed_count_ = reach_.size();
  if (!options_.is_free) {
    proposed_count_ = std::min(proposed_count_, size_t(account_.count_max()));
  }
  return {.tokens = drafters_[chosen_].tokens().first(proposed_count_),
          .reach = std::span(reach_).first(proposed_count_)};
}

void Speculator::ask_all(View view) {
  view.step_seconds = account_.plain_seconds();
  double begin = options_.clock();
  bool is_enough = false;
  for (AskedDrafter& drafter : drafters_) {
    if (!drafter.off_reason().empty() || (is_enough && drafter.is_costly())) {
      drafter.skip();
      continue;
    }
    drafter.ask(view, vocabulary_count_);
    const double end = options_.clock();
    if (drafter.is_reading()) {
      account_.add_reading(end - begin);
    } else {
      account_.add_drafting(end - begin);
      if (options_.budget_seconds > 0 && end - begin > options_.budget_seconds) drafter.drop_late();
    }
    begin = end;
    is_enough = is_enough || expected_count(drafter) >= kEnough;
  }
}

// Of its tokens, how many will be right.
double Speculator::expected_count(const AskedDrafter& drafter) {
  double reach = 1, count = 0;
  for (size_t i = 0; i < drafter.tokens().size() && count < kEnough; ++i) {
    reach *= double(drafter.chance(int32_t(i)));
    count += reach;
  }
  return count;
}

void Speculator::choose() {
  double best = 0;
  for (size_t drafter = 0; drafter < drafters_.size(); ++drafter) {
    fill_reach(drafter, other_reach_);
    const double worth = std::accumulate(other_reach_.begin(), other_reach_.end(), 0.0);
    if (worth <= best) continue;
    best = worth;
    chosen_ = drafter;
    std::swap(reach_, other_reach_);
  }
}

// A token on which drafters agree is as likely as the best of them makes it.
void Speculator::fill_reach(size_t drafter, std::vector<float>& reach) const {
  const std::span<const Token> tokens = drafters_[drafter].tokens();
  reach.clear();
  for (size_t i = 0; i < tokens.size(); ++i) reach.push_back(drafters_[drafter].chance(int32_t(i)));
  for (size_t other = 0; other < drafters_.size(); ++other) {
    if (other == drafter) continue;
    const size_t agreed = common_count(tokens, drafters_[other].tokens());
    for (size_t i = 0; i < agreed; ++i) {
      reach[i] = std::max(reach[i], drafters_[other].chance(int32_t(i)));
    }
  }
  for (size_t i = 1; i < reach.size(); ++i) reach[i] *= reach[i - 1];
}

void Speculator::count(const Verdict& verdict) {
  CHECK(0 <= verdict.accepted && verdict.accepted <= verdict.checked);
  CHECK(size_t(verdict.checked) <= std::exchange(proposed_count_, 0));
  verdict_ = verdict;
  if (verdict.checked == 0) return;
  Report::Source& source = report_.sources[chosen_];
  source.drafted += verdict.checked;
  source.accepted += verdict.accepted;
  ++report_.steps;
  for (size_t drafter = 0; drafter < drafters_.size(); ++drafter) {
    // Of another one's draft that much was checked as it has in common with the chosen one.
    const int32_t checked = std::min(verdict.checked, int32_t(agreed_count(drafter)));
    if (checked == 0) continue;
    drafters_[drafter].take({.checked = checked, .accepted = std::min(checked, verdict.accepted)});
  }
  refresh_report();
}

void Speculator::learn(double step_seconds, double plain_seconds, std::span<const Token> text) {
  const Verdict verdict = std::exchange(verdict_, {});
  for (AskedDrafter& drafter : drafters_) drafter.follow(text);
  count_shadow();
  account_.add_step({.checked = verdict.checked,
                     .accepted = verdict.accepted,
                     .seconds = step_seconds,
                     .plain_seconds = plain_seconds});
  refresh_report();
}

size_t Speculator::agreed_count(size_t drafter) const {
  return common_count(drafters_[chosen_].tokens(), drafters_[drafter].tokens());
}

void Speculator::count_shadow() {
  for (AskedDrafter& drafter : drafters_) {
    const AskedDrafter::Watched watched = drafter.take_watched();
    if (watched.right >= 0) account_.add_shadow(watched.count, watched.right);
  }
}

std::string_view Speculator::off_reason() const {
  const auto is_out = [](const AskedDrafter& drafter) { return !drafter.off_reason().empty(); };
  if (drafters_.empty()) return "there is no drafter";
  if (std::all_of(drafters_.begin(), drafters_.end(), is_out)) return drafters_[0].off_reason();
  if (account_.is_off()) return "drafts lost more time than they may";
  if (report_.steps > 0) return {};
  return has_draft_ ? "no draft was worth its time" : "nothing in the text was a draft";
}

void Speculator::refresh_report() {
  report_.saved_seconds = account_.saved_seconds();
  report_.off_reason = off_reason();
  for (size_t i = 0; i < drafters_.size(); ++i) {
    report_.sources[i].off_reason = drafters_[i].off_reason();
  }
}

}  // namespace cairn::draft
