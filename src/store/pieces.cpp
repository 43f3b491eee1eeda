// The grid, and the headers of pieces.
#include "store/pieces.h"

#include <algorithm>
#include <numeric>

namespace cairn::store {
namespace {

constexpr uint64_t kExtentBytes = uint64_t(2) << 20;
constexpr uint64_t kExtentPagesMax = 64;

uint64_t meaning_bytes(const memory::Layout& layout, int32_t group) {
  uint64_t bytes = 0;
  for (const memory::BlockPart& part : block_parts(layout, group)) bytes += part.bytes;
  return bytes;
}

void add_extents(const memory::Outline& outline, const memory::Layout& layout, int32_t group,
                 std::vector<Piece>& pieces) {
  const uint64_t page_bytes = meaning_bytes(layout, group);
  if (page_bytes == 0) return;
  const int32_t step = int32_t(std::clamp<uint64_t>(kExtentBytes / page_bytes, 1, kExtentPagesMax));
  const int32_t page_tokens = layout.groups[size_t(group)].page_tokens();
  const int32_t whole_pages = outline.length() / page_tokens;
  for (const memory::PageRun& run : outline.runs[size_t(group)]) {
    for (int32_t first = run.first; first < run.end();) {
      const bool is_partial = first >= whole_pages;
      int32_t end = std::min((first / step + 1) * step, run.end());
      if (!is_partial) end = std::min(end, whole_pages);
      pieces.push_back({.type = RecordType::extent,
                        .group = group,
                        .pages = {.first = first, .count = end - first},
                        .begin = first * page_tokens,
                        .end = std::min(end * page_tokens, outline.length()),
                        .is_partial = is_partial,
                        .payload_bytes = page_bytes * uint64_t(end - first)});
      first = end;
    }
  }
}

// Its first page has nothing of the positions before the log: where it begins is part of the name.
void add_log(const memory::Outline& outline, const memory::Layout& layout,
             std::vector<Piece>& pieces) {
  for (const memory::PageRun& run : outline.runs[size_t(layout.log_group)]) {
    pieces.push_back(
        {.type = RecordType::log,
         .group = layout.log_group,
         .pages = run,
         .begin = std::max(run.first * kLogPageTokens, outline.log_begin),
         .end = outline.length(),
         .is_partial = true,
         .payload_bytes = meaning_bytes(layout, layout.log_group) * uint64_t(run.count)});
  }
}

}  // namespace

std::vector<Piece> pieces_of(const memory::Outline& outline, const memory::Layout& layout) {
  std::vector<Piece> pieces;
  for (int32_t group = 0; group < int32_t(layout.groups.size()); ++group) {
    const memory::GroupSpec& spec = layout.groups[size_t(group)];
    if (spec.has_pages() && group != layout.log_group) add_extents(outline, layout, group, pieces);
  }
  if (layout.log_group >= 0) add_log(outline, layout, pieces);
  for (const int32_t position : outline.state_positions()) {
    pieces.push_back({.type = RecordType::state,
                      .group = layout.recurrent_group,
                      .pages = {},
                      .begin = (position - 1) / kChainTokens * kChainTokens,
                      .end = position,
                      .is_partial = false,
                      .payload_bytes = meaning_bytes(layout, layout.recurrent_group)});
  }
  return pieces;
}

RecordHeader header_of(const Piece& piece, const Chain& chain, const memory::Layout& layout) {
  return {.type = piece.type,
          .payload_bytes = piece.payload_bytes,
          .fingerprint = chain.fingerprint(),
          .key_at_begin = chain.key_at(piece.begin),
          .key_at_end = chain.key_at(piece.end),
          .begin = piece.begin,
          .end = piece.end,
          .group = uint16_t(piece.group),
          .kind = uint8_t(layout.groups[size_t(piece.group)].kind),
          .layout = layout_id(layout),
          .first_layer = 0,
          .last_layer = int32_t(layout.kv_plane_of_layer.size()) - 1,
          .token_count = uint32_t(piece.end - piece.begin),
          .payload_digest = {},
          .flags = piece.is_partial ? kIsPartial : 0};
}

Sha256Digest name_of(const RecordHeader& header) {
  const bool is_manifest = header.type == RecordType::manifest;
  return name_of(header.fingerprint, header.key_at_end,
                 {.type = uint16_t(header.type),
                  .group = header.group,
                  .begin = header.begin,
                  .end = header.end,
                  .layout = header.layout,
                  .content = is_manifest ? header.payload_digest : Sha256Digest{}});
}

bool has_part_in(const Piece& piece, const memory::Outline& outline) {
  if (piece.type == RecordType::state) {
    return std::ranges::binary_search(outline.state_positions(), piece.end);
  }
  return std::ranges::any_of(outline.runs[size_t(piece.group)], [&](const memory::PageRun& run) {
    return run.first < piece.pages.end() && piece.pages.first < run.end();
  });
}

void drop(const Piece& piece, const memory::Layout& layout, memory::Outline& outline) {
  if (piece.type == RecordType::state) {
    outline.drop_state(layout, piece.end);
  } else {
    outline.drop_pages(layout, piece.group, piece.pages);
  }
}

}  // namespace cairn::store
