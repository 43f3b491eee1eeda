// Where the bytes of pieces lie.
#include "store/snapshot.h"

#include <utility>

namespace cairn::store {
namespace {

template <class Byte>
void add_parts(DeviceBytes block, std::span<const memory::BlockPart> parts,
               std::vector<std::span<Byte>>& spans) {
  CHECK(block.exists());
  for (const memory::BlockPart& part : parts) {
    spans.push_back({block.data + part.offset, part.bytes});
  }
}

template <class Byte, class PageOf, class StateOf>
std::vector<std::span<Byte>> spans_of(const Piece& piece, const memory::Layout& layout,
                                      PageOf page_of, StateOf state_of) {
  const std::vector<memory::BlockPart> parts = block_parts(layout, piece.group);
  std::vector<std::span<Byte>> spans;
  if (piece.type == RecordType::state) {
    add_parts(state_of(piece.end), parts, spans);
  } else {
    for (int32_t page = piece.pages.first; page < piece.pages.end(); ++page) {
      add_parts(page_of(piece.group, page), parts, spans);
    }
  }
  return spans;
}

}  // namespace

Snapshot::Snapshot(const memory::Memory& memory, memory::Sequence sequence,
                   const Sha256Digest& fingerprint, std::string model)
    : sequence_(std::move(sequence)),
      layout_(&memory.layout()),
      fingerprint_(fingerprint),
      model_(std::move(model)),
      outline_(memory::Archive::outline_of(sequence_)),
      pieces_(pieces_of(outline_, *layout_)) {}

uint64_t Snapshot::payload_bytes() const {
  uint64_t bytes = 0;
  for (const Piece& piece : pieces_) bytes += piece.payload_bytes;
  return bytes;
}

bool Snapshot::cut(int32_t position) {
  if (position >= outline_.length()) return true;
  const int32_t length = resume_position(outline_, *layout_, position, false);
  if (length == 0) return false;
  outline_.cut(*layout_, length);
  pieces_ = pieces_of(outline_, *layout_);
  return true;
}

void Snapshot::restore() {
  outline_ = memory::Archive::outline_of(sequence_);
  pieces_ = pieces_of(outline_, *layout_);
}

std::vector<std::span<const std::byte>> Snapshot::parts_of(const Piece& piece) const {
  using memory::Archive;
  return spans_of<const std::byte>(
      piece, *layout_,
      [&](int32_t group, int32_t page) { return Archive::page(sequence_, group, page); },
      [&](int32_t position) { return Archive::state(sequence_, position); });
}

Manifest Snapshot::manifest() const {
  Manifest manifest{.outline = outline_,
                    .model = model_,
                    .tenant = tenant(),
                    .pieces = {},
                    .hidden_row_bytes = uint32_t(layout_->hidden_bytes()),
                    .hidden_rows = {}};
  for (const int32_t position : outline_.hidden_positions()) {
    const DeviceBytes row = memory::Archive::hidden(sequence_, position);
    manifest.hidden_rows.insert(manifest.hidden_rows.end(), row.data,
                                row.data + layout_->hidden_bytes());
  }
  return manifest;
}

std::vector<std::span<std::byte>> parts_of(const Piece& piece, const memory::Layout& layout,
                                           memory::Assembly& assembly) {
  return spans_of<std::byte>(
      piece, layout, [&](int32_t group, int32_t page) { return assembly.page(group, page); },
      [&](int32_t position) { return assembly.state(position); });
}

}  // namespace cairn::store
