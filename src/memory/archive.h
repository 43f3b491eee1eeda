// A sequence taken apart, and put together again elsewhere: in another memory of the same layout,
// after a restart. What comes out has the same bits in every page, state and row, and resumes and
// rewinds as the original did. Knows nothing of files.
// Thread rule: the engine's thread, as for every sequence. The bytes alone may be read, or filled,
// by another thread: nobody writes the blocks of a sequence that has a copy, and nobody else knows
// those of an assembly.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "memory/memory.h"
#include "memory/outline.h"

namespace cairn::memory {

// The blocks of a sequence, by what they are of.
class Archive {
 public:
  static Outline outline_of(const Sequence& sequence);

  // Whole blocks, of which block_parts() mean something; none where it is not held.
  static DeviceBytes page(const Sequence& sequence, int32_t group, int32_t page);
  static DeviceBytes state(const Sequence& sequence, int32_t position);
  static DeviceBytes hidden(const Sequence& sequence, int32_t position);

 private:
  friend class Assembly;
  // Of a state or a row: what the end has, or an anchor.
  static DeviceBytes named(const Sequence& sequence, int32_t position, int32_t group,
                           BlockRef Sequence::*at_end, BlockRef Anchor::*at_anchor);
};

// A sequence whose blocks are taken and not filled yet. Destroying it gives them back.
class Assembly {
 public:
  // Takes a block for everything that the outline says is held.
  // Errors: those of check(), and an outline that cannot go on at its end; context_full;
  // memory_full, with nothing taken.
  static Result<Assembly> begin(Memory& memory, const Outline& outline, Variant variant);
  // Of the blocks that it takes.
  static size_t needed_bytes(const Layout& layout, const Outline& outline);

  // Where the caller puts the bytes of each block, all of them. REQUIRES: the outline has it.
  DeviceBytes page(int32_t group, int32_t page) { return Archive::page(sequence_, group, page); }
  DeviceBytes state(int32_t position) { return Archive::state(sequence_, position); }
  DeviceBytes hidden(int32_t position) { return Archive::hidden(sequence_, position); }

  // What the options of this memory keep of it. REQUIRES: every block is filled.
  Sequence finish() &&;

 private:
  explicit Assembly(Sequence sequence) : sequence_(std::move(sequence)) {}
  bool take_blocks(const Outline& outline);
  bool take_pages(int32_t group, std::span<const PageRun> runs);
  bool take_named(const Outline& outline);
  BlockRef take(int32_t group);

  Sequence sequence_;
};

}  // namespace cairn::memory
