// Reading prompts in steps, and single tokens after them.
#include "engine/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cairn {

namespace {

using memory::AnchorKind;

int32_t common_prefix(std::span<const Token> a, std::span<const Token> b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return int32_t(end - a.begin());
}

// Fewer tokens to read count for more than fewer steps of the recurrence.
bool is_better(const memory::ResumePlan& a, const memory::ResumePlan& b) {
  if (a.resume != b.resume) return a.resume > b.resume;
  return a.recurrence_steps < b.recurrence_steps;
}

}  // namespace

Generator::Generator(Engine* engine)
    : engine_(engine),
      selection_(engine->usual_selection()),
      sequence_(engine->memory().new_sequence(selection_.variant())) {}

void Generator::select(Selection selection) {
  selection_ = std::move(selection);
  if (selection_.variant() == sequence_.variant()) return;
  engine_->cache().keep(std::move(sequence_));
  sequence_ = engine_->memory().new_sequence(selection_.variant());
  computed_at_ = -1;
  left_out_tokens_ = 0;
}

int32_t Generator::room() const {
  const int32_t room = engine_->options().context_tokens - sequence_.length();
  return engine_->options().context_policy == ContextPolicy::shift ? std::max(room, 1) : room;
}

// Another timeline may have been computed meanwhile; the hidden row brings the logits back.
std::span<const float> Generator::logits() const {
  Runner& runner = engine_->runner();
  if (runner.run_count() != computed_at_) {
    runner.restore_logits(engine_->memory().hidden(sequence_), sequence_.variant());
    computed_at_ = runner.run_count();
  }
  return runner.logits(0);
}

