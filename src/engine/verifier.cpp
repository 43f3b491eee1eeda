// Programs and their checks.
#include "engine/verifier.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "base/check.h"
#include "engine/generator.h"

namespace cairn {

namespace {

enum class Kind : uint8_t {
  append,
  sample,
  rewind,
  fork,
  edit,
  regenerate,
  speculate,
  cancel,
  evict,
  partners,
  turn,
  recall,
  drop,
  count
};
constexpr std::string_view kKindNames[] = {"append",     "sample",    "rewind", "fork",  "edit",
                                           "regenerate", "speculate", "cancel", "evict", "partners",
                                           "turn",       "recall",    "drop"};
constexpr size_t kSequencesMax = 4;
// Around pages of 32 tokens and the log's steps, where off-by-one errors live.
constexpr int32_t kLengths[] = {1, 2, 3, 7, 8, 9, 31, 32, 33, 40, 63, 64, 65};

int64_t count_differing_bits(std::span<const float> a, std::span<const float> b) {
  CHECK(a.size() == b.size());
  int64_t bits = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    bits += std::popcount(std::bit_cast<uint32_t>(a[i]) ^ std::bit_cast<uint32_t>(b[i]));
  }
  return bits;
}

class Program {
 public:
  Program(Engine& engine, int32_t tokens_max, uint64_t seed)
      : engine_(engine),
        tokens_max_(tokens_max),
        random_(seed),
        generator_(&engine),
        base_(engine.memory().new_sequence()),
        reference_(engine.memory().new_sequence()) {}

  // Reads the long text twice: once in random pieces, to be forked, and once as it is compared
  // with.
  Status begin() {
    const int32_t base_count = tokens_max_ - VerifyOptions::kProgramTokens;
    if (base_count > 0) {
      const std::vector<Token> tokens = random_tokens(base_count);
      VerifyRow unused;
      row_ = &unused;
      CAIRN_TRY(read_in_pieces(base_, tokens));
      CAIRN_TRY(read(reference_, tokens, {}, false));
      // Conversations through the generator begin with it too.
      CAIRN_TRY(memory::Sequence known, memory().fork(base_));
      engine_.cache().keep(std::move(known));
    }
    return add_sequence();
  }

  // Does one random operation and checks what it has left.
  Status operate(std::vector<VerifyRow>& rows) {
    const Kind kind = choose();
    VerifyRow& row = rows[size_t(kind)];
    ++row.count;
    row_ = &row;
    CAIRN_TRY(operate(kind));
    if (kind == Kind::turn || kind == Kind::recall) return check_generator();
    if (!sequences_.empty()) return check(sequences_[touched_]);
    return add_sequence();
  }

  int32_t index() const { return operation_index_; }

 private:
  int32_t pick(int32_t count) { return int32_t(random_() % uint64_t(std::max(1, count))); }
  memory::Memory& memory() { return engine_.memory(); }
  memory::Sequence& touched() { return sequences_[touched_]; }
  int32_t room(const memory::Sequence& sequence) const { return tokens_max_ - sequence.length(); }

  Status add_sequence() {
    if (base_.length() == 0) {
      sequences_.push_back(memory().new_sequence());
      return Ok{};
    }
    CAIRN_TRY(memory::Sequence fork, memory().fork(base_));
    sequences_.push_back(std::move(fork));
    return Ok{};
  }

  // Where to go back to: mostly not far, since people do so, but anywhere at times.
  int32_t earlier(int32_t length) {
    const int32_t near = std::min(length, VerifyOptions::kProgramTokens);
    return pick(4) == 0 ? pick(length) : length - 1 - pick(near);
  }

  std::vector<Token> random_tokens(int32_t count) {
    std::vector<Token> tokens;
    for (int32_t i = 0; i < count; ++i)
      tokens.push_back(Token(pick(engine_.size().vocabulary_count)));
    return tokens;
  }

  Kind choose() {
    ++operation_index_;
    touched_ = size_t(pick(int32_t(sequences_.size())));
    const int32_t length = touched().length();
    if (length == 0) return Kind::append;
    for (;;) {
      const Kind kind = Kind(pick(int32_t(Kind::count)));
      const bool grows = kind == Kind::append || kind == Kind::sample || kind == Kind::speculate ||
                         kind == Kind::partners;
      if (grows && room(touched()) < 16) continue;
      if (kind == Kind::fork && sequences_.size() == kSequencesMax) continue;
      if (kind == Kind::partners && sequences_.size() < 2) continue;
      return kind;
    }
  }

