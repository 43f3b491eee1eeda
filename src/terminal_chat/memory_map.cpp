// Drawing groups as lines of cells.
#include "terminal_chat/memory_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quantities.h"

namespace cairn::terminal_chat {

namespace {

constexpr int32_t kCells = 32;

// The cell's share of positions that lie in the runs, as a character.
std::string held_cells(std::span<const memory::PositionRun> runs, int32_t length) {
  std::string cells;
  for (int32_t cell = 0; cell < kCells; ++cell) {
    const int32_t begin = int32_t(int64_t(length) * cell / kCells);
    const int32_t end = std::max(begin + 1, int32_t(int64_t(length) * (cell + 1) / kCells));
    int32_t held = 0;
    for (const memory::PositionRun& run : runs) {
      held += std::max(0, std::min(end, run.end) - std::max(begin, run.begin));
    }
    cells += held == 0 ? "░" : held < end - begin ? "▒" : "█";
  }
  return cells;
}

// A bar wherever a state or a row is kept.
std::string marked_cells(std::span<const int32_t> positions, int32_t length) {
  std::string cells(kCells, ' ');
  for (const int32_t position : positions) {
    cells[size_t(std::min<int64_t>(kCells - 1, int64_t(position) * kCells / length))] = '|';
  }
  return cells;
}

std::string label(const memory::GroupUsage& group) {
  std::string text(memory::name(group.kind));
  if (group.window > 0) text += fmt::format(" {}", group.window);
  return text;
}

}  // namespace

std::string memory_map(const memory::Memory& memory, const memory::Sequence& sequence) {
  if (sequence.length() == 0) return "nothing is kept yet\n";
  std::string text =
      fmt::format("{:<14}{:>8}{:>16}{:>7}{:>11}\n", "kind", "tokens", "held", "shared", "bytes");
  for (const memory::GroupUsage& group : memory.usage(sequence)) {
    const bool has_pages = !group.runs.empty() || group.positions.empty();
    const std::string_view unit = has_pages                                    ? "pages"
                                  : group.kind == memory::GroupKind::recurrent ? "states"
                                                                               : "rows";
    text += fmt::format("{:<14}{:>8}{:>8} {:<7}{:>7}{:>11}  {}\n", label(group),
                        has_pages ? fmt::format("{}", group.tokens) : "", group.blocks, unit,
                        group.shared, show_bytes(group.bytes),
                        has_pages ? held_cells(group.runs, sequence.length())
                                  : marked_cells(group.positions, sequence.length()));
  }
  return text;
}

}  // namespace cairn::terminal_chat
