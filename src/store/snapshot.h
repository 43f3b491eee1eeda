// A sequence as it was, ready to be written by another thread: a copy holds its blocks, which
// nobody writes as long as it lives. Reads blocks where they lie, as all devices allow whose memory
// the host sees (device/host_memory.h). Thread rule: made and destroyed on the engine's thread;
// between these, read on one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "memory/archive.h"
#include "store/manifest.h"
#include "store/pieces.h"

namespace cairn::store {

class Snapshot {
 public:
  // REQUIRES: not closed, length() > 0.
  Snapshot(const memory::Memory& memory, memory::Sequence sequence, const Sha256Digest& fingerprint,
           std::string model);
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  const memory::Layout& layout() const { return *layout_; }
  const memory::Outline& outline() const { return outline_; }
  const Sha256Digest& fingerprint() const { return fingerprint_; }
  uint64_t tenant() const { return sequence_.variant().tenant; }
  std::span<const Piece> pieces() const { return pieces_; }
  uint64_t payload_bytes() const;  // Of all pieces.

  // Leaves of it what can be resumed at or before this position; nothing: false, and it is as it
  // was.
  bool cut(int32_t position);
  void restore();  // All of it again.

  // The payload of a piece, part by part.
  std::vector<std::span<const std::byte>> parts_of(const Piece& piece) const;
  // Without its records, which the writer knows.
  Manifest manifest() const;

 private:
  memory::Sequence sequence_;
  const memory::Layout* layout_;
  Sha256Digest fingerprint_;
  std::string model_;
  memory::Outline outline_;
  std::vector<Piece> pieces_;
};

// The same parts of a sequence that is being put together, to be filled.
std::vector<std::span<std::byte>> parts_of(const Piece& piece, const memory::Layout& layout,
                                           memory::Assembly& assembly);

}  // namespace cairn::store
