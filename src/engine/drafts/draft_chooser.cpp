// The same choice as the answer's, and its worth.
#include "engine/drafts/draft_chooser.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tokenize/tokenizer.h"

namespace cairn {

namespace {

// Where times are not known, a token is drafted where it will be right so often.
constexpr double kReachLeast = 0.3;
constexpr double kTimeWeight = 0.1;  // Of the newest time.

// The probability of the chosen token, and nothing else. Where the likeliest is taken the chain
// leaves only that one.
sample::SamplingParams drafting(sample::SamplingParams params) {
  params.probability_count = 0;
  params.post_sampling_probs = params.temperature > 0 || params.mirostat != 0;
  return params;
}

// Both models choose alike more often than either chooses one token twice: even of flat
// distributions, the same noise makes the same token win.
float expected_of(float claimed) {
  return 0.5f + 0.5f * claimed;
}

}  // namespace

DraftChooser::DraftChooser(const sample::Sampler* answers, const tokenize::Tokenizer* tokenizer)
    : answers_(answers), tokenizer_(tokenizer), sampler_(drafting(answers->params()), tokenizer) {}

void DraftChooser::follow(std::span<const Token> text) {
  for (size_t i = 0; i < claimed_.size() && text_size_ + i < text.size(); ++i) {
    const bool is_right = text[text_size_ + i] == text_[text_size_ + i];
    calibration_.count(0, claimed_[i], expected_of(claimed_[i]), is_right);
    if (!is_right) break;
  }
  claimed_.clear();
  text_.assign(text.begin(), text.end());
  text_size_ = text_.size();
}

Status DraftChooser::choose(const draft::View& view, std::span<const float> logits, Compute compute,
                            draft::Draft& draft) {
  using Clock = std::chrono::steady_clock;
  // What a stage has learned of the answer's tokens, not of drafts.
  if (const auto steps = answers_->state().steps(); !steps.empty()) {
    sampler_.set_state(sample::SamplerState({steps.begin(), steps.end()}));
  }
  const int32_t count_max = std::min(view.count_max, kTokensMost);
  double reach = 1, sum = 1;
  for (;;) {
    CAIRN_TRY(
        const Token token,
        sampler_.sample({.logits = logits, .position = int32_t(text_.size()), .history = text_}));
    // Where the answer ends no row is needed behind it.
    if (tokenizer_ != nullptr && tokenizer_->is_end_of_generation(token)) return Ok{};
    const float claimed = std::exp(sampler_.probabilities().chosen.log_probability);
    const float chance = calibration_.chance(0, claimed, expected_of(claimed));
    draft.add(token, chance);
    claimed_.push_back(claimed);
    text_.push_back(token);
    reach *= double(chance);
    sum += reach;
    const int32_t count = int32_t(draft.tokens.size());
    if (count == count_max || !pays(reach * double(chance), sum, count, view.step_seconds)) {
      return Ok{};
    }
    const auto begin = Clock::now();
    CAIRN_TRY(logits, compute(token));
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    token_seconds_ += (token_seconds_ == 0 ? 1 : kTimeWeight) * (seconds - token_seconds_);
  }
}

// Whether one more token makes the tokens of the next step cheaper, if it is as likely as the last
// one. `expected`: tokens that the step is expected to make without it, its own one included.
bool DraftChooser::pays(double reach, double expected, int32_t count, double step_seconds) const {
  if (step_seconds == 0 || token_seconds_ == 0) return reach >= kReachLeast;
  return reach * (step_seconds + count * token_seconds_) >= expected * token_seconds_;
}

}  // namespace cairn