  Status operate(Kind kind) {
    switch (kind) {
      case Kind::append:
        return append(touched(), random_length(touched()));
      case Kind::sample:
        return sample();
      case Kind::rewind:
        return rewind(earlier(touched().length() + 1));
      case Kind::fork:
        return fork();
      case Kind::edit:
        return edit();
      case Kind::regenerate:
        return regenerate();
      case Kind::speculate:
        return speculate();
      case Kind::cancel:
        return cancel();
      case Kind::evict:
        return evict();
      case Kind::partners:
        return step_with_partner();
      case Kind::turn:
        return turn();
      case Kind::recall:
        return recall();
      case Kind::drop:
        sequences_.erase(sequences_.begin() + std::ptrdiff_t(touched_));
        touched_ = 0;
        return Ok{};
      case Kind::count:
        break;
    }
    return Ok{};
  }

  int32_t random_length(const memory::Sequence& sequence) {
    const int32_t length = kLengths[size_t(pick(int32_t(std::size(kLengths))))];
    return std::clamp(length, 1, std::max(1, room(sequence)));
  }

  std::vector<int32_t> random_captures(int32_t token_count) {
    std::vector<int32_t> captures;
    for (int32_t count = 1; count < token_count; ++count) {
      if (pick(12) == 0) captures.push_back(count);
    }
    return captures;
  }

  // Brings back a state that only the log has.
  Status wake(memory::Sequence& sequence) {
    if (!memory().needs_replay(sequence)) return Ok{};
    CAIRN_TRY(memory::Replay replay,
              memory().begin_replay(sequence, engine_.runner().replay_rows_max()));
    row_->recurrence_steps += replay.row_count();
    engine_.runner().replay({&replay, 1});
    replay.commit();
    return Ok{};
  }

  Status step(std::span<const StepItem> items, StepAcceptor accept, bool counts) {
    CAIRN_TRY(const StepReport report, engine_.step(items, accept));
    if (report.item_count < items.size()) {
      return fail(ErrorCode::memory_full,
                  "verify: expected room for {} sequences, found room for {}", items.size(),
                  report.item_count);
    }
    if (!counts) return Ok{};
    row_->recurrence_steps += report.replayed_rows;
    row_->computed_tokens += report.computed_rows;
    return Ok{};
  }

  // Reads tokens, in steps as long as they may be; the last one's hidden row is kept. Leaves logits
  // in the runner.
  Status read(memory::Sequence& sequence, std::span<const Token> tokens,
              std::span<const int32_t> captures, bool counts) {
    const size_t row_count_max = size_t(engine_.runner().row_count_max());
    while (tokens.size() > row_count_max) {
      CAIRN_TRY(read_step(sequence, tokens.first(row_count_max), {}, counts));
      tokens = tokens.subspan(row_count_max);
      captures = {};
    }
    return read_step(sequence, tokens, captures, counts);
  }

  // The same, in steps of random lengths, with states kept here and there.
  Status read_in_pieces(memory::Sequence& sequence, std::span<const Token> tokens) {
    while (!tokens.empty()) {
      const int32_t most = std::min(engine_.runner().row_count_max(), int32_t(tokens.size()));
      const int32_t count = 1 + pick(most);
      CAIRN_TRY(read_step(sequence, tokens.first(size_t(count)), random_captures(count), true));
      tokens = tokens.subspan(size_t(count));
    }
    return Ok{};
  }

  Status read_step(memory::Sequence& sequence, std::span<const Token> tokens,
                   std::span<const int32_t> captures, bool counts) {
    const int32_t last = int32_t(tokens.size()) - 1;
    const StepItem item{.sequence = &sequence,
                        .tokens = tokens,
                        .outputs = {&last, 1},
                        .captures = captures,
                        .keeps_hidden = true};
    return step(
        {&item, 1}, [&](size_t, const StepOutputs&) { return last + 1; }, counts);
  }

