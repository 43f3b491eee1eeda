// The best rows first, and of all numbers of rows the best one.
#include "draft/row_choice.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/check.h"

namespace cairn::draft {

namespace {

// Drafts have to gain something: what is known of chances and times is never exact.
constexpr double kGainLeast = 1.01;
// What a row of unknown cost is taken for, as a part of a step without drafts: two rows of a
// product that does not share its weights between rows. So many of them are tried at once.
constexpr double kUnknownRowCost = 0.5;
constexpr int32_t kUnknownRowsMax = 2;

// The next best row, and whose it is. Drafts whose reach is not above 0 end there.
struct Row {
  size_t sequence = 0;
  float reach = 0;
};

std::optional<Row> next_row(std::span<const std::span<const float>> reach,
                            std::span<const int32_t> counts) {
  std::optional<Row> best;
  for (size_t i = 0; i < reach.size(); ++i) {
    const size_t next = size_t(counts[i]);
    if (next >= reach[i].size()) continue;
    const float value = reach[i][next];
    if (value > (best ? best->reach : 0.0f)) best = Row{.sequence = i, .reach = value};
  }
  return best;
}

// Times that never fall, and end where too many of them are guesses.
class Times {
 public:
  Times(FunctionRef<double(int32_t)> seconds, int32_t rows)
      : seconds_(seconds), plain_(std::max(seconds(rows), 0.0)), last_(plain_) {}
  double plain() const { return plain_; }

  // Of a row more than at the last call; nothing: not known, nor guessed any more.
  std::optional<double> next(int32_t rows) {
    const double known = seconds_(rows);
    if (known > 0) {
      last_ = std::max(last_, known);
      return last_;
    }
    if (++unknown_count_ > kUnknownRowsMax) return std::nullopt;
    last_ += kUnknownRowCost * plain_;
    return last_;
  }

 private:
  FunctionRef<double(int32_t)> seconds_;
  double plain_;
  double last_;
  int32_t unknown_count_ = 0;
};

}  // namespace

void choose_counts(std::span<const std::span<const float>> reach, int32_t row_count_max,
                   FunctionRef<double(int32_t rows)> seconds, std::span<int32_t> counts) {
  CHECK(reach.size() == counts.size());
  std::fill(counts.begin(), counts.end(), 0);
  const int32_t plain_rows = int32_t(reach.size());
  Times times(seconds, plain_rows);
  // Without a step to compare with, nothing can be won knowingly.
  if (plain_rows == 0 || times.plain() == 0) return;

  double tokens = double(plain_rows);
  double best = kGainLeast * tokens / times.plain();
  int32_t best_rows = plain_rows;
  for (int32_t rows = plain_rows + 1; rows <= row_count_max; ++rows) {
    const std::optional<Row> row = next_row(reach, counts);
    if (!row) break;
    const std::optional<double> time = times.next(rows);
    if (!time) break;
    ++counts[row->sequence];
    tokens += double(row->reach);
    if (tokens / *time > best) {
      best = tokens / *time;
      best_rows = rows;
    }
  }
  // The same walk again, as far as it was worth it.
  std::fill(counts.begin(), counts.end(), 0);
  for (int32_t rows = plain_rows; rows < best_rows; ++rows) {
    ++counts[next_row(reach, counts)->sequence];
  }
}

}  // namespace cairn::draft
