// What drafts are worth in a step.
#include "engine/schedule/draft_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/check.h"
#include "draft/row_choice.h"

namespace cairn {

namespace {

constexpr uint64_t kShortText = 2048;  // Positions: attending to fewer is a small part of a step.
constexpr int64_t kStale = 256;        // Steps after which a number of rows is tried again.
// A step that takes longer or shorter than its like did changes what steps of other numbers of rows
// are expected to take.
constexpr double kSurpriseMost = 0.2;  // Of the lesser time; what goes beyond that says nothing.
constexpr double kFollow = 0.15;       // Of the surprise: the part by which the others follow.
// How much of it each drafted row is thought to cause, beside what the step as a whole does.
constexpr double kOfRows = 0.25;
// Of a plain step: what rows are taken for on average at least, as their arithmetic hides behind
// the reading of weights; and what one is at most, while only a step or two told of it.
constexpr double kRowCost = 0.04;
constexpr double kRowCostMost = 0.25;
// Of what rows cost on average: what the first one above a known number of them may.
constexpr double kNextRow = 0.75;
// A step that took longer than so many of its like was held up by the machine, as it would have
// been without drafts: they are not charged for that.
constexpr double kHeldUp = 1.5;

}  // namespace

size_t DecodeTime::table_of(const DecodeLoad& load) {
  CHECK(load.sequences > 0);
  const uint64_t length = uint64_t(load.positions) / uint64_t(load.sequences);
  const size_t size = size_t(std::bit_width(uint32_t(load.sequences)) - 1);
  const size_t class_of_length = size_t(std::bit_width(length / kShortText));
  return std::min(size, kSequenceSizes - 1) * kLengths + std::min(class_of_length, kLengths - 1);
}

const DecodeTime::Table* DecodeTime::known_table(const DecodeLoad& load) const {
  const size_t own = table_of(load), first = own / kLengths * kLengths;
  for (size_t table = own + 1; table-- > first;) {
    if (tables_[table] != nullptr) return tables_[table].get();
  }
  return nullptr;
}

std::array<double, DecodeTime::Entry::kLast> DecodeTime::Entry::sorted() const {
  std::array<double, kLast> all = last;
  std::sort(all.begin(), all.begin() + std::ptrdiff_t(std::min(count, kLast)));
  return all;
}

double DecodeTime::Entry::seconds() const {
  return count == 0 ? 0 : sorted()[is_sure() ? 1 : 0];
}

double DecodeTime::Entry::median() const {
  const size_t known = std::min(count, kLast);
  const std::array<double, kLast> all = sorted();
  return (all[(known - 1) / 2] + all[known / 2]) / 2;
}

double DecodeTime::Entry::seconds(double plain_now) const {
  const double then = seconds();
  return then < plain ? then : std::min(then, plain_now + (then - plain));
}

void DecodeTime::learn(const DecodeLoad& load, int32_t rows, double seconds) {
  std::unique_ptr<Table>& table = tables_[table_of(load)];
  if (table == nullptr) {
    const Table* const shorter = known_table(load);
    table = shorter != nullptr ? std::make_unique<Table>(*shorter) : std::make_unique<Table>();
  }
  table->learn(std::min(size_t(rows - load.sequences), kDraftedMax), seconds);
}

// A step of normalized least mean squares on what a step takes more than it did: so much for all
// numbers of rows, and so much for each drafted row, up to some four times as many. None moves by a
// larger part of its own time than is believed of a surprise at most.
void DecodeTime::Table::follow(size_t drafts, double expected, double seconds) {
  const double most = kSurpriseMost * std::min(expected, seconds);
  const double surprise = std::clamp(seconds - expected, -most, most);
  const double part = kFollow * surprise / (1 + kOfRows * double(drafts * drafts));
  const auto move = [](double& time, double by) {
    const double far = kFollow * kSurpriseMost * time;
    time += std::clamp(by, -far, far);
  };
  for (size_t row = 0; row < drafted.size(); ++row) {
    if (drafted[row].count == 0) continue;
    const size_t told = std::min(row, 4 * drafts + 2);
    const double by = part * (1 + kOfRows * double(drafts * told));
    for (double& last : drafted[row].last) move(last, by);
    move(drafted[row].plain, part);
  }
}

void DecodeTime::Table::learn(size_t drafts, double seconds) {
  const int64_t now = ++step_count;
  const auto is_stale = [&](size_t row) {
    return row > 0 && now - drafted[row].learned_at > kStale;
  };
  Entry& entry = drafted[drafts];
  if (entry.count > 0) follow(drafts, entry.median(), seconds);
  // After a while the first step counts twice: it is enough to show that rows are cheaper now.
  if (is_stale(drafts) && entry.is_sure()) entry.last[entry.count++ % Entry::kLast] = seconds;
  entry.last[entry.count++ % Entry::kLast] = seconds;
  entry.learned_at = now;
  const double plain = drafted[0].seconds();
  entry.plain = plain;
  // The least that a step of as many rows, or of more, has taken: the machine may hold a step up,
  // but lets none go faster than it can.
  known = {};
  double of_more = std::numeric_limits<double>::infinity();
  for (size_t row = drafted.size(); row-- > 0;) {
    if (drafted[row].count == 0 || is_stale(row)) continue;
    known[row] = of_more = std::min(of_more, drafted[row].seconds(plain));
  }
  size_t last = 0;
  for (size_t row = 1; row < known.size(); ++row) {
    if (known[row] == 0) continue;
    if (!drafted[row].is_sure()) {
      const double most = known[last] + kRowCostMost * known[0] * double(row - last);
      known[row] = std::min(known[row], most);
    }
    last = row;
  }
}

double DecodeTime::seconds(const DecodeLoad& load, int32_t rows) const {
  const Table* const table = known_table(load);
  const size_t wanted = size_t(rows - load.sequences);
  if (table == nullptr || table->drafted[0].count == 0 || wanted > kDraftedMax) return 0;
  const std::array<double, kDraftedMax + 1>& known = table->known;
  // Costs rise in stairs, where kernels have room for some rows more, so that the last ones say
  // little of the next; but rows become dearer, never cheaper.
  size_t last = 0;
  const auto average = [&] {
    const double cost = last > 0 ? (known[last] - known[0]) / double(last) : 0;
    return std::max(cost, kRowCost * known[0]);
  };
  for (size_t row = 1; row <= kDraftedMax && last < wanted; ++row) {
    if (known[row] == 0) continue;
    if (row > wanted) {
      const double cost = (known[row] - known[last]) / double(row - last);
      // The first one may be cheaper: it is soon known, too.
      if (wanted == last + 1) return known[last] + std::min(cost, kNextRow * average());
      return known[last] + cost * double(wanted - last);
    }
    last = row;
  }
  if (wanted > 2 * last + 2) return 0;
  return known[last] + average() * double(wanted - last);
}

void DraftRows::begin(int32_t row_count_max) {
  row_count_max_ = row_count_max;
  load_ = {};
  draft_count_ = 0;
  answers_.clear();
  counts_.clear();
}

void DraftRows::add(DraftedAnswer* answer, int32_t length) {
  ++load_.sequences;
  load_.positions += length;
  answers_.push_back(answer);
  counts_.push_back(0);
}

void DraftRows::choose() {
  const int32_t sequences = load_.sequences;
  const auto is_drafted = [](const DraftedAnswer* answer) { return answer != nullptr; };
  if (std::none_of(answers_.begin(), answers_.end(), is_drafted)) return;
  // What drafts would be worth is not known before a step without any.
  if (!checks_all_ && time_.seconds(load_, sequences) == 0) return;
  reach_.clear();
  for (DraftedAnswer* answer : answers_) {
    const int32_t count_max = row_count_max_ - sequences;
    reach_.push_back(answer != nullptr ? answer->propose(count_max) : std::span<const float>());
  }
  const auto seconds = [&](int32_t rows) { return time_.seconds(load_, rows); };
  if (checks_all_) {
    take_all(row_count_max_ - sequences);
  } else {
    draft::choose_counts(reach_, row_count_max_, seconds, counts_);
  }
  for (size_t i = 0; i < answers_.size(); ++i) {
    if (answers_[i] == nullptr) continue;
    answers_[i]->check(counts_[i]);
    draft_count_ += counts_[i];
  }
}

void DraftRows::take_all(int32_t row_count) {
  for (size_t i = 0; i < counts_.size(); ++i) {
    counts_[i] = std::min(int32_t(reach_[i].size()), row_count);
    row_count -= counts_[i];
  }
}

// What drafts have left to be replayed makes the steps behind them slower, not those without
// drafts.
void DraftRows::learn(double seconds, int32_t replayed_rows) {
  if (answers_.empty()) return;
  const int32_t rows = load_.sequences + draft_count_;
  const bool tells = draft_count_ > 0 || replayed_rows == 0;
  if (tells) time_.learn(load_, rows, seconds);
  const double usual = time_.seconds(load_, rows);
  const double charged = usual > 0 ? std::min(seconds, kHeldUp * usual) : seconds;
  for (size_t i = 0; i < answers_.size(); ++i) {
    if (answers_[i] == nullptr) continue;
    answers_[i]->learn(charged, time_.seconds(load_, rows - counts_[i]));
  }
}

}  // namespace cairn