  Status append(memory::Sequence& sequence, int32_t count) {
    const std::vector<Token> tokens = random_tokens(count);
    row_->reused_tokens += sequence.length();
    CAIRN_TRY(read(sequence, tokens, random_captures(count), true));
    if (pick(3) > 0) return Ok{};
    return memory().keep_anchor(sequence, memory::AnchorKind::message_start);
  }

  // Greedy steps of one token, as an answer is made.
  Status sample() {
    const int32_t count = std::min(random_length(touched()), 24);
    row_->reused_tokens += touched().length();
    for (int32_t i = 0; i < count; ++i) {
      const std::vector<Token> token = random_tokens(1);
      CAIRN_TRY(read(touched(), token, {}, true));
    }
    return Ok{};
  }

  // Whatever the memory cannot give back is read again, so that the position is reached exactly.
  Status rewind(int32_t position) {
    const std::vector<Token> tokens(touched().tokens().begin(), touched().tokens().end());
    CAIRN_TRY(memory::Sequence back, memory().at(touched(), position));
    row_->reused_tokens += back.length();
    touched() = std::move(back);
    const int32_t missing = position - touched().length();
    if (missing == 0) return Ok{};
    return read(touched(), std::span(tokens).subspan(size_t(touched().length()), size_t(missing)),
                random_captures(missing), true);
  }

  Status fork() {
    CAIRN_TRY(memory::Sequence twin, memory().fork(touched()));
    row_->reused_tokens += twin.length();
    sequences_.push_back(std::move(twin));
    // Either of the two may go on first.
    if (pick(2) == 0) touched_ = sequences_.size() - 1;
    return room(touched()) > 0 ? append(touched(), 1) : Status(Ok{});
  }

  Status edit() {
    CAIRN_TRY(rewind(earlier(touched().length())));
    return append(touched(), random_length(touched()));
  }

  // Back to a position whose hidden row was kept, and on from there.
  Status regenerate() {
    const std::span<const memory::Anchor> anchors = touched().anchors();
    if (anchors.empty()) {
      CAIRN_TRY(wake(touched()));
      return memory().keep_anchor(touched(), memory::AnchorKind::prompt_end);
    }
    const int32_t position = anchors[size_t(pick(int32_t(anchors.size())))].position;
    return rewind(position);
  }

  // A draft of which the first tokens are accepted, or none.
  Status speculate() {
    const int32_t drafted = 1 + pick(7);
    const std::vector<Token> tokens = random_tokens(drafted);
    std::vector<int32_t> outputs(size_t(drafted), 0);
    std::iota(outputs.begin(), outputs.end(), 0);
    row_->reused_tokens += touched().length();
    const StepItem item{
        .sequence = &touched(), .tokens = tokens, .outputs = outputs, .keeps_hidden = true};
    return step(
        {&item, 1}, [&](size_t, const StepOutputs&) { return pick(drafted + 1); }, true);
  }

  // Computed, and then not wanted.
  Status cancel() {
    const std::vector<Token> tokens = random_tokens(random_length(touched()));
    const int32_t last = int32_t(tokens.size()) - 1;
    const StepItem item{
        .sequence = &touched(), .tokens = tokens, .outputs = {&last, 1}, .keeps_hidden = true};
    return step(
        {&item, 1}, [](size_t, const StepOutputs&) { return 0; }, true);
  }

  Status evict() {
    const size_t anchor_count = touched().anchors().size();
    if (anchor_count > 0 && pick(2) == 0) {
      CAIRN_TRY(wake(touched()));  // Else it may be replayed from the anchor.
      return memory().drop_anchor(touched(), size_t(pick(int32_t(anchor_count))));
    }
    if (pick(2) == 0) {
      memory().protect_from(touched(), pick(touched().length() + 1));
    } else {
      memory().suspend(touched());
    }
    return Ok{};
  }

  Status step_with_partner() {
    const size_t other = (touched_ + 1) % sequences_.size();
    memory::Sequence& partner = sequences_[other];
    const std::vector<Token> mine = random_tokens(1 + pick(9));
    const std::vector<Token> theirs = random_tokens(std::clamp(room(partner), 1, 1 + pick(40)));
    // The partner may take back what it has done; that must not matter.
    const bool is_kept = room(partner) > int32_t(theirs.size());
    const StepItem items[] = {{.sequence = &touched(), .tokens = mine},
                              {.sequence = &partner, .tokens = theirs}};
    return step(
        items,
        [&](size_t item, const StepOutputs&) {
          return item == 0 ? int32_t(mine.size()) : is_kept ? int32_t(theirs.size()) : 0;
        },
        true);
  }

