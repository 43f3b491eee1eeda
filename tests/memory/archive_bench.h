// A conversation to take apart, and filling an assembly with what a sequence holds, and nothing
// else: padding stays as it is.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "memory/archive.h"
#include "tests/memory/toy_bench.h"

namespace cairn::memory::toy {

inline void copy_parts(DeviceBytes to, DeviceBytes from, std::span<const BlockPart> parts) {
  ASSERT_TRUE(to.exists() && from.exists());
  for (const BlockPart& part : parts) {
    ASSERT_LE(part.offset + part.bytes, from.size);
    std::memcpy(to.data + part.offset, from.data + part.offset, part.bytes);
  }
}

inline void copy_blocks(const Sequence& sequence, const Outline& outline, const Layout& layout,
                        Assembly& assembly) {
  for (int32_t group = 0; group < int32_t(layout.groups.size()); ++group) {
    const std::vector<BlockPart> parts = block_parts(layout, group);
    for (const PageRun& run : outline.runs[size_t(group)]) {
      for (int32_t page = run.first; page < run.end(); ++page) {
        copy_parts(assembly.page(group, page), Archive::page(sequence, group, page), parts);
      }
    }
  }
  for (const int32_t position : outline.state_positions()) {
    copy_parts(assembly.state(position), Archive::state(sequence, position),
               block_parts(layout, layout.recurrent_group));
  }
  for (const int32_t position : outline.hidden_positions()) {
    copy_parts(assembly.hidden(position), Archive::hidden(sequence, position),
               block_parts(layout, layout.hidden_group));
  }
}

// A conversation with anchors, a hidden row, and a suspended end where the model has a log.
inline Sequence conversation(ToyBench& bench) {
  Sequence sequence = bench.memory->new_sequence(Variant(5));
  EXPECT_TRUE(bool(bench.read(sequence, tokens(45), {10, 40})));
  EXPECT_TRUE(bool(bench.memory->keep_anchor(sequence, AnchorKind::prompt_end)));
  for (int32_t index = 0; index < 21; ++index) {
    EXPECT_TRUE(bool(bench.read(sequence, tokens(1, 3 + index))));
  }
  bench.memory->protect_from(sequence, 50);
  bench.memory->suspend(sequence);
  return sequence;
}

}  // namespace cairn::memory::toy
