// What a sequence holds, without its bytes: tokens, anchors, and which positions of each group have
// a block. From an outline alone follows where the sequence could be resumed, so that a stored one
// is judged before anything of it is read. An outline may come from a file: check() comes first.
// Pure: knows layouts, neither pools nor sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "memory/anchor_kind.h"
#include "memory/layout.h"

namespace cairn::memory {

// Consecutive pages that are held.
struct PageRun {
  int32_t first = 0, count = 0;

  int32_t end() const { return first + count; }
  bool operator==(const PageRun&) const = default;
};

struct OutlineAnchor {
  int32_t position = 0;
  AnchorKind kind = AnchorKind::message_start;
  bool has_state = false, has_hidden = false;

  bool operator==(const OutlineAnchor&) const = default;
};

struct Outline {
  std::vector<Token> tokens;
  std::vector<OutlineAnchor> anchors;      // Ascending.
  std::vector<std::vector<PageRun>> runs;  // By group, ascending; none of states and rows.
  int32_t log_begin = 0;                   // The length where nothing is logged.
  int32_t protected_from = 0;
  bool has_state = false, has_hidden = false;  // At the end.

  int32_t length() const { return int32_t(tokens.size()); }
  // Positions with a state, or a hidden row, ascending, each once.
  std::vector<int32_t> state_positions() const;
  std::vector<int32_t> hidden_positions() const;

  // Shortens it, by the rules of Memory::at(). REQUIRES: resume_position() gave the length.
  void cut(const Layout& layout, int32_t length);
  // Forgets pages, the state at a position, or what is logged, since they cannot be read.
  void drop_pages(const Layout& layout, int32_t group, const PageRun& pages);
  void drop_state(const Layout& layout, int32_t position);
  void drop_log(const Layout& layout);

  bool operator==(const Outline&) const = default;

 private:
  void trim_log(const Layout& layout);
};

// That a sequence of this layout could have this outline, so that one can be made of it. Where
// pages or states are missing, resume_position() says what is left.
// Errors: invalid_data, with the field.
Status check(const Outline& outline, const Layout& layout);

// The last position at or before `position` that all groups can resume. `wants_logits`: a position
// whose hidden row is not held does not count. REQUIRES: check(); 0 <= position <= length().
int32_t resume_position(const Outline& outline, const Layout& layout, int32_t position,
                        bool wants_logits);

// The bytes of a group's blocks that mean something, ascending: what lies between them is padding.
struct BlockPart {
  size_t offset = 0, bytes = 0;
};
std::vector<BlockPart> block_parts(const Layout& layout, int32_t group);

}  // namespace cairn::memory
