// Chunks through the engine's steps, rows of logits into sums.
#include "measure/perplexity.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

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

// What rows are compared with, and where they are kept; null: nothing, nowhere.
struct Ends {
  std::function<SavedRow(int64_t row)> base = nullptr;
  std::function<Status(std::span<const float> logits, double log_total)> keep = nullptr;
};

// Where rows of logits go.
class Judge {
 public:
  explicit Judge(Ends ends) : ends_(std::move(ends)) {}

  Status add(const Row& row) {
    const double total = log_total(row.logits);
    sums.surprise.push_back(total - double(row.logits[size_t(index_of(row.next))]));
    if (!std::isfinite(sums.surprise.back())) {
      return fail(ErrorCode::invalid_data, "the model's output: expected numbers, found {}",
                  sums.surprise.back());
    }
    if (ends_.base) {
      const SavedRow base = ends_.base(row_index_);
      CAIRN_TRY(check_base(base));
      compare(row, total, base, sums);
      if (!std::isfinite(sums.divergence.back())) {
        return fail(ErrorCode::invalid_data,
                    "the model's output: row {}: expected logits near those to compare with, found "
                    "a divergence of {}",
                    row_index_, sums.divergence.back());
      }
    }
    if (ends_.keep) CAIRN_TRY(ends_.keep(row.logits, total));
    ++row_index_;
    return Ok{};
  }
  Sums sums;
  int64_t computed_tokens = 0;
  double step_seconds = 0;  // Without what is done with the rows.

 private:
  Status check_base(const SavedRow& row) const {
    if (std::isfinite(row.scale) && std::isfinite(row.lowest) && row.scale >= 0) return Ok{};
    return fail(ErrorCode::invalid_data,
                "the logits to compare with: row {}: expected a finite scale and lowest "
                "log-probability, found {} and {}",
                row_index_, row.scale, row.lowest);
  }

  Ends ends_;
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
    const auto start = std::chrono::steady_clock::now();
    std::chrono::duration<double> judging(0);
    CAIRN_TRY(engine.step({&item, 1}, [&](size_t, const StepOutputs& rows) {
      const auto judging_start = std::chrono::steady_clock::now();
      for (int32_t row = 0; row < rows.count() && judged; ++row) {
        judged = judge.add({.logits = rows.logits(row), .next = text[size_t(begin + row + 1)]});
      }
      judging = std::chrono::steady_clock::now() - judging_start;
      return count;
    }));
    const std::chrono::duration<double> all = std::chrono::steady_clock::now() - start;
    judge.step_seconds += (all - judging).count();
    judge.computed_tokens += count;
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

std::span<const Token> chunk_of(const PerplexityWork& work, int32_t chunk) {
  const size_t context = size_t(work.shape.context);
  return work.tokens.subspan(size_t(chunk) * context, context);
}

// Each chunk begins as the model's texts do.
Status judge_text(Engine& engine, std::span<const Token> text, const LogitsShape& shape,
                  Judge& judge) {
  const auto bos = engine.tokenizer()->special_ids().bos;
  std::vector<Token> computed(text.begin(), text.end());
  if (bos && engine.tokenizer()->adds_bos()) computed[0] = *bos;
  return judge_chunk(engine, computed, text, shape, judge);
}

void tell_progress(const PerplexityWork& work, int32_t done_chunks) {
  if (!work.on_progress) return;
  work.on_progress(int64_t(done_chunks) * work.shape.context, int64_t(work.tokens.size()));
}

PerplexityReport report_of(const Judge& judge, int32_t chunk_count, bool has_comparison) {
  PerplexityReport report{.chunk_count = chunk_count,
                          .token_count = int64_t(judge.sums.surprise.size())};
  const Estimate surprise = estimate(judge.sums.surprise);
  report.perplexity = std::exp(surprise.mean);
  report.error = report.perplexity * surprise.error;
  if (judge.step_seconds > 0) {
    report.tokens_per_second = double(judge.computed_tokens) / judge.step_seconds;
  }
  report.has_comparison = has_comparison;
  if (has_comparison) report.comparison = compare_sums(judge.sums);
  return report;
}

Result<PerplexityReport> judge_all(Engine& engine, const PerplexityWork& work, Ends ends) {
  CHECK(work.tokens.size() == size_t(work.shape.context) * size_t(work.shape.chunk_count));
  const bool has_comparison = ends.base != nullptr;
  Judge judge(std::move(ends));
  for (int32_t chunk = 0; chunk < work.shape.chunk_count; ++chunk) {
    CAIRN_TRY(judge_text(engine, chunk_of(work, chunk), work.shape, judge));
    tell_progress(work, chunk + 1);
  }
  return report_of(judge, work.shape.chunk_count, has_comparison);
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
  Ends ends;
  if (work.base != nullptr) ends.base = [&work](int64_t row) { return work.base->row(row); };
  if (work.writer != nullptr) {
    ends.keep = [&work](std::span<const float> logits, double total) {
      return work.writer->append(logits, total);
    };
  }
  return judge_all(engine, work, std::move(ends));
}

Result<KeptLogits> keep_logits(Engine& engine, const PerplexityWork& work) {
  KeptLogits kept(work.shape.vocabulary);
  CAIRN_TRY(judge_all(engine, work, {.keep = [&](std::span<const float> logits, double total) {
                        kept.append(logits, total);
                        return Status(Ok{});
                      }}));
  return kept;
}

Result<PerplexityReport> measure_against(Engine& engine, const PerplexityWork& work,
                                         const KeptLogits& base) {
  return judge_all(engine, work, {.base = [&base](int64_t row) { return base.row(row); }});
}

Result<BothReports> compare_perplexity(Engine& base, Engine& other, const PerplexityWork& work) {
  CHECK(work.tokens.size() == size_t(work.shape.context) * size_t(work.shape.chunk_count));
  KeptLogits kept(work.shape.vocabulary);
  Judge first({.keep = [&](std::span<const float> logits, double total) {
    kept.append(logits, total);
    return Status(Ok{});
  }});
  const int64_t row_count = work.shape.row_count();
  Judge second({.base = [&](int64_t row) { return kept.row(row % row_count); }});
  for (int32_t chunk = 0; chunk < work.shape.chunk_count; ++chunk) {
    kept.clear();
    CAIRN_TRY(judge_text(base, chunk_of(work, chunk), work.shape, first));
    CAIRN_TRY(judge_text(other, chunk_of(work, chunk), work.shape, second));
    tell_progress(work, chunk + 1);
  }
  return BothReports{report_of(first, work.shape.chunk_count, false),
                     report_of(second, work.shape.chunk_count, true)};
}

}  // namespace cairn::measure
