// A predicting layer beside an answer.
#include "engine/drafts/predictor_drafter.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace cairn {

namespace {

constexpr size_t kWaitingMost = 256;  // Rows.

}  // namespace

PredictorDrafter::PredictorDrafter(Predictor* predictor, const sample::Sampler* sampler,
                                   const tokenize::Tokenizer* tokenizer)
    : predictor_(predictor),
      chooser_(sampler, tokenizer),
      sequence_(predictor->memory().new_sequence()) {}

// Rows of so many tokens, from begin_ on, are read or wait to be.
int32_t PredictorDrafter::known_end() const {
  return begin_ + sequence_.length() + int32_t(rows_.size()) / predictor_->width();
}

void PredictorDrafter::restart(int32_t position) {
  sequence_ = predictor_->memory().new_sequence();
  begin_ = position;
  rows_.clear();
}

// What is not what follows begins anew: a rewind came between, or steps whose rows nobody handed
// on. So does what nobody has asked for in a while, since rows that wait take memory.
void PredictorDrafter::take(int32_t position, const StepOutputs& rows, int32_t count) {
  if (!off_reason_.empty()) return;
  const size_t waiting = rows_.size() / size_t(predictor_->width());
  if (position != known_end() || waiting > kWaitingMost) restart(position);
  for (int32_t row = 0; row < count; ++row) {
    const std::span<const float> hidden = rows.hidden(row);
    rows_.insert(rows_.end(), hidden.begin(), hidden.end());
    predictor_->prepare(std::span(rows_).last(hidden.size()), Predictor::Origin::model);
  }
}

void PredictorDrafter::propose(const draft::View& view, draft::Draft& draft) {
  if (!off_reason_.empty() || view.count_max <= 0) return;
  chooser_.follow(view.text);
  const Status proposed = try_propose(view, draft);
  if (proposed) return;
  draft.clear();
  log::warning("multi-token prediction: {}", proposed.error().message);
  off_reason_ = proposed.error().code == ErrorCode::memory_full
                    ? "the memory of the predicting layer is full"
                    : "the predicting layer failed";
  predictor_->memory().close(sequence_);
}

// The last token's own row is not computed yet; that of the token before it has to be here.
Status PredictorDrafter::try_propose(const draft::View& view, draft::Draft& draft) {
  const bool is_known = known_end() == int32_t(view.text.size()) - 1;
  if (!is_known || rows_.empty()) return Ok{};
  CAIRN_TRY(read(view.text));
  const int32_t length = sequence_.length();
  const auto compute_next = [this](Token token) -> Result<std::span<const float>> {
    predictor_->prepare(next_row_, Predictor::Origin::own);
    CAIRN_TRY(compute(std::span(&token, 1), next_row_));
    return logits_;
  };
  const Status chosen = chooser_.choose(view, logits_, compute_next, draft);
  // What the layer made of its own rows gives way to what the model is going to make.
  if (sequence_.length() > length) {
    CAIRN_TRY(memory::Sequence shorter, predictor_->memory().at(sequence_, length));
    sequence_ = std::move(shorter);
  }
  return chosen;
}

Status PredictorDrafter::read(std::span<const Token> text) {
  const size_t width = size_t(predictor_->width());
  std::span<const float> rows = rows_;
  while (!rows.empty()) {
    const size_t count = std::min(rows.size() / width, size_t(predictor_->row_count_max()));
    const size_t first = size_t(begin_ + sequence_.length()) + 1;
    CAIRN_TRY(compute(text.subspan(first, count), rows.first(count * width)));
    rows = rows.subspan(count * width);
  }
  rows_.clear();
  return Ok{};
}

Status PredictorDrafter::compute(std::span<const Token> tokens, std::span<const float> rows) {
  const int32_t last = int32_t(tokens.size()) - 1;
  // Of a prompt too, few rows come here at a time: nothing is gained where they round more.
  const StepItem item{.sequence = &sequence_,
                      .tokens = tokens,
                      .outputs = std::span(&last, 1),
                      .given = rows,
                      .is_answer = true};
  const auto take = [&](size_t, const StepOutputs& outputs) {
    logits_ = outputs.logits(0);
    const std::span<const float> hidden = outputs.hidden(0);
    next_row_.assign(hidden.begin(), hidden.end());
    return last + 1;
  };
  CAIRN_TRY(predictor_->step(std::span(&item, 1), take));
  return Ok{};
}

}  // namespace cairn
