// Chunks through the engine's steps, rows of logits into sums.
#include "measure/perplexity.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "memory/memory.h"
#include "sample/candidates.h"

namespace cairn::measure {

namespace {

constexpr int32_t kRowsMax = 512;    // Of a step.
constexpr int32_t kOutputsMax = 64;  // Rows of logits at once: they are as wide as the vocabulary.
constexpr double kLogFloor = -16;    // Base probabilities below e^-16 are not told apart.

// What each token that counts gave.
struct Sums {
  std::vector<double> surprise, base_surprise, divergence, same_top, probability_change;
};

struct Row {
  std::span<const float> logits;
  Token next;
};

// log(sum of e^logit)
double log_total(std::span<const float> logits) {
  sample::Candidates all;
  all.reset(logits);
  return double(all.max_logit()) + std::log(all.exp_sums().total);
}

void compare(const Row& row, double total, const SavedRow& base, Sums& sums) {
  double divergence = 0;
  size_t base_top = 0;
  for (size_t i = 0; i < row.logits.size(); ++i) {
    if (base.codes[i] > base.codes[base_top]) base_top = i;
    const double log_base = double(base.log_probability(i));
    if (log_base <= kLogFloor) continue;
    divergence += std::exp(log_base) * (log_base - (double(row.logits[i]) - total));
  }
  const size_t next = size_t(index_of(row.next));
  const double log_probability = double(row.logits[next]) - total;
  const double log_base = double(base.log_probability(next));
  sums.base_surprise.push_back(-log_base);
  sums.divergence.push_back(divergence);
  sums.same_top.push_back(sample::likeliest(row.logits) == Token(base_top) ? 1 : 0);
  sums.probability_change.push_back(std::exp(log_probability) - std::exp(log_base));
}

// Where rows of logits go.
class Judge {
 public:
  Judge(const SavedLogits* base, LogitsWriter* writer) : base_(base), writer_(writer) {}

  Status add(const Row& row) {
    const double total = log_total(row.logits);
    sums.surprise.push_back(total - double(row.logits[size_t(index_of(row.next))]));
    if (!std::isfinite(sums.surprise.back())) {
      return fail(ErrorCode::invalid_data, "the model's output: expected numbers, found {}",
                  sums.surprise.back());
    }
    if (base_ != nullptr) {
      CAIRN_TRY(check_base(base_->row(row_index_)));
      compare(row, total, base_->row(row_index_), sums);
      if (!std::isfinite(sums.divergence.back())) {
        return fail(ErrorCode::invalid_data,
                    "the model's output: row {}: expected logits near those to compare with, found "
                    "a divergence of {}",
                    row_index_, sums.divergence.back());
      }
    }
    if (writer_ != nullptr) CAIRN_TRY(writer_->append(row.logits, total));
    ++row_index_;
    return Ok{};
  }
  Sums sums;

 private:
  Status check_base(const SavedRow& row) const {
    if (std::isfinite(row.scale) && std::isfinite(row.lowest) && row.scale >= 0) return Ok{};
    return fail(ErrorCode::invalid_data,
                "the logits to compare with: row {}: expected a finite scale and lowest "
                "log-probability, found {} and {}",
                row_index_, row.scale, row.lowest);
  }

  const SavedLogits* base_;
  LogitsWriter* writer_;
  int64_t row_index_ = 0;
};

// One chunk: the first half only read, then rows of logits. `tokens`: as they are computed; what
// follows each is `text`'s.
Status judge_chunk(Engine& engine, std::span<const Token> tokens, std::span<const Token> text,
                   const LogitsShape& shape, Judge& judge) {
  memory::Sequence sequence = engine.memory().new_sequence();
  const int32_t end = shape.context - 1;
  for (int32_t begin = 0; begin < end;) {
    const bool counts = begin >= shape.first_row();
    const int32_t limit = counts ? kOutputsMax : shape.first_row() - begin;
    const int32_t count = std::min({limit, engine.runner().row_count_max(), end - begin});
    std::vector<int32_t> outputs(counts ? size_t(count) : 0);
    std::iota(outputs.begin(), outputs.end(), 0);
    const StepItem item{.sequence = &sequence,
                        .tokens = tokens.subspan(size_t(begin), size_t(count)),
                        .outputs = outputs};
    Status judged = Ok{};
    CAIRN_TRY(engine.step({&item, 1}, [&](size_t, const StepOutputs& rows) {
      for (int32_t row = 0; row < rows.count() && judged; ++row) {
        judged = judge.add({.logits = rows.logits(row), .next = text[size_t(begin + row + 1)]});
      }
      return count;
    }));
    CAIRN_TRY(std::move(judged));
    begin += count;
  }
  return Ok{};
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * double(values.size() - 1);
  const size_t below = size_t(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - double(below)) * (values[above] - values[below]);
}

Comparison compare_sums(const Sums& sums) {
  Comparison result;
  result.base_perplexity = std::exp(estimate(sums.base_surprise).mean);
  std::vector<double> ratios;
  double squares = 0;
  for (size_t i = 0; i < sums.surprise.size(); ++i) {
    ratios.push_back(sums.surprise[i] - sums.base_surprise[i]);
    squares += sums.probability_change[i] * sums.probability_change[i];
  }
  // The difference token by token: what both find hard does not count as uncertainty.
  result.log_ratio = estimate(ratios);
  result.divergence = estimate(sums.divergence);
  result.divergence_median = quantile(sums.divergence, 0.5);
  result.divergence_99 = quantile(sums.divergence, 0.99);
  result.divergence_max = quantile(sums.divergence, 1);
  result.same_top = estimate(sums.same_top);
  result.probability_rms = std::sqrt(squares / double(sums.surprise.size()));
  return result;
}

}  // namespace

Estimate estimate(const std::vector<double>& values) {
  const double count = double(values.size());
  Estimate result;
  if (values.empty()) return result;
  for (const double value : values) result.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  if (count > 1) result.error = std::sqrt(squares / count / (count - 1));
  return result;
}

EngineOptions fit_for_perplexity(EngineOptions options, int32_t context) {
  options.context_tokens = context;
  options.row_count_max = std::min(kRowsMax, context);
  return options;
}

Result<PerplexityReport> measure_perplexity(Engine& engine, const PerplexityWork& work) {
  const LogitsShape& shape = work.shape;
  CHECK(work.tokens.size() == size_t(shape.context) * size_t(shape.chunk_count));
  Judge judge(work.base, work.writer);
  const auto bos = engine.tokenizer()->special_ids().bos;
  for (int32_t chunk = 0; chunk < shape.chunk_count; ++chunk) {
    const auto text =
        work.tokens.subspan(size_t(chunk) * size_t(shape.context), size_t(shape.context));
    std::vector<Token> computed(text.begin(), text.end());
    if (bos && engine.tokenizer()->adds_bos()) computed[0] = *bos;
    CAIRN_TRY(judge_chunk(engine, computed, text, shape, judge));
    if (work.on_progress) {
      work.on_progress(int64_t(chunk + 1) * shape.context, int64_t(work.tokens.size()));
    }
  }
  PerplexityReport report{.chunk_count = shape.chunk_count,
                          .token_count = int64_t(judge.sums.surprise.size())};
  const Estimate surprise = estimate(judge.sums.surprise);
  report.perplexity = std::exp(surprise.mean);
  report.error = report.perplexity * surprise.error;
  report.has_comparison = work.base != nullptr;
  if (work.base != nullptr) report.comparison = compare_sums(judge.sums);
  return report;
}

}  // namespace cairn::measure
