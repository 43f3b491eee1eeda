// A draft model beside an answer: what it has read, and what it would say.
#include "engine/drafts/model_drafter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "memory/common_prefix.h"

namespace cairn {

namespace {

// Of a text that is not in the prefix cache, so many of the last tokens are read: a draft needs no
// more to be good, and reading costs time before it can gain any.
constexpr int32_t kReadMost = 512;
// Positions before the end that stay resumable where attention has a window: drafts are shorter,
// and rewinds are mostly farther, so they read again.
constexpr int32_t kWindowKept = 2 * DraftChooser::kTokensMost;
}  // namespace

ModelDrafter::ModelDrafter(DraftModel* model, const sample::Sampler* sampler, uint64_t tenant)
    : model_(model),
      engine_(&model->engine()),
      chooser_(sampler, engine_->tokenizer()),
      variant_(engine_->default_selection().for_tenant(tenant).variant()),
      sequence_(engine_->memory().new_sequence(variant_)) {}

ModelDrafter::~ModelDrafter() {
  keep();
}

void ModelDrafter::propose(const draft::View& view, draft::Draft& draft) {
  is_reading_ = false;
  if (!off_reason_.empty() || view.text.empty() || view.count_max <= 0) return;
  chooser_.follow(view.text);
  if (const Status proposed = try_propose(view, draft); !proposed) {
    draft.clear();
    give_up(proposed.error());
  }
}

// What it holds is given back at once, since others may need it.
void ModelDrafter::give_up(const Error& error) {
  log::warning("draft model: {}", error.message);
  off_reason_ = error.code == ErrorCode::memory_full ? "the draft model's memory is full"
                                                     : "the draft model failed";
  engine_->memory().close(sequence_);
}

Status ModelDrafter::try_propose(const draft::View& view, draft::Draft& draft) {
  CAIRN_TRY(follow(view.text));
  seen_count_ = view.text.size();
  CAIRN_TRY(const bool is_read, read(view.text));
  if (!is_read) return Ok{};
  const auto compute_next = [this](Token token) -> Result<std::span<const float>> {
    CAIRN_TRY(compute(std::span(&token, 1), true));
    return logits_;
  };
  return chooser_.choose(view, logits_, compute_next, draft);
}

// Makes the sequence a beginning of the text that ends before its last token.
Status ModelDrafter::follow(std::span<const Token> text) {
  const size_t room = size_t(model_->window_tokens());
  if (!has_started_ || text.size() <= begin_ ||
      text.size() - begin_ + DraftChooser::kTokensMost > room) {
    return start(text);
  }
  const std::span<const Token> rest = text.subspan(begin_);
  const int32_t shared =
      std::min(memory::common_prefix(sequence_.tokens(), rest), int32_t(rest.size()) - 1);
  if (shared < sequence_.length()) CAIRN_TRY(go_back(shared));
  // A rewind, or another conversation's text.
  const bool is_far = int32_t(rest.size()) - sequence_.length() > kReadMost;
  return is_far ? start(text) : Status(Ok{});
}

Status ModelDrafter::go_back(int32_t length) {
  const memory::ResumePlan plan = engine_->memory().plan(sequence_, length);
  CAIRN_TRY(memory::Sequence shorter, engine_->memory().at(sequence_, plan.resume));
  sequence_ = std::move(shorter);
  return Ok{};
}

// From the beginning, where most of it is in memory; else only the end is read.
Status ModelDrafter::start(std::span<const Token> text) {
  keep();
  has_started_ = true;
  logits_ = {};
  const int32_t length = int32_t(text.size()) - 1;
  const int32_t window = model_->window_tokens();
  const bool fits = int32_t(text.size()) + DraftChooser::kTokensMost <= window;
  memory::Memory& memory = engine_->memory();
  if (fits) {
    const std::span<const Token> before = text.first(size_t(length));
    const memory::PrefixCache::Found found = engine_->cache().find(before, variant_, false);
    if (found.sequence != nullptr && length - found.plan.resume <= kReadMost) {
      begin_ = 0;
      CAIRN_TRY(sequence_, memory.at(*found.sequence, found.plan.resume));
      return Ok{};
    }
  }
  const int32_t read = fits ? kReadMost : std::min(kReadMost, window / 2);
  begin_ = size_t(std::max(0, length - read));
  sequence_ = memory.new_sequence(variant_);
  return Ok{};
}

// Only what begins where texts do can be found again. Drafts are none of it.
void ModelDrafter::keep() {
  if (sequence_.is_closed()) return;
  const int32_t known = std::min(sequence_.length(), int32_t(seen_count_));
  const bool is_found = begin_ == 0 && known > 0;
  Status kept = Ok{};
  if (is_found && known < sequence_.length()) kept = go_back(known);
  if (is_found && kept) {
    memory::Memory& memory = engine_->memory();
    if (!memory.needs_replay(sequence_) && !memory.suspend(sequence_)) {
      kept = memory.keep_anchor(sequence_, memory::AnchorKind::answer_end);
    }
    if (kept) engine_->cache().keep(std::move(sequence_));
  }
  sequence_ = memory::Sequence();
}

// Whether all of the text is read and the logits behind it are there.
Result<bool> ModelDrafter::read(std::span<const Token> text) {
  const std::span<const Token> rest = text.subspan(begin_ + size_t(sequence_.length()));
  const size_t rows = size_t(engine_->runner().row_count_max());
  if (rest.size() <= rows) {
    CAIRN_TRY(compute(rest, true));
    let_go_of_windows();
    return true;
  }
  CAIRN_TRY(compute(rest.first(rows), false));
  // What it has read once it is not given again: rewinds that are read again are drafting.
  reading_rows_ += int32_t(rows);
  is_reading_ = reading_rows_ <= kReadMost;
  return false;
}

void ModelDrafter::let_go_of_windows() {
  const int32_t end = sequence_.length() - kWindowKept;
  if (end - sequence_.protected_from() < kWindowKept) return;
  engine_->memory().protect_from(sequence_, end);
}

Status ModelDrafter::compute(std::span<const Token> tokens, bool wants_logits) {
  const int32_t last = int32_t(tokens.size()) - 1;
  // Behind the first logits there are the answer's tokens and drafts.
  StepItem item{.sequence = &sequence_, .tokens = tokens, .is_answer = !logits_.empty()};
  if (wants_logits) item.outputs = std::span(&last, 1);
  const auto take = [&](size_t, const StepOutputs& outputs) {
    if (wants_logits) logits_ = outputs.logits(0);
    return last + 1;
  };
  CAIRN_TRY(engine_->step(std::span(&item, 1), take));
  computed_rows_ += last + 1;
  return Ok{};
}

}  // namespace cairn
