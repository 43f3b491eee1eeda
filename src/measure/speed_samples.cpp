// Steps are begun, run and committed as a generator does it.
#include "measure/speed_samples.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <utility>

#include "base/random_stream.h"
#include "memory/memory.h"

namespace cairn::measure {

namespace {

using Clock = std::chrono::steady_clock;
using memory::Sequence;

constexpr int32_t kSampleTokens = 16;  // A sample of decoding has at most so many steps.
// Steps before the samples of decoding, not counted: a conversation's first two states and its
// first pages come from the system, which clears them.
constexpr int32_t kFirstSteps = 2;
constexpr int32_t kShortPrompt = 64;  // Up to here a round takes several samples.
constexpr int32_t kShortPromptSamples = 8;
constexpr uint64_t kPastStream = 1, kPromptStream = 2, kDecodeStream = 3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Meter {
 public:
  Meter(Engine& engine, const SpeedWork& work) : engine_(engine), work_(work) {}

  Result<std::vector<SpeedRow>> measure(MeasureLimits limits) {
    for (const int32_t depth : work_.depths) {
      CAIRN_TRY(read_pasts(depth));
      const size_t first_row = rows_.size();
      add_rows(depth);
      for (int32_t round = 0; round < work_.round_count; ++round) {
        for (size_t row = first_row; row < rows_.size(); ++row) {
          CAIRN_TRY(const MachineLimits now, limits());
          CAIRN_TRY(add_samples(rows_[row]));
          rows_[row].limits.resize(rows_[row].samples.size(), limit_of(rows_[row], now));
        }
      }
    }
    return std::move(rows_);
  }

  enum class Role : uint8_t { prompt, answer };

  // A step of rows behind each of the sequences; logits of each one's last row where wanted.
  Status step(std::span<Sequence> sequences, std::span<const std::vector<Token>> tokens, Role role,
              bool wants_logits) {
    items_.clear();
    const int32_t last = int32_t(tokens[0].size()) - 1;
    for (size_t i = 0; i < sequences.size(); ++i) {
      items_.push_back({.sequence = &sequences[i],
                        .tokens = tokens[i],
                        .outputs = {&last, size_t(wants_logits ? 1 : 0)},
                        .keeps_hidden = wants_logits,
                        .is_answer = role == Role::answer});
    }
    CAIRN_TRY(const StepReport report, engine_.step(items_));
    if (report.item_count < items_.size()) {
      return fail(ErrorCode::memory_full, "memory budget: expected room for {} sequences, found {}",
                  items_.size(), report.item_count);
    }
    done_tokens_ += int64_t(sequences.size()) * (last + 1);
    return Ok{};
  }

  // A prompt in steps as long as the engine takes them; logits of the last token where wanted.
  Status read(Sequence& sequence, int32_t count, RandomStream& random, bool wants_logits) {
    while (count > 0) {
      const int32_t rows = std::min(count, engine_.runner().row_count_max());
      count -= rows;
      const std::vector<Token> tokens = random_tokens(rows, random);
      CAIRN_TRY(step({&sequence, 1}, {&tokens, 1}, Role::prompt, wants_logits && count == 0));
      CAIRN_TRY(tell());
    }
    return Ok{};
  }

 private:
  std::vector<Token> random_tokens(int32_t count, RandomStream& random) const {
    std::vector<Token> tokens;
    for (int32_t token = 0; token < count; ++token) {
      tokens.push_back(Token(random.below(uint32_t(engine_.size().vocabulary_count))));
    }
    return tokens;
  }

  size_t past_count() const {
    const int32_t batch = *std::max_element(work_.batches.begin(), work_.batches.end());
    return work_.separate_prompts && work_.new_tokens > 0 ? size_t(batch) : 1;
  }

  // Goes on with the pasts of the depth before.
  Status read_pasts(int32_t depth) {
    while (pasts_.size() < past_count()) pasts_.push_back(engine_.memory().new_sequence());
    for (size_t past = 0; past < pasts_.size(); ++past) {
      Sequence& sequence = pasts_[past];
      RandomStream random(kPastStream, past, uint64_t(depth));
      CAIRN_TRY(read(sequence, depth - sequence.length(), random, false));
      engine_.memory().protect_from(sequence, sequence.length());
    }
    return Ok{};
  }

  void add_rows(int32_t depth) {
    for (const int32_t prompt : work_.prompts) {
      SpeedRow row{.prompt_tokens = prompt, .depth = depth};
      for (int32_t done = 0; done < prompt; done += engine_.runner().row_count_max()) {
        const int32_t rows = std::min(prompt - done, engine_.runner().row_count_max());
        add_costs(row,
                  {.rows = rows, .depth = depth + done, .outputs = done + rows == prompt ? 1 : 0});
      }
      rows_.push_back(std::move(row));
    }
    if (work_.new_tokens == 0) return;
    for (const int32_t batch : work_.batches) {
      SpeedRow row{.new_tokens = work_.new_tokens, .depth = depth, .batch = batch};
      add_costs(row, {.sequences = batch,
                      .depth = depth + work_.new_tokens / 2,
                      .outputs = batch,
                      .shares_the_past = !work_.separate_prompts});
      rows_.push_back(std::move(row));
    }
  }

  void add_costs(SpeedRow& row, const StepShape& shape) const {
    const StepCosts costs =
        step_costs(engine_.runner().plans(engine_.default_selection().variant()).step,
                   engine_.memory().layout(), shape);
    row.costs += costs;
    row.steps.push_back(costs);
  }

  // Tokens a second.
  static double limit_of(const SpeedRow& row, const MachineLimits& limits) {
    double seconds = 0;
    for (const StepCosts& step : row.steps) seconds += least_seconds(step, limits);
    const int32_t token_count = row.prompt_tokens > 0 ? row.prompt_tokens : row.batch;
    return seconds > 0 ? token_count / seconds : 0;
  }

  Status add_samples(SpeedRow& row) {
    if (row.prompt_tokens == 0) return add_decode_samples(row);
    const int32_t count = row.prompt_tokens <= kShortPrompt ? kShortPromptSamples : 1;
    for (int32_t sample = 0; sample < count; ++sample) CAIRN_TRY(add_prompt_sample(row));
    return Ok{};
  }

  Status add_prompt_sample(SpeedRow& row) {
    CAIRN_TRY(Sequence sequence, engine_.memory().fork(pasts_[0]));
    RandomStream random(kPromptStream, uint64_t(row.prompt_tokens), ++sample_count_);
    const Clock::time_point start = Clock::now();
    CAIRN_TRY(read(sequence, row.prompt_tokens, random, true));
    row.samples.push_back(row.prompt_tokens / seconds_since(start));
    const std::span<const float> logits = engine_.runner().logits(0);
    first_token_ = std::max_element(logits.begin(), logits.end()) - logits.begin();
    row.first_token_seconds.push_back(seconds_since(start));
    return Ok{};
  }

  // All new tokens in one go, in about equal samples, behind some that are not counted.
  Status add_decode_samples(SpeedRow& row) {
    std::vector<Sequence> sequences;
    for (int32_t i = 0; i < row.batch; ++i) {
      const size_t past = size_t(i) % pasts_.size();
      CAIRN_TRY(Sequence sequence, engine_.memory().fork(pasts_[past]));
      sequences.push_back(std::move(sequence));
    }
    RandomStream random(kDecodeStream, uint64_t(row.batch), ++sample_count_);
    std::vector<std::vector<Token>> tokens;
    const auto one_token_each = [&] {
      tokens.clear();
      for (int32_t i = 0; i < row.batch; ++i) tokens.push_back(random_tokens(1, random));
      return step(sequences, tokens, Role::answer, true);
    };
    for (int32_t first = 0; first < kFirstSteps; ++first) CAIRN_TRY(one_token_each());
    const int32_t sample_count = (row.new_tokens + kSampleTokens - 1) / kSampleTokens;
    int32_t done = 0;
    for (int32_t sample = 1; sample <= sample_count; ++sample) {
      const int32_t end = int32_t(int64_t(row.new_tokens) * sample / sample_count);
      const int32_t step_count = end - done;
      const Clock::time_point start = Clock::now();
      for (; done < end; ++done) CAIRN_TRY(one_token_each());
      row.samples.push_back(double(step_count) * row.batch / seconds_since(start));
      CAIRN_TRY(tell());
    }
    return Ok{};
  }

  int64_t total_tokens() const {
    int64_t round = 0;
    for (const int32_t prompt : work_.prompts) {
      round += prompt * (prompt <= kShortPrompt ? kShortPromptSamples : 1);
    }
    for (const int32_t batch : work_.batches) {
      if (work_.new_tokens > 0) round += int64_t(batch) * (work_.new_tokens + kFirstSteps);
    }
    return round * work_.round_count * int64_t(work_.depths.size()) +
           work_.depths.back() * int64_t(past_count());
  }

  Status tell() const {
    if (!work_.on_progress || work_.on_progress(done_tokens_, total_tokens())) return Ok{};
    return fail(ErrorCode::cancelled, "bench: stopped");
  }

  Engine& engine_;
  const SpeedWork& work_;
  std::vector<Sequence> pasts_;
  std::vector<SpeedRow> rows_;
  std::vector<StepItem> items_;
  uint64_t sample_count_ = 0;
  int64_t done_tokens_ = 0;
  ptrdiff_t first_token_ = 0;
};

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double SpeedRow::tokens_per_second() const {
  return median(samples);
}

double SpeedRow::limit_tokens_per_second() const {
  return median(limits);
}

double SpeedRow::share_of_limit() const {
  std::vector<double> shares;
  for (size_t i = 0; i < samples.size(); ++i) {
    shares.push_back(limits[i] > 0 ? samples[i] / limits[i] : 0);
  }
  return median(std::move(shares));
}

int32_t context_tokens(const SpeedWork& work) {
  int32_t longest = work.new_tokens > 0 ? kFirstSteps + work.new_tokens : 1;
  for (const int32_t prompt : work.prompts) longest = std::max(longest, prompt);
  return std::max(work.depths.back() + longest, output_count(work));  // A step has no more rows.
}

int32_t output_count(const SpeedWork& work) {
  return *std::max_element(work.batches.begin(), work.batches.end());
}

Result<std::vector<SpeedRow>> measure_speed(Engine& engine, MeasureLimits limits,
                                            const SpeedWork& work) {
  return Meter(engine, work).measure(limits);
}

Result<double> time_one_token(Engine& engine) {
  const SpeedWork work;
  Sequence sequence = engine.memory().new_sequence();
  RandomStream random(kPromptStream, 0, 0);
  const Clock::time_point start = Clock::now();
  CAIRN_TRY(Meter(engine, work).read(sequence, 1, random, true));
  return seconds_since(start);
}

}  // namespace cairn::measure
