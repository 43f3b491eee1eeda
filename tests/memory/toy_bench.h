// A memory with the toy model that computes in it: reading, replaying and looking, in short.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "device/host_memory.h"
#include "tests/memory/inspector.h"
#include "tests/memory/toy_alone.h"
#include "tests/memory/toy_model.h"

namespace cairn::memory::toy {

// A memory and the toy model that computes in it.
struct ToyBench {
  explicit ToyBench(ToyModel toy, Options options = {}, bool with_log = true)
      : model(std::move(toy)), with_options(options) {
    if (with_options.budget_bytes == 0) with_options.budget_bytes = 1 << 20;
    if (with_options.context_tokens_max == 0) with_options.context_tokens_max = 1000;
    with_options.poisons = true;
    memory = Memory::create(model.layout(with_log), with_options, device).value();
  }

  // Reads the tokens and accepts `accepted` of them, or all.
  Status read(Sequence& sequence, std::vector<Token> tokens, std::vector<int32_t> captures = {},
              int32_t accepted = -1, bool keeps_hidden = true) {
    if (memory->needs_replay(sequence)) replay(sequence, 1000);
    auto begun = memory->begin(
        sequence, {.tokens = tokens, .captures = captures, .keeps_hidden = keeps_hidden});
    if (!begun) return std::move(begun).error();
    Transaction transaction = std::move(begun).value();
    const std::vector<uint64_t> rows = model.run(memory->layout(), transaction);
    if (accepted < 0) accepted = int32_t(tokens.size());
    if (keeps_hidden && accepted > 0) {
      std::memcpy(transaction.hidden().data, &rows[size_t(accepted) - 1], sizeof(uint64_t));
    }
    transaction.commit(accepted);
    return Ok{};
  }
  void replay(Sequence& sequence, int32_t piece_rows) {
    Replay replay = memory->begin_replay(sequence, piece_rows).value();
    for (int32_t piece = 0; piece < replay.piece_count(); ++piece) {
      model.replay(memory->layout(), replay.slice(piece, 0));
    }
    replay.commit();
  }
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

  ToyModel model;
  Options with_options;
  HostMemory device;
  std::unique_ptr<Memory> memory;
};

inline std::vector<Token> tokens(int32_t count, int32_t first = 1) {
  std::vector<Token> list(static_cast<size_t>(count));
  for (int32_t index = 0; index < count; ++index) list[size_t(index)] = Token(first + index % 50);
  return list;
}

}  // namespace cairn::memory::toy
