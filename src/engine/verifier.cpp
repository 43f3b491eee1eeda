// Programs and their checks.
#include "engine/verifier.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "base/check.h"

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
  drop,
  count
};
constexpr std::string_view kKindNames[] = {"append", "sample",     "rewind",    "fork",
                                           "edit",   "regenerate", "speculate", "cancel",
                                           "evict",  "partners",   "drop"};
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
  Program(Engine& engine, const VerifyOptions& options, uint64_t seed)
      : engine_(engine), options_(options), random_(seed) {
    sequences_.push_back(engine.memory().new_sequence());
  }

  // Does one random operation and checks what it has left.
  Status operate(std::vector<VerifyRow>& rows) {
    const Kind kind = choose();
    VerifyRow& row = rows[size_t(kind)];
    ++row.count;
    row_ = &row;
    CAIRN_TRY(operate(kind));
    if (!sequences_.empty()) return check(sequences_[touched_]);
    sequences_.push_back(engine_.memory().new_sequence());
    return Ok{};
  }

  int32_t index() const { return operation_index_; }

 private:
  int32_t pick(int32_t count) { return int32_t(random_() % uint64_t(std::max(1, count))); }
  memory::Memory& memory() { return engine_.memory(); }
  memory::Sequence& touched() { return sequences_[touched_]; }
  int32_t room(const memory::Sequence& sequence) const {
    return options_.sequence_tokens_max - sequence.length();
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
        return rewind(pick(touched().length() + 1));
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
              memory().begin_replay(sequence, engine_.runner().row_count_max()));
    row_->recurrence_steps += replay.row_count();
    engine_.runner().replay({&replay, 1});
    replay.commit();
    return Ok{};
  }

  Status step(std::span<const StepItem> items, StepAcceptor accept, bool counts) {
    CAIRN_TRY(const StepReport report, engine_.step(items, accept));
    if (report.item_count < items.size()) {
      return fail(ErrorCode::no_room, "verify: expected room for {} sequences, found room for {}",
                  items.size(), report.item_count);
    }
    if (!counts) return Ok{};
    row_->recurrence_steps += report.replayed_rows;
    row_->computed_tokens += report.computed_rows;
    return Ok{};
  }

  // Reads tokens in one step; the last one's hidden row is kept. Leaves logits in the runner.
  Status read(memory::Sequence& sequence, std::span<const Token> tokens,
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
    CAIRN_TRY(rewind(pick(touched().length())));
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

  // One more token behind a copy, and the kept hidden row, against a fresh sequence.
  Status check(const memory::Sequence& sequence) {
    std::vector<Token> tokens(sequence.tokens().begin(), sequence.tokens().end());
    const int32_t length = int32_t(tokens.size());
    tokens.push_back(random_tokens(1).front());
    memory::Sequence fresh = memory().new_sequence();
    std::vector<float> expected_here;
    if (length > 0 && sequence.has_hidden()) {
      CAIRN_TRY(read(fresh, std::span(tokens).first(size_t(length)), {}, false));
      expected_here = copy_logits();
      engine_.runner().restore_logits(memory().hidden(sequence), sequence.variant());
      row_->differing_bits += count_differing_bits(expected_here, engine_.runner().logits(0));
      fresh = memory().new_sequence();
    }
    CAIRN_TRY(read(fresh, tokens, {}, false));
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
  const VerifyOptions& options_;
  std::mt19937_64 random_;
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

Result<VerifyReport> verify(Engine& engine, const VerifyOptions& options) {
  VerifyReport report;
  for (const std::string_view name : kKindNames) report.rows.push_back({.operation = name});
  const int32_t total = options.program_count * options.operation_count;
  int32_t done = 0;
  for (int32_t program_index = 0; program_index < options.program_count; ++program_index) {
    Program program(engine, options, options.seed + uint64_t(program_index));
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
