// Conversations of toy models, that use a memory and its cache as an engine does: messages, answers
// and what a person changes.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "device/host_memory.h"
#include "memory/cache/prefix_cache.h"
#include "memory/common_prefix.h"
#include "tests/memory/inspector.h"
#include "tests/memory/toy_alone.h"
#include "tests/memory/toy_model.h"
#include "tests/small_pages.h"

namespace cairn::memory::toy {

using Text = std::vector<Token>;

// A text that no other number gives.
inline Text text(int32_t count, int32_t number) {
  std::mt19937 random{uint32_t(number)};
  Text tokens(static_cast<size_t>(count));
  for (Token& token : tokens) token = Token(1 + random() % 60000);
  return tokens;
}

inline Text operator+(Text a, const Text& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A memory, its cache, and a model that computes in them.
class Host {
 public:
  explicit Host(ToyModel toy, size_t budget_bytes = 16 << 20, int32_t context = 4000)
      : model(std::move(toy)),
        memory(Memory::create(
                   model.layout(),
                   {.budget_bytes = budget_bytes, .context_tokens_max = context, .poisons = true},
                   device)
                   .value()),
        cache(memory.get()) {}

  // What the sequence sees is what its tokens alone would show.
  void expect_exact(const Sequence& sequence) const {
    ToyAlone alone(&model, sequence.variant());
    alone.append(sequence.tokens());
    ASSERT_EQ(Inspector::probe(model, sequence, Token(9)), alone.probe(Token(9)))
        << "at " << sequence.length();
    const DeviceBytes row = memory->hidden(sequence);
    if (!row.exists()) return;
    uint64_t output = 0;
    std::memcpy(&output, row.data, sizeof output);
    ASSERT_EQ(output, alone.output());
  }

  const test::SmallPages small_pages;
  ToyModel model;
  HostMemory device;
  std::unique_ptr<Memory> memory;
  PrefixCache cache;
};

// A conversation that holds one active sequence.
class Chat {
 public:
  explicit Chat(Host* host, Text system, Variant variant = Variant::plain)
      : Chat(host, std::move(system), {}, variant) {}
  // Goes on where the messages of another chat were.
  Chat(Host* host, Text history, std::vector<int32_t> starts, Variant variant)
      : host_(host),
        history_(std::move(history)),
        starts_(std::move(starts)),
        variant_(variant),
        sequence_(host->memory->new_sequence(variant)) {}

  // A user's message and its answer; the result is the tokens that had to be read.
  Result<int32_t> turn(const Text& message, int32_t answer_count, int32_t number) {
    starts_.push_back(int32_t(history_.size()));
    CAIRN_TRY(const int32_t read_count, read(history_ + message));
    CAIRN_TRY(answer(answer_count, number));
    return read_count;
  }

  // Computes what is not there of the prompt, from the nearest of the own sequence and the cache.
  Result<int32_t> read(const Text& prompt) {
    const int32_t own = common_prefix(sequence_.tokens(), prompt);
    const bool is_whole = size_t(own) == prompt.size();
    const ResumePlan plan = host_->memory->plan(sequence_, own, is_whole);
    const PrefixCache::Found found = host_->cache.find(prompt, variant_, true);
    const bool takes_found = found.sequence != nullptr && found.plan.resume > plan.resume;
    CAIRN_TRY(sequence_, host_->memory->at(takes_found ? *found.sequence : sequence_,
                                           takes_found ? found.plan.resume : plan.resume));
    const int32_t begin = sequence_.length();
    const Text rest(prompt.begin() + begin, prompt.end());
    std::vector<int32_t> captures;
    for (const int32_t start : starts_) {
      if (start > begin && start < int32_t(prompt.size())) captures.push_back(start - begin);
    }
    history_ = prompt;
    if (!rest.empty()) CAIRN_TRY(step(rest, captures));
    CAIRN_TRY(anchor(AnchorKind::prompt_end));
    return int32_t(rest.size());
  }

  Status answer(int32_t count, int32_t number) {
    for (const Token token : text(count, number)) {
      CAIRN_TRY(step({token}, {}));
      history_.push_back(token);
    }
    CAIRN_TRY(anchor(AnchorKind::answer_end));
    host_->memory->protect_from(sequence_, starts_.empty() ? 0 : starts_.back());
    host_->memory->suspend(sequence_);
    host_->cache.keep(sequence_);
    return Ok{};
  }

  // The conversation up to before its message `index`.
  Chat before(size_t index) const {
    return Chat(host_, Text(history_.begin(), history_.begin() + starts_[index]),
                std::vector<int32_t>(starts_.begin(), starts_.begin() + std::ptrdiff_t(index)),
                variant_);
  }
  // From now on it takes nothing that other tenants hold within their shares.
  void spare_shares(bool spares) { spares_shares_ = spares; }
  void close() { host_->memory->close(sequence_); }
  void reopen() { sequence_ = host_->memory->new_sequence(variant_); }
  // The same messages, from now on by another variant.
  void change(Variant variant) {
    variant_ = variant;
    reopen();
  }

  const Text& history() const { return history_; }
  const std::vector<int32_t>& starts() const { return starts_; }
  const Sequence& sequence() const { return sequence_; }
  Variant variant() const { return variant_; }

 private:
  Status anchor(AnchorKind kind) {
    CAIRN_TRY(replay());
    return host_->memory->keep_anchor(sequence_, kind);
  }

  Status replay() {
    if (!host_->memory->needs_replay(sequence_)) return Ok{};
    CAIRN_TRY(Replay replay, host_->cache.begin_replay(sequence_, 16, spares_shares_));
    for (int32_t piece = 0; piece < replay.piece_count(); ++piece) {
      host_->model.replay(host_->memory->layout(), replay.slice(piece, 0));
    }
    replay.commit();
    return Ok{};
  }

  Status step(const Text& tokens, const std::vector<int32_t>& captures) {
    CAIRN_TRY(replay());
    CAIRN_TRY(Transaction transaction,
              host_->cache.begin(sequence_,
                                 {.tokens = tokens, .captures = captures, .keeps_hidden = true},
                                 spares_shares_));
    const std::vector<uint64_t> rows = host_->model.run(host_->memory->layout(), transaction);
    std::memcpy(transaction.hidden().data, &rows.back(), sizeof(uint64_t));
    transaction.commit(int32_t(tokens.size()));
    return Ok{};
  }

  Host* host_;
  Text history_;
  std::vector<int32_t> starts_;
  Variant variant_;
  Sequence sequence_;
  bool spares_shares_ = false;
};

}  // namespace cairn::memory::toy