  // A turn of a conversation, as commands have it: what the generator holds up to some place, then
  // new tokens and an answer. Whatever is known of the prompt comes from the prefix cache.
  Status turn() {
    const std::span<const Token> held = generator_.sequence().tokens();
    std::vector<Token> prompt(held.begin(), held.end());
    if (prompt.empty()) prompt.assign(base_.tokens().begin(), base_.tokens().end());
    const int32_t room_for_all = tokens_max_ - int32_t(prompt.size());
    const bool is_edit = !prompt.empty() && (room_for_all < 32 || pick(3) == 0);
    if (is_edit) prompt.resize(size_t(earlier(int32_t(prompt.size()))));
    return answer(std::move(prompt));
  }

  // Another conversation that begins like one of the program's sequences, whose pages it may find.
  Status recall() {
    engine_.cache().keep(touched());
    const std::span<const Token> tokens = touched().tokens();
    const int32_t shared = std::min(pick(int32_t(tokens.size()) + 1), tokens_max_ - 1);
    return answer({tokens.begin(), tokens.begin() + shared});
  }

  // Reads a prompt that begins with these tokens and makes an answer of a few more.
  Status answer(std::vector<Token> prompt) {
    const int32_t shared = int32_t(prompt.size());
    const int32_t room = tokens_max_ - shared;
    const std::vector<Token> message =
        random_tokens(std::clamp(kLengths[size_t(pick(int32_t(std::size(kLengths))))], 1, room));
    prompt.insert(prompt.end(), message.begin(), message.end());
    const int32_t starts[] = {shared};
    const size_t start_count = shared > 0 ? 1 : 0;
    CAIRN_TRY(const PromptReport report,
              generator_.read(prompt, {.message_starts = std::span(starts).first(start_count)}));
    row_->reused_tokens += report.reused_tokens;
    row_->computed_tokens += report.computed_tokens;
    row_->recurrence_steps += report.plan.recurrence_steps;
    const int32_t answer_count = std::min(pick(12), tokens_max_ - int32_t(prompt.size()));
    for (int32_t i = 0; i < answer_count; ++i) {
      CAIRN_TRY(generator_.advance(random_tokens(1).front()));
      ++row_->computed_tokens;
    }
    CAIRN_TRY(compare_generator());
    return pick(3) == 0 ? Status(Ok{}) : generator_.finish_turn();
  }

  // What the generator would sample from, against a fresh sequence.
  Status compare_generator() {
    const std::span<const float> logits = generator_.logits();
    const std::vector<float> found(logits.begin(), logits.end());
    const std::span<const Token> held = generator_.sequence().tokens();
    const std::vector<Token> tokens(held.begin(), held.end());
    CAIRN_TRY(memory::Sequence fresh, beginning_of(tokens));
    CAIRN_TRY(read(fresh, std::span(tokens).subspan(size_t(fresh.length())), {}, false));
    row_->differing_bits += count_differing_bits(engine_.runner().logits(0), found);
    return Ok{};
  }

  // The sequence that the turn has left may be suspended: one more token behind a copy of it.
  Status check_generator() { return check(generator_.sequence()); }

  // A sequence that holds what is compared with: the long text where the tokens begin with it, else
  // nothing. The long text itself is looked at once in a while.
  Result<memory::Sequence> beginning_of(std::span<const Token> tokens) {
    const std::span<const Token> known = reference_.tokens();
    const bool begins = !known.empty() && known.size() < tokens.size() && pick(16) != 0 &&
                        std::equal(known.begin(), known.end(), tokens.begin());
    if (!begins) return memory().new_sequence();
    return memory().fork(reference_);
  }

