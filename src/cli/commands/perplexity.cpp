// Chunks through the engine's steps, rows of logits into sums.
#include "cli/commands/perplexity.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "cli/commands/load.h"
#include "cli/terminal/terminal.h"
#include "measure/saved_logits.h"
#include "memory/memory.h"
#include "sample/candidates.h"

namespace cairn::cli {

namespace {

constexpr size_t kTextBytesMax = size_t(1) << 30;
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

void compare(const Row& row, double total, const measure::SavedRow& base, Sums& sums) {
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
  Judge(const measure::SavedLogits* base, measure::LogitsWriter* writer)
      : base_(base), writer_(writer) {}

  Status add(const Row& row) {
    const double total = log_total(row.logits);
    sums.surprise.push_back(total - double(row.logits[size_t(index_of(row.next))]));
    if (!std::isfinite(sums.surprise.back())) {
      return fail(ErrorCode::invalid_data, "the model's output: expected numbers, found {}",
                  sums.surprise.back());
    }
    if (base_ != nullptr) compare(row, total, base_->row(row_index_), sums);
    if (writer_ != nullptr) CAIRN_TRY(writer_->append(row.logits, total));
    ++row_index_;
    return Ok{};
  }
  Sums sums;

 private:
  const measure::SavedLogits* base_;
  measure::LogitsWriter* writer_;
  int64_t row_index_ = 0;
};

// One chunk: the first half only read, then rows of logits. `tokens`: as they are computed; what
// follows each is `text`'s.
Status judge_chunk(Engine& engine, std::span<const Token> tokens, std::span<const Token> text,
                   const measure::LogitsShape& shape, Judge& judge) {
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

Result<std::vector<Token>> tokens_of_text(const Engine& engine, const PerplexityOptions& options) {
  CAIRN_TRY(const std::string text, read_file(options.text_path, kTextBytesMax));
  return engine.tokenizer()->encode(text,
                                    {.add_special = true, .parse_special = options.parse_special});
}

// The whole chunks of the text, or those of the saved logits.
Status find_chunks(const PerplexityOptions& options, const Engine& engine,
                   const measure::SavedLogits* base, measure::LogitsShape& shape,
                   std::vector<Token>& tokens) {
  shape = {options.context, engine.size().vocabulary_count, 0};
  if (base != nullptr) {
    shape = base->shape();
    tokens = base->tokens();
    if (shape.vocabulary != engine.size().vocabulary_count) {
      return fail(ErrorCode::invalid_argument, "{}: expected logits of {} tokens, found {}",
                  options.kl_path, engine.size().vocabulary_count, shape.vocabulary);
    }
  } else {
    CAIRN_TRY(tokens, tokens_of_text(engine, options));
    shape.chunk_count = int32_t(tokens.size() / size_t(shape.context));
  }
  if (shape.chunk_count == 0) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected at least {} tokens (--ctx-size), found {}", options.text_path,
                shape.context, tokens.size());
  }
  if (options.chunk_count_max > 0) {
    shape.chunk_count = std::min(shape.chunk_count, options.chunk_count_max);
  }
  tokens.resize(size_t(shape.context) * size_t(shape.chunk_count));
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

Result<PerplexityReport> measure_perplexity(const PerplexityOptions& options) {
  std::optional<measure::SavedLogits> base;
  if (!options.kl_path.empty()) {
    CAIRN_TRY(base, measure::SavedLogits::open(options.kl_path));
  }
  EngineOptions engine_options = options.engine;
  engine_options.context_tokens = base ? base->shape().context : options.context;
  engine_options.row_count_max = std::min(kRowsMax, engine_options.context_tokens);
  CAIRN_TRY(const std::unique_ptr<Engine> engine, load_engine(options.model_path, engine_options));
  if (engine->tokenizer() == nullptr) {
    return fail(ErrorCode::unsupported, "{}: expected a vocabulary, found none",
                options.model_path);
  }
  measure::LogitsShape shape;
  std::vector<Token> tokens;
  CAIRN_TRY(find_chunks(options, *engine, base ? &*base : nullptr, shape, tokens));
  std::optional<measure::LogitsWriter> writer;
  if (!options.save_path.empty()) {
    CAIRN_TRY(writer, measure::LogitsWriter::open(options.save_path, shape, tokens));
  }
  Judge judge(base ? &*base : nullptr, writer ? &*writer : nullptr);
  Progress progress("computing", Progress::Unit::tokens);
  const auto bos = engine->tokenizer()->special_ids().bos;
  for (int32_t chunk = 0; chunk < shape.chunk_count; ++chunk) {
    const auto text =
        std::span(tokens).subspan(size_t(chunk) * size_t(shape.context), size_t(shape.context));
    std::vector<Token> computed(text.begin(), text.end());
    if (bos && engine->tokenizer()->adds_bos()) computed[0] = *bos;
    CAIRN_TRY(judge_chunk(*engine, computed, text, shape, judge));
    progress.update(uint64_t(chunk + 1) * uint64_t(shape.context), uint64_t(tokens.size()));
  }
  if (writer) CAIRN_TRY(writer->commit());
  PerplexityReport report{.chunk_count = shape.chunk_count,
                          .token_count = int64_t(judge.sums.surprise.size())};
  const Estimate surprise = estimate(judge.sums.surprise);
  report.perplexity = std::exp(surprise.mean);
  report.error = report.perplexity * surprise.error;
  report.has_comparison = base.has_value();
  if (base) report.comparison = compare_sums(judge.sums);
  return report;
}

std::string report_text(const PerplexityReport& report) {
  std::string text =
      fmt::format("perplexity            {:.4f} ± {:.4f} ({} tokens, {} chunks)\n",
                  report.perplexity, report.error, report.token_count, report.chunk_count);
  if (!report.has_comparison) return text;
  const Comparison& c = report.comparison;
  text += fmt::format("base perplexity       {:.4f}\n", c.base_perplexity);
  text +=
      fmt::format("log of their ratio    {:.5f} ± {:.5f}\n", c.log_ratio.mean, c.log_ratio.error);
  text +=
      fmt::format("KL divergence         {:.6f} ± {:.6f}\n", c.divergence.mean, c.divergence.error);
  text += fmt::format("  median, 99 %, most  {:.6f}, {:.6f}, {:.6f}\n", c.divergence_median,
                      c.divergence_99, c.divergence_max);
  text += fmt::format("same favourite        {:.3f} ± {:.3f} %\n", 100 * c.same_top.mean,
                      100 * c.same_top.error);
  text += fmt::format("RMS change of p       {:.3f} %\n", 100 * c.probability_rms);
  return text;
}

std::string report_json(const PerplexityReport& report) {
  nlohmann::ordered_json json;
  json["perplexity"] = report.perplexity;
  json["perplexity_error"] = report.error;
  json["tokens"] = report.token_count;
  json["chunks"] = report.chunk_count;
  if (report.has_comparison) {
    const Comparison& c = report.comparison;
    json["base_perplexity"] = c.base_perplexity;
    json["log_ratio"] = c.log_ratio.mean;
    json["log_ratio_error"] = c.log_ratio.error;
    json["kl_divergence"] = c.divergence.mean;
    json["kl_divergence_error"] = c.divergence.error;
    json["kl_divergence_median"] = c.divergence_median;
    json["kl_divergence_99"] = c.divergence_99;
    json["kl_divergence_max"] = c.divergence_max;
    json["same_top"] = c.same_top.mean;
    json["same_top_error"] = c.same_top.error;
    json["probability_rms"] = c.probability_rms;
  }
  return json.dump();
}

}  // namespace cairn::cli
