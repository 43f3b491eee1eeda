// What drafts are worth in a step.
#include "engine/schedule/draft_rows.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/check.h"
#include "draft/row_choice.h"
#include "base/trace/moving_average.h"

namespace cairn {

namespace {

constexpr double kWeight = 0.2;    // Of the newest step.
constexpr int64_t kStale = 256;    // Steps after which a number of rows is tried again.
constexpr double kRowCost = 0.04;  // Of a plain step, where a row's cost is not known: at least.

}  // namespace

size_t DecodeTime::size_of(int32_t sequences) {
  CHECK(sequences > 0);
  return std::min(size_t(std::bit_width(uint32_t(sequences)) - 1), kSequenceSizes - 1);
}

void DecodeTime::learn(int32_t sequences, int32_t rows, double seconds) {
  Table& table = tables_[size_of(sequences)];
  const int64_t now = ++table.step_count;
  Entry& entry = table.drafted[std::min(size_t(rows - sequences), kDraftedMax)];
  if (rows > sequences && now - entry.learned_at > kStale) entry.seconds = 0;
  follow(entry.seconds, seconds, kWeight);
  entry.learned_at = now;
}

double DecodeTime::seconds(int32_t sequences, int32_t rows, double row_seconds) const {
  const Table& table = tables_[size_of(sequences)];
  const double plain = table.drafted[0].seconds;
  const size_t wanted = size_t(rows - sequences);
  if (plain == 0 || wanted > kDraftedMax) return 0;
  // Costs rise in stairs, where kernels have room for some rows more, so that the last ones say
  // little of the next.
  const double least = row_seconds > 0 ? row_seconds : kRowCost * plain;
  double known = plain, slope = least;
  size_t known_rows = 0;
  for (size_t row = 1; row <= kDraftedMax; ++row) {
    const Entry& entry = table.drafted[row];
    if (entry.seconds == 0 || table.step_count - entry.learned_at > kStale) continue;
    const double next = std::max(entry.seconds, known);
    const double cost = (next - known) / double(row - known_rows);
    if (row == wanted) return next;
    // Between two that are known it may still be as cheap as they come: it is soon known, too.
    if (row > wanted) return known + std::min(cost, least) * double(wanted - known_rows);
    if (row_seconds == 0) slope = std::max(cost, least);
    known = next;
    known_rows = row;
  }
  return wanted <= 2 * known_rows + 2 ? known + slope * double(wanted - known_rows) : 0;
}

void DraftRows::begin(int32_t row_count_max) {
  row_count_max_ = row_count_max;
  draft_count_ = 0;
  answers_.clear();
  counts_.clear();
}

void DraftRows::add(DraftedAnswer* answer) {
  answers_.push_back(answer);
  counts_.push_back(0);
}

void DraftRows::choose(double row_seconds) {
  const int32_t sequences = int32_t(answers_.size());
  const auto is_drafted = [](const DraftedAnswer* answer) { return answer != nullptr; };
  if (std::none_of(answers_.begin(), answers_.end(), is_drafted)) return;
  // What drafts would be worth is not known before a step without any.
  if (!checks_all_ && time_.seconds(sequences, sequences, 0) == 0) return;
  reach_.clear();
  for (DraftedAnswer* answer : answers_) {
    const int32_t count_max = row_count_max_ - sequences;
    reach_.push_back(answer != nullptr ? answer->propose(count_max) : std::span<const float>());
  }
  const auto seconds = [&](int32_t rows) { return time_.seconds(sequences, rows, row_seconds); };
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
  const int32_t sequences = int32_t(answers_.size());
  if (sequences == 0) return;
  const bool tells = draft_count_ > 0 || replayed_rows == 0;
  if (tells) time_.learn(sequences, sequences + draft_count_, seconds);
  for (size_t i = 0; i < answers_.size(); ++i) {
    if (answers_[i] == nullptr) continue;
    const int32_t others = sequences + draft_count_ - counts_[i];
    answers_[i]->learn(seconds, time_.seconds(sequences, others, 0));
  }
}

}  // namespace cairn
