// What a lane wants of steps, and what it keeps of them.
#include "engine/lane.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "engine/lane_batch.h"
#include "memory/common_prefix.h"

namespace cairn {

namespace {

using Clock = std::chrono::steady_clock;
using memory::AnchorKind;

// From a closing mark on, as many tokens are read again at most.
constexpr int32_t kClosingTokens = 64;
// A state takes as many bytes as hundreds of tokens; for fewer than these none is stored.
constexpr int32_t kWorthTokens = 8;
// Of a prompt whose logits are read: they are as wide as the vocabulary.
constexpr int32_t kOutputsMax = 64;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Fewer tokens to read count for more than fewer steps of the recurrence.
bool is_better(const memory::ResumePlan& a, const memory::ResumePlan& b) {
  if (a.resume != b.resume) return a.resume > b.resume;
  return a.recurrence_steps < b.recurrence_steps;
}

// Not one that the memory set for itself.
bool ends_at_anchor(const memory::Sequence& sequence) {
  if (sequence.anchors().empty()) return false;
  const memory::Anchor& last = sequence.anchors().back();
  return last.kind != AnchorKind::tail && last.position == sequence.length();
}

std::vector<Token> without(std::span<const Token> tokens, const ContextCut& cut) {
  std::vector<Token> result(tokens.begin(), tokens.begin() + cut.kept);
  result.insert(result.end(), tokens.begin() + cut.kept + cut.left_out, tokens.end());
  return result;
}

}  // namespace

Lane::Lane(Engine* engine)
    : engine_(engine),
      selection_(engine->default_selection()),
      sequence_(engine->memory().new_sequence(selection_.variant())) {}

void Lane::select(Selection selection) {
  selection_ = std::move(selection);
  if (selection_.variant() == sequence_.variant()) return;
  engine_->cache().keep(std::move(sequence_));
  sequence_ = engine_->memory().new_sequence(selection_.variant());
  pending_.clear();
  text_.clear();
  next_ = 0;
  computed_at_ = -1;
  is_preempted_ = false;
  stored_.reset();
  cut_ = {};
  turn_starts_.clear();
}

void Lane::read_logits(PromptReader* reader) {
  reader_ = reader;
  handed_out_ = 0;
}

// The rows of an item have one role: where the prompt ends, an item does.
int32_t Lane::wanted_rows() const {
  const int32_t before_answer = prompt_end_ - sequence_.length();
  int32_t rows = int32_t(pending_.size() - next_);
  if (before_answer > 0) rows = std::min(rows, before_answer);
  return reader_ == nullptr ? rows : std::min(rows, kOutputsMax);
}

int32_t Lane::room() const {
  const int32_t length = sequence_.length() + drafts_.walked_rows;
  const int32_t room = engine_->options().context_tokens - length;
  return engine_->options().context_policy == ContextPolicy::shift ? std::max(room, 1) : room;
}

// Other lanes may have been computed meanwhile; the hidden row brings the logits back.
std::span<const float> Lane::logits() const {
  CHECK(!wants_rows());
  Runner& runner = engine_->runner();
  if (runner.run_count() != computed_at_) {
    runner.restore_logits(engine_->memory().hidden(sequence_), sequence_.variant());
    computed_at_ = runner.run_count();
    output_ = 0;
  }
  return runner.logits(output_);
}

Status Lane::check(std::span<const Token> prompt) const {
  if (prompt.empty()) {
    return fail(ErrorCode::invalid_argument, "prompt: expected at least one token, found none");
  }
  const int32_t count = engine_->size().vocabulary_count;
  for (const Token token : prompt) {
    if (index_of(token) < 0 || index_of(token) >= count) {
      return fail(ErrorCode::invalid_argument, "prompt: expected token ids below {}, found {}",
                  count, index_of(token));
    }
  }
  return Ok{};
}

ContextLimits Lane::limits() const {
  return {.context_tokens = engine_->options().context_tokens,
          .keep_tokens = engine_->options().shift_keep};
}

Result<ContextCut> Lane::find_cut(int64_t token_count, std::span<const int32_t> turn_starts) const {
  const EngineOptions& options = engine_->options();
  if (token_count <= options.context_tokens) return ContextCut{};
  if (options.context_policy == ContextPolicy::stop) {
    return fail(ErrorCode::context_full, "context: {} tokens are needed, {} fit", token_count,
                options.context_tokens);
  }
  return cut_context(token_count, turn_starts, limits());
}

Result<PromptReport> Lane::start(std::span<const Token> prompt,
                                 std::span<const int32_t> message_starts) {
  CAIRN_TRY(check(prompt));
  CAIRN_TRY(cut_, find_cut(int64_t(prompt.size()), message_starts));
  turn_starts_.assign(message_starts.begin(), message_starts.end());
  text_.clear();
  return start_cut(prompt, true);
}

// Reads what the cut leaves of the whole text, whose turns are known.
Result<PromptReport> Lane::start_cut(std::span<const Token> text, bool asks_store) {
  message_starts_.clear();
  if (cut_.left_out == 0) {
    message_starts_ = turn_starts_;
    return start_whole(text, asks_store);
  }
  for (const int32_t start : turn_starts_) {
    const bool stays = start >= cut_.kept + cut_.left_out;
    if (start <= cut_.kept) message_starts_.push_back(start);
    if (!stays) continue;
    const int32_t moved = start - cut_.left_out;
    if (message_starts_.empty() || message_starts_.back() != moved) {
      message_starts_.push_back(moved);
    }
  }
  text_.assign(text.begin(), text.end());
  CAIRN_TRY(PromptReport report, start_whole(without(text_, cut_), asks_store));
  report.left_out_tokens = cut_.left_out;
  report.left_out_turns = cut_.turns;
  return report;
}

// The sequence from which the fewest tokens have to be read: the own one, or one that the engine
// keeps.
struct Lane::Start {
  const memory::Sequence* sequence;
  memory::ResumePlan plan;
  int32_t branch = 0;  // Where the prompt parts from whatever it has most tokens in common with.
};

// What the reader has not had has to be computed, whatever memory holds.
Lane::Start Lane::find_start(std::span<const Token> prompt, bool wants_logits) const {
  if (reader_ == nullptr) return find_best(prompt, wants_logits);
  Start start = find_best(prompt.first(std::min(prompt.size(), size_t(handed_out_))), false);
  start.plan.limited_by = "outputs";
  start.plan.reason = "The logits of its tokens are asked for, which memory does not keep.";
  return start;
}

Lane::Start Lane::find_best(std::span<const Token> prompt, bool wants_logits) const {
  const int32_t shared = memory::common_prefix(sequence_.tokens(), prompt);
  const bool is_whole = shared == int32_t(prompt.size());
  const Start own{&sequence_, engine_->memory().plan(sequence_, shared, is_whole && wants_logits)};
  if (computes_all_ || prompt.empty()) return own;
  const memory::PrefixCache::Found found =
      engine_->cache().find(prompt, sequence_.variant(), wants_logits);
  const bool is_kept = found.sequence != nullptr && is_better(found.plan, own.plan);
  Start start = is_kept ? Start{found.sequence, found.plan} : own;
  start.branch = std::max(shared < sequence_.length() ? shared : 0, found.branch);
  if (found.foreign_tokens > start.plan.target) {
    start.plan.limited_by = "adapters";
    start.plan.reason =
        fmt::format("{} tokens are held as other adapters read them.", found.foreign_tokens);
  }
  return start;
}

// What start() would read: what the cut of the context leaves of the prompt, which then lies in
// `storage`. Of a prompt that start() refuses all of it: what it would cost if there were room.
std::span<const Token> Lane::shortened(std::span<const Token> prompt,
                                       std::span<const int32_t> message_starts,
                                       std::vector<Token>& storage) const {
  Result<ContextCut> cut = find_cut(int64_t(prompt.size()), message_starts);
  if (!cut || cut->left_out == 0) return prompt;
  return storage = without(prompt, *cut);
}

memory::ResumePlan Lane::plan(std::span<const Token> prompt,
                              std::span<const int32_t> message_starts, bool wants_logits) const {
  std::vector<Token> storage;
  return find_start(shortened(prompt, message_starts, storage), wants_logits).plan;
}

memory::ResumePlan Lane::plan_reading(std::span<const Token> prompt,
                                      std::span<const int32_t> message_starts,
                                      bool wants_logits) const {
  std::vector<Token> storage;
  return plan_whole(shortened(prompt, message_starts, storage), wants_logits);
}

memory::ResumePlan Lane::plan_whole(std::span<const Token> prompt, bool wants_logits) const {
  Start found = find_start(prompt, wants_logits);
  return engine_->memory().extended(*found.sequence, std::move(found.plan), int32_t(prompt.size()));
}

// REQUIRES: the prompt fits into the context. What the own sequence loses is kept by the engine.
Result<PromptReport> Lane::start_whole(std::span<const Token> prompt, bool asks_store) {
  prompt_end_ = int32_t(prompt.size());
  return read_from_best(prompt, asks_store);
}

StoredPrefix* Lane::look_up(std::span<const Token> prompt,
                            std::span<const int32_t> message_starts) {
  std::vector<Token> storage;
  return look_up_whole(shortened(prompt, message_starts, storage));
}

StoredPrefix* Lane::look_up_again() {
  return look_up_whole(std::span(pending_).subspan(next_));
}

StoredPrefix* Lane::look_up_whole(std::span<const Token> tokens) {
  if (engine_->sequence_store() == nullptr || tokens.empty()) return nullptr;
  if (!reuses_prefixes()) return nullptr;
  const bool is_same = stored_ && std::ranges::equal(stored_->prompt(), tokens);
  if (!is_same) {
    stored_ = engine_->look_up_stored(selection_, tokens, find_start(tokens, true).plan.resume);
  }
  return stored_.get();
}

// Whether the store had more of the tokens than memory, and where.
void Lane::wait_for_stored(std::span<const Token> tokens, PromptReport& report) {
  StoredPrefix* const stored = look_up_whole(tokens);
  if (stored == nullptr) return;
  stored->wait();
  report.from_store = stored->has_brought();
  report.from_tier = stored->origin() == store::Origin::tier;
  report.from_peer = stored->origin() == store::Origin::peer;
  report.tier = stored->tier_note();
  stored_.reset();
}

const StoredPrefix* Lane::read_stored() const {
  const bool is_read = stored_ && stored_->stage() == StoredPrefix::Stage::reading;
  return is_read ? stored_.get() : nullptr;
}

memory::ResumePlan Lane::plan_stored(const StoredPrefix& stored) const {
  memory::Memory& memory = engine_->memory();
  const memory::ResumePlan resumed{.target = stored.resume(), .resume = stored.resume()};
  memory::ResumePlan plan = memory.extended(memory.new_sequence(selection_.variant()), resumed,
                                            int32_t(stored.prompt().size()));
  if (stored.stage() == StoredPrefix::Stage::found) plan.new_bytes += stored.needed_bytes();
  return plan;
}

// What is read again in the midst of an answer is not looked for in the store: others wait.
Result<PromptReport> Lane::read_from_best(std::span<const Token> prompt, bool asks_store) {
  pending_.clear();
  next_ = 0;
  is_preempted_ = false;
  PromptReport report;
  if (asks_store) wait_for_stored(prompt, report);
  Start found = find_start(prompt, true);
  const int32_t prompt_tokens = int32_t(prompt.size());
  report.prompt_tokens = prompt_tokens;
  report.from_cache = found.sequence != &sequence_;
  report.plan = found.plan;
  CAIRN_TRY(memory::Sequence start, engine_->memory().at(*found.sequence, report.plan.resume));
  std::swap(sequence_, start);
  if (ends_at_anchor(sequence_)) ++engine_->memory().snapshot_counts().restored;
  computed_at_ = -1;
  const bool loses_tokens =
      report.from_cache ? start.length() > 0 : start.length() > sequence_.length();
  if (loses_tokens) engine_->cache().keep(std::move(start));
  report.reused_tokens = report.plan.resume;
  report.computed_tokens = prompt_tokens - report.reused_tokens;
  reads_prompt_ = true;
  resumed_at_ = sequence_.length();
  const auto rest = prompt.subspan(size_t(resumed_at_));
  pending_.assign(rest.begin(), rest.end());
  place_marks(prompt_tokens, found.branch);
  if (!wants_rows()) CAIRN_TRY(end_prompt());
  return report;
}

// Starts of messages; and where the model cannot resume everywhere, two places more: where
// sequences part, which is seen when it happens and paid once; and a place from which another end
// of the last message is soon read, since what follows a long document is often asked otherwise.
void Lane::place_marks(int32_t prompt_tokens, int32_t branch) {
  marks_.clear();
  for (const int32_t start : message_starts_) {
    if (start >= resumed_at_) marks_.push_back({start, AnchorKind::message_start});
  }
  if (resumes_everywhere()) return;
  add_mark({branch, AnchorKind::branch});
  add_mark({prompt_tokens - kClosingTokens, AnchorKind::closing});
}

bool Lane::resumes_everywhere() const {
  const auto& groups = engine_->memory().layout().groups;
  return std::none_of(groups.begin(), groups.end(), [](const auto& group) {
    return group.has_window() || group.kind == memory::GroupKind::recurrent;
  });
}

// REQUIRES: its kind is not message_start. None where the position before it does as well.
void Lane::add_mark(Mark mark) {
  const auto next = std::upper_bound(
      marks_.begin(), marks_.end(), mark.position,
      [](int32_t position, const Mark& other) { return position < other.position; });
  const int32_t before = next == marks_.begin() ? resumed_at_ : std::prev(next)->position;
  const bool is_covered = mark.kind == AnchorKind::closing && next != marks_.end();
  if (is_covered || mark.position - before < kWorthTokens) return;
  marks_.insert(next, mark);
}

LaneDemand Lane::demand() const {
  if (!wants_rows()) return {};
  const int32_t rows = int32_t(pending_.size() - next_);
  const memory::ResumePlan plan = engine_->memory().plan(sequence_, sequence_.length() + rows);
  return {.rows = rows,
          .outputs = reader_ == nullptr ? 1 : rows,
          .replay_rows = plan.recurrence_steps,
          .new_bytes = plan.new_bytes};
}

StepItem Lane::next(int32_t row_count_max) {
  CHECK(wants_rows() && row_count_max > 0);
  const int32_t begin = sequence_.length();
  const std::span<const Token> rest = std::span(pending_).subspan(next_);
  item_tokens_ = std::min(row_count_max, wanted_rows());
  if (row_count_max > item_tokens_ && !drafts_.next.empty()) return drafted_item(row_count_max);
  drafts_.item.clear();
  StepItem item{.sequence = &sequence_,
                .tokens = rest.first(size_t(item_tokens_)),
                .is_answer = begin >= prompt_end_};
  item.keeps_hidden = size_t(item_tokens_) == rest.size();
  const int32_t first_output = reader_ != nullptr  ? 0
                               : item.keeps_hidden ? item_tokens_ - 1
                                                   : item_tokens_;
  outputs_.resize(size_t(item_tokens_ - first_output));
  std::iota(outputs_.begin(), outputs_.end(), first_output);
  item.outputs = outputs_;
  if (!reads_prompt_) return item;
  captures_.clear();
  capture_kinds_.clear();
  for (const Mark& mark : marks_) {
    if (mark.position == begin && begin == resumed_at_) item.anchors_start = true;
    if (mark.position <= begin || mark.position > begin + item_tokens_) continue;
    captures_.push_back(mark.position - begin);
    capture_kinds_.push_back(mark.kind);
  }
  item.captures = captures_;
  item.capture_kinds = capture_kinds_;
  return item;
}

// The row that is wanted, and those of drafts; the logits of each.
StepItem Lane::drafted_item(int32_t row_count_max) {
  const size_t draft_count = std::min(drafts_.next.size(), size_t(row_count_max) - 1);
  drafts_.item.assign(1, pending_[next_]);
  drafts_.item.insert(drafts_.item.end(), drafts_.next.begin(),
                      drafts_.next.begin() + std::ptrdiff_t(draft_count));
  drafts_.next.clear();
  outputs_.resize(drafts_.item.size());
  std::iota(outputs_.begin(), outputs_.end(), 0);
  return {.sequence = &sequence_,
          .tokens = drafts_.item,
          .outputs = outputs_,
          .draft_count = int32_t(draft_count),
          .keeps_hidden = true,
          .is_answer = true};
}

int32_t Lane::draft_count_max() const {
  if (!wants_rows() || is_reading()) return 0;
  const int32_t room = engine_->options().context_tokens - sequence_.length() - 1;
  int32_t count = std::min({room, engine_->runner().row_count_max() - 1, kDraftsMax});
  // Of more rows than the log takes only all can be accepted.
  const memory::Memory& memory = engine_->memory();
  const bool has_states = memory.layout().recurrent_group >= 0;
  if (has_states) count = std::min(count, memory.log_step() - 1);
  return std::max(count, 0);
}

void Lane::draft(std::span<const Token> tokens) {
  CHECK(int32_t(tokens.size()) <= draft_count_max());
  drafts_.next.assign(tokens.begin(), tokens.end());
}

// Memory may have had no room for all of them.
void Lane::begin_walk(const StepOutputs& outputs) {
  CHECK(outputs.count() > 0 && item_tokens_ == 1);
  whole_text();  // Grows with the walk; the sequence has the row's own token only behind it.
  output_ = outputs.first();
  computed_at_ = engine_->runner().run_count();
  const size_t row_count = std::min(size_t(outputs.count()), drafts_.item.size());
  drafts_.walked = row_count > 0 ? std::span<const Token>(drafts_.item).first(row_count).subspan(1)
                                 : std::span<const Token>();
  drafts_.walked_rows = 1;
  ++next_;
}

std::optional<Token> Lane::next_draft() const {
  const size_t index = size_t(drafts_.walked_rows) - 1;
  if (index >= drafts_.walked.size()) return std::nullopt;
  return drafts_.walked[index];
}

void Lane::confirm_draft() {
  text_.push_back(*next_draft());
  ++drafts_.walked_rows;
  ++output_;
}

int32_t Lane::end_walk() {
  drafts_.walked = {};
  return std::exchange(drafts_.walked_rows, 0);
}

std::span<const Token> Lane::whole_text() {
  CHECK(!is_reading());
  if (text_.empty()) {
    text_.assign(sequence_.tokens().begin(), sequence_.tokens().end());
    text_.insert(text_.end(), pending_.begin() + std::ptrdiff_t(next_), pending_.end());
  }
  return text_;
}

int32_t Lane::take(const StepOutputs& outputs) {
  if (outputs.count() > 0) {
    output_ = outputs.first() + outputs.count() - 1;
    computed_at_ = engine_->runner().run_count();
  }
  const int32_t known = handed_out_ - sequence_.length();
  if (reader_ != nullptr && known < outputs.count()) {
    const int32_t skipped = std::max(known, 0);
    reader_->take(sequence_.length() + skipped, outputs.without_first(skipped));
    handed_out_ = sequence_.length() + outputs.count();
  }
  next_ += size_t(item_tokens_);
  return item_tokens_;
}

Status Lane::settle() {
  const bool is_first = reads_prompt_ && sequence_.length() == resumed_at_ + item_tokens_;
  if (is_first) CAIRN_TRY(drop_anchors_of_earlier_turns());
  return reads_prompt_ && !wants_rows() ? end_prompt() : Status(Ok{});
}

// States are large: of earlier turns only those stay that somebody is likely to come back to.
// Without recurrence an anchor costs next to nothing, so all but the closing ones stay.
Status Lane::drop_anchors_of_earlier_turns() {
  memory::Memory& memory = engine_->memory();
  const bool is_recurrent = memory.layout().recurrent_group >= 0;
  for (size_t index = sequence_.anchors().size(); index-- > 0;) {
    const memory::Anchor& anchor = sequence_.anchors()[index];
    const bool is_likely =
        anchor.kind == AnchorKind::message_start || anchor.kind == AnchorKind::branch;
    const bool is_cheap = !is_recurrent && anchor.kind != AnchorKind::closing;
    const bool stays = is_likely || is_cheap || anchor.position >= resumed_at_;
    if (!stays) CAIRN_TRY(memory.drop_anchor(sequence_, index));
  }
  return Ok{};
}

Status Lane::end_prompt() {
  reads_prompt_ = false;
  reader_ = nullptr;
  memory::Memory& memory = engine_->memory();
  // Where nothing was read the sequence may be suspended; the state is not worth deriving for an
  // anchor. What was read again after a preemption ends somewhere in an answer.
  if (!memory.needs_replay(sequence_) && sequence_.length() == prompt_end_) {
    CAIRN_TRY(memory.keep_anchor(sequence_, AnchorKind::prompt_end));
    if (reuses_prefixes()) engine_->offer_prompt(selection_, sequence_);
  }
  if (engine_->options().keeps_all_windows) return Ok{};
  memory.protect_from(sequence_,
                      message_starts_.empty() ? sequence_.length() : message_starts_.back());
  return Ok{};
}

Result<Token> Lane::sample(sample::Sampler& sampler, const sample::TokenMask* allowed,
                           std::span<const float> given) {
  return sampler.sample({.logits = given.empty() ? logits() : given,
                         .position = int32_t(text().size()),
                         .history = text(),
                         .allowed = allowed});
}

Status Lane::push(Token token) {
  CHECK(!wants_rows());
  if (sequence_.length() == engine_->options().context_tokens) return shift(token);
  if (!text_.empty()) text_.push_back(token);
  pending_.assign(1, token);
  next_ = 0;
  return Ok{};
}

// Positions are part of keys and states, so nothing can be moved: what stays is read again.
Status Lane::shift(Token token) {
  std::vector<Token> whole(text().begin(), text().end());
  whole.push_back(token);
  CAIRN_TRY(cut_, find_cut(int64_t(whole.size()), turn_starts_));
  CAIRN_TRY(start_cut(whole, false));
  return Ok{};
}

std::optional<ContextShift> Lane::next_shift() const {
  const EngineOptions& options = engine_->options();
  if (options.context_policy == ContextPolicy::stop) return std::nullopt;
  const int64_t token_count = int64_t(options.context_tokens) + cut_.left_out + 1;
  const ContextCut cut = cut_context(token_count, turn_starts_, limits());
  const int32_t kept = std::min(cut.kept, sequence_.length());
  const int32_t resume = engine_->memory().plan(sequence_, kept).resume;
  return ContextShift{.left_out_tokens = cut.left_out - cut_.left_out,
                      .left_out_turns = cut.turns - cut_.turns,
                      .read_tokens = int32_t(token_count - cut.left_out) - resume};
}

int32_t Lane::planned_prefix(std::span<const Token> prompt) const {
  const int32_t held = memory::common_prefix(sequence_.tokens(), prompt);
  if (held < sequence_.length() || !wants_rows()) return held;
  const std::span<const Token> rest = std::span(pending_).subspan(next_);
  return held + memory::common_prefix(rest, prompt.subspan(size_t(held)));
}

void Lane::expect_branch(int32_t position) {
  const bool is_ahead = wants_rows() && reads_prompt_ && position > sequence_.length();
  if (is_ahead && !resumes_everywhere()) add_mark({position, AnchorKind::branch});
}

void Lane::preempt() {
  const std::span<const Token> held = sequence_.tokens();
  pending_.erase(pending_.begin(), pending_.begin() + std::ptrdiff_t(next_));
  pending_.insert(pending_.begin(), held.begin(), held.end());
  next_ = 0;
  engine_->cache().keep(std::move(sequence_));
  sequence_ = engine_->memory().new_sequence(selection_.variant());
  computed_at_ = -1;
  is_preempted_ = true;
}

memory::ResumePlan Lane::resume_plan() const {
  return plan_whole(std::span(pending_).subspan(next_), true);
}

Status Lane::resume() {
  CHECK(is_preempted_);
  const std::vector<Token> tokens = std::move(pending_);
  CAIRN_TRY(read_from_best(tokens, true));
  return Ok{};
}

std::span<const Token> Lane::text() const {
  return text_.empty() ? sequence_.tokens() : std::span<const Token>(text_);
}

Status Lane::finish_turn() {
  memory::Memory& memory = engine_->memory();
  if (sequence_.length() == 0) return Ok{};
  if (!memory.needs_replay(sequence_)) {
    // Where the log derives the state at the end, it need not be kept.
    if (!memory.suspend(sequence_)) {
      CAIRN_TRY(memory.keep_anchor(sequence_, AnchorKind::answer_end));
    }
  }
  engine_->cache().keep(sequence_);
  engine_->store_behind(selection_, sequence_);
  return Ok{};
}

Result<size_t> LaneBatch::step(std::span<Lane* const> lanes) {
  stepped_.clear();
  items_.clear();
  int32_t free_rows = engine_->runner().row_count_max();
  for (Lane* lane : lanes) {
    if (!lane->wants_rows() || free_rows == 0) continue;
    stepped_.push_back(lane);
    items_.push_back(lane->next(free_rows));
    free_rows -= int32_t(items_.back().tokens.size());
  }
  const auto take = [this](size_t item, const StepOutputs& outputs) {
    return stepped_[item]->take(outputs);
  };
  CAIRN_TRY(const StepReport report, engine_->step(items_, take));
  for (size_t item = 0; item < report.item_count; ++item) CAIRN_TRY(stepped_[item]->settle());
  return report.item_count;
}

Status LaneBatch::step(Lane& lane, DraftedAnswer& answer) {
  draft_rows_.begin(engine_->runner().row_count_max());
  draft_rows_.add(&answer, lane.sequence().length());
  draft_rows_.choose();
  const StepItem item = lane.next(draft_rows_.rows(0));
  const Clock::time_point begin = Clock::now();
  const auto take = [&](size_t, const StepOutputs& outputs) { return answer.take(outputs); };
  CAIRN_TRY(const StepReport report, engine_->step(std::span(&item, 1), take));
  draft_rows_.learn(seconds_since(begin), report.replayed_rows);
  return lane.settle();
}

}  // namespace cairn