  // One more token behind a copy, and the kept hidden row, against a fresh sequence.
  Status check(const memory::Sequence& sequence) {
    std::vector<Token> tokens(sequence.tokens().begin(), sequence.tokens().end());
    const int32_t length = int32_t(tokens.size());
    tokens.push_back(random_tokens(1).front());
    if (length > 0 && sequence.has_hidden()) {
      const std::span<const Token> here = std::span(tokens).first(size_t(length));
      CAIRN_TRY(memory::Sequence fresh, beginning_of(here));
      CAIRN_TRY(read(fresh, here.subspan(size_t(fresh.length())), {}, false));
      const std::vector<float> expected_here = copy_logits();
      engine_.runner().restore_logits(memory().hidden(sequence), sequence.variant());
      row_->differing_bits += count_differing_bits(expected_here, engine_.runner().logits(0));
    }
    CAIRN_TRY(memory::Sequence fresh, beginning_of(tokens));
    CAIRN_TRY(read(fresh, std::span(tokens).subspan(size_t(fresh.length())), {}, false));
    const std::vector<float> expected = copy_logits();
    memory::Sequence probe = sequence;
    CAIRN_TRY(read(probe, std::span(tokens).last(1), {}, false));
    row_->differing_bits += count_differing_bits(expected, engine_.runner().logits(0));
    return Ok{};
  }

  std::vector<float> copy_logits() {
    const std::span<const float> logits = engine_.runner().logits(0);
    return {logits.begin(), logits.end()};
  }

  Engine& engine_;
  int32_t tokens_max_;
  std::mt19937_64 random_;
  Generator generator_;
  memory::Sequence base_;       // The long text that sequences fork …
  memory::Sequence reference_;  // … and the same, read at once, that nothing else is done to.
  std::vector<memory::Sequence> sequences_;
  size_t touched_ = 0;
  int32_t operation_index_ = 0;
  VerifyRow* row_ = nullptr;
};

}  // namespace

int64_t VerifyReport::differing_bits() const {
  return std::accumulate(rows.begin(), rows.end(), int64_t(0),
                         [](int64_t sum, const VerifyRow& r) { return sum + r.differing_bits; });
}

namespace {

// What the prefix cache was given is taken from it again, however a program ends.
class CacheGuard {
 public:
  explicit CacheGuard(memory::PrefixCache* cache) : cache_(cache) {}
  CacheGuard(const CacheGuard&) = delete;
  CacheGuard& operator=(const CacheGuard&) = delete;
  ~CacheGuard() { cache_->clear(); }

 private:
  memory::PrefixCache* cache_;
};

// A check reads one token more than a sequence has.
Result<int32_t> choose_tokens_max(const Engine& engine, const VerifyOptions& options) {
  const int32_t most = engine.options().context_tokens - 1;
  if (most < 1) {
    return fail(ErrorCode::invalid_argument,
                "verify: expected a context of at least 2 tokens, found {}", most + 1);
  }
  if (options.sequence_tokens_max == 0) return std::min(VerifyOptions::kProgramTokens, most);
  if (options.sequence_tokens_max <= most) return options.sequence_tokens_max;
  return fail(ErrorCode::invalid_argument,
              "verify: expected at most {} tokens in a context of {}, found {}", most, most + 1,
              options.sequence_tokens_max);
}

}  // namespace

Result<VerifyReport> verify(Engine& engine, const VerifyOptions& options) {
  VerifyReport report;
  for (const std::string_view name : kKindNames) report.rows.push_back({.operation = name});
  const int32_t total = options.program_count * options.operation_count;
  CAIRN_TRY(const int32_t tokens_max, choose_tokens_max(engine, options));
  int32_t done = 0;
  for (int32_t program_index = 0; program_index < options.program_count; ++program_index) {
    Program program(engine, tokens_max, options.seed + uint64_t(program_index));
    const CacheGuard guard(&engine.cache());
    CAIRN_TRY(program.begin());
    for (int32_t operation = 0; operation < options.operation_count; ++operation) {
      const int64_t bits_before = report.differing_bits();
      CAIRN_TRY(program.operate(report.rows));
      if (report.first_difference.empty() && report.differing_bits() > bits_before) {
        report.first_difference = fmt::format(
            "seed {}, operation {}", options.seed + uint64_t(program_index), operation + 1);
      }
      if (options.on_progress && !options.on_progress(++done, total)) {
        return fail(ErrorCode::cancelled, "verify: stopped after {} of {} operations", done, total);
      }
    }
  }
  return report;
}

}  // namespace cairn