Status Generator::check(std::span<const Token> prompt) const {
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

// How many tokens behind the kept ones do not fit: always a whole number of halves of the room
// there, so that a conversation that grows is cut at the same place for many turns.
Result<int32_t> Generator::tokens_to_leave_out(int64_t token_count) const {
  const EngineOptions& options = engine_->options();
  const int64_t excess = token_count - options.context_tokens;
  if (excess <= 0) return 0;
  if (options.context_policy == ContextPolicy::stop) {
    return fail(ErrorCode::no_room, "context: {} tokens are needed, {} fit", token_count,
                options.context_tokens);
  }
  const int64_t half = (options.context_tokens - options.shift_keep) / 2;
  return int32_t((excess + half - 1) / half * half);
}

std::vector<Token> Generator::without(std::span<const Token> tokens, int32_t left_out) const {
  const size_t kept = size_t(engine_->options().shift_keep);
  std::vector<Token> result(tokens.begin(), tokens.begin() + std::ptrdiff_t(kept));
  const auto rest = tokens.subspan(kept + size_t(left_out));
  result.insert(result.end(), rest.begin(), rest.end());
  return result;
}

Result<PromptReport> Generator::read(std::span<const Token> prompt, const ReadOptions& options) {
  CAIRN_TRY(check(prompt));
  CAIRN_TRY(const int32_t left_out, tokens_to_leave_out(int64_t(prompt.size())));
  left_out_tokens_ = 0;
  if (left_out == 0) return read_whole(prompt, options);
  const int32_t kept = engine_->options().shift_keep;
  std::vector<int32_t> message_starts;
  for (const int32_t start : options.message_starts) {
    if (start <= kept) message_starts.push_back(start);
    if (start > kept + left_out) message_starts.push_back(start - left_out);
  }
  CAIRN_TRY(PromptReport report,
            read_whole(without(prompt, left_out),
                       {.message_starts = message_starts, .on_progress = options.on_progress}));
  report.left_out_tokens = left_out;
  return report;
}

// REQUIRES: the prompt fits into the context.
Result<PromptReport> Generator::read_whole(std::span<const Token> prompt,
                                           const ReadOptions& options) {
  CAIRN_TRY(PromptReport report, resume(prompt));
  const int32_t prompt_tokens = int32_t(prompt.size());
  if (report.computed_tokens > 0) {
    CAIRN_TRY(replay_if_needed());
    CAIRN_TRY(drop_anchors_of_earlier_turns());
    const auto starts = options.message_starts;
    if (std::find(starts.begin(), starts.end(), sequence_.length()) != starts.end()) {
      CAIRN_TRY(engine_->memory().keep_anchor(sequence_, AnchorKind::message_start));
    }
  }
  std::vector<int32_t> captures;
  while (sequence_.length() < prompt_tokens) {
    const int32_t begin = sequence_.length();
    const int32_t count = std::min(engine_->runner().row_count_max(), prompt_tokens - begin);
    captures.clear();
    for (const int32_t start : options.message_starts) {
      if (start > begin && start <= begin + count) captures.push_back(start - begin);
    }
    const bool is_last = begin + count == prompt_tokens;
    CAIRN_TRY(append(prompt.subspan(size_t(begin), size_t(count)), captures, is_last));
    if (options.on_progress && !options.on_progress(sequence_.length(), prompt_tokens)) {
      return fail(ErrorCode::cancelled, "prompt: stopped after {} of {} tokens", sequence_.length(),
                  prompt_tokens);
    }
  }
  CAIRN_TRY(end_prompt(options.message_starts));
  return report;
}

// The timeline from which the fewest tokens have to be read: the own one, or one that the engine
// keeps.
struct Generator::Start {
  const memory::Sequence* sequence;
  memory::ResumePlan plan;
};

Generator::Start Generator::find_start(std::span<const Token> prompt, bool wants_logits) const {
  const int32_t shared = common_prefix(sequence_.tokens(), prompt);
  const bool is_whole = shared == int32_t(prompt.size());
  const Start own{&sequence_, engine_->memory().plan(sequence_, shared, is_whole && wants_logits)};
  const memory::PrefixCache::Found found =
      engine_->cache().find(prompt, sequence_.variant(), wants_logits);
  const bool is_kept = found.sequence != nullptr && is_better(found.plan, own.plan);
  Start start = is_kept ? Start{found.sequence, found.plan} : own;
  if (found.foreign_tokens > start.plan.target) {
    start.plan.limited_by = "adapters";
    start.plan.reason =
        fmt::format("{} tokens are held as other adapters read them.", found.foreign_tokens);
  }
  return start;
}

memory::ResumePlan Generator::plan(std::span<const Token> prompt, bool wants_logits) const {
  return find_start(prompt, wants_logits).plan;
}

// What the own timeline loses by that is kept by the engine.
Result<PromptReport> Generator::resume(std::span<const Token> prompt) {
  memory::Memory& memory = engine_->memory();
  const Start found = find_start(prompt, true);
  const int32_t prompt_tokens = int32_t(prompt.size());
  PromptReport report{.prompt_tokens = prompt_tokens,
                      .from_cache = found.sequence != &sequence_,
                      .plan = found.plan};
  CAIRN_TRY(memory::Sequence start, memory.at(*found.sequence, report.plan.resume));
  std::swap(sequence_, start);
  computed_at_ = -1;
  const bool loses_tokens =
      report.from_cache ? start.length() > 0 : start.length() > sequence_.length();
  if (loses_tokens) engine_->cache().keep(std::move(start));
  report.reused_tokens = report.plan.resume;
  report.computed_tokens = prompt_tokens - report.reused_tokens;
  return report;
}

// Brings back the state of a resting timeline, which only reading on needs.
Status Generator::replay_if_needed() {
  memory::Memory& memory = engine_->memory();
  if (!memory.needs_replay(sequence_)) return Ok{};
  Runner& runner = engine_->runner();
  CAIRN_TRY(memory::Replay replay,
            engine_->cache().begin_replay(sequence_, runner.row_count_max()));
  runner.replay(replay);
  replay.commit();
  return Ok{};
}

// States are large: of earlier turns only the starts of messages keep theirs. Without recurrence an
// anchor costs next to nothing, so all of them stay.
Status Generator::drop_anchors_of_earlier_turns() {
  memory::Memory& memory = engine_->memory();
  if (memory.layout().recurrent_group < 0) return Ok{};
  for (size_t index = sequence_.anchors().size(); index-- > 0;) {
    const memory::Anchor& anchor = sequence_.anchors()[index];
    const bool stays =
        anchor.kind == AnchorKind::message_start || anchor.position == sequence_.length();
    if (!stays) CAIRN_TRY(memory.drop_anchor(sequence_, index));
  }
  return Ok{};
}

// Where there is no room for states on the way, it goes on without them.
Result<memory::Transaction> Generator::begin(memory::StepRequest request) {
  memory::PrefixCache& cache = engine_->cache();
  Result<memory::Transaction> begun = cache.begin(sequence_, request);
  const bool has_room = begun || begun.error().code != ErrorCode::no_room;
  if (has_room || request.captures.empty()) return begun;
  request.captures = {};
  return cache.begin(sequence_, request);
}

Status Generator::append(std::span<const Token> tokens, std::span<const int32_t> captures,
                         bool keeps_hidden) {
  CAIRN_TRY(memory::Transaction transaction,
            begin({.tokens = tokens, .captures = captures, .keeps_hidden = keeps_hidden}));
  const int32_t last = int32_t(tokens.size()) - 1;
  const size_t output_count = keeps_hidden ? 1 : 0;
  const BatchPart part{.transaction = &transaction, .outputs = {&last, output_count}};
  Runner& runner = engine_->runner();
  runner.run({&part, 1});
  if (keeps_hidden) runner.keep_hidden(transaction, 0);
  computed_at_ = runner.run_count();
  transaction.commit(int32_t(tokens.size()));
  return Ok{};
}

Status Generator::end_prompt(std::span<const int32_t> message_starts) {
  memory::Memory& memory = engine_->memory();
  // Where nothing was read the timeline may rest; the state is not worth deriving for an anchor.
  if (!memory.needs_replay(sequence_)) {
    CAIRN_TRY(memory.keep_anchor(sequence_, AnchorKind::prompt_end));
  }
  if (engine_->options().keeps_all_windows) return Ok{};
  memory.protect_from(sequence_,
                      message_starts.empty() ? sequence_.length() : message_starts.back());
  return Ok{};
}

Result<Token> Generator::sample(sample::Sampler& sampler, const sample::TokenMask* allowed) {
  return sampler.sample({.logits = logits(),
                         .position = sequence_.length(),
                         .history = sequence_.tokens(),
                         .allowed = allowed});
}

Status Generator::advance(Token token) {
  if (sequence_.length() == engine_->options().context_tokens) return shift(token);
  CAIRN_TRY(replay_if_needed());
  return append({&token, 1}, {}, true);
}

// Positions are part of keys and states, so nothing can be moved: what stays is read anew.
Status Generator::shift(Token token) {
  std::vector<Token> tokens(sequence_.tokens().begin(), sequence_.tokens().end());
  tokens.push_back(token);
  CAIRN_TRY(const int32_t left_out, tokens_to_leave_out(int64_t(tokens.size())));
  CAIRN_TRY(read_whole(without(tokens, left_out), {}));
  left_out_tokens_ += left_out;
  return Ok{};
}

Status Generator::finish_turn() {
  memory::Memory& memory = engine_->memory();
  if (sequence_.length() == 0) return Ok{};
  if (!memory.needs_replay(sequence_)) {
    // Where the log derives the state at the end, it need not be kept.
    if (!memory.rest(sequence_)) {
      CAIRN_TRY(memory.keep_anchor(sequence_, AnchorKind::answer_end));
    }
  }
  engine_->cache().keep(sequence_);
  return Ok{};
}

}  // namespace cairn
