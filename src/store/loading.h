// A stored sequence on its way into a memory: blocks are taken, records are read into them one by
// one, and when all are checked they become a sequence. Where a record is bad, what was in it is
// lost, and it begins again with what is left.
// Thread rule: the engine's thread; but read_next() is called by any one thread, and meanwhile
// nobody else touches the loading.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "store/disk_store.h"
#include "store/pages_ahead.h"

namespace cairn::store {

class Loading {
 public:
  // Of what store.find() or open_sequence() gave; resumes behind `known`. The store outlives it.
  Loading(DiskStore* store, const Sha256Digest& fingerprint, DiskStore::Match match, int32_t known);
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

  const DiskStore::Match& match() const { return match_; }
  // Where the sequence can be resumed, as far as is known by now.
  int32_t resume(const memory::Layout& layout) const;
  // Of the blocks that begin() takes.
  size_t needed_bytes(const memory::Layout& layout) const;

  // Takes the blocks. Errors: not_found (nothing is left behind `known`), memory_full,
  // context_full.
  Status begin(memory::Memory& memory, memory::Variant variant);
  // Reads a record. False: it was the last, or a bad one. REQUIRES: begin() succeeded.
  bool read_next();
  // REQUIRES: read_next() returned false. Errors: invalid_data: a record was bad, which is put away
  // by now, and begin() may be called again.
  Result<memory::Sequence> finish();

 private:
  memory::Outline wanted(const memory::Layout& layout) const;
  bool is_wanted(const Piece& piece) const;
  void open_ahead();
  void clear_ahead();
  bool read_piece(size_t index);
  Status read_record(const RecordFile& file, const Piece& piece, const PieceRef& ref,
                     std::span<const std::span<std::byte>> targets);
  Status read_payload(const RecordFile& file, const RecordFront& front,
                      std::span<const std::span<std::byte>> parts);
  void lose(const Piece& piece);
  void fill_rows();

  DiskStore* store_;
  DiskStore::Match match_;
  int32_t known_;
  Chain chain_;              // Of the manifest's tokens.
  memory::Outline outline_;  // Without what turned out bad.
  // Of the try that was begun.
  const memory::Layout* layout_ = nullptr;
  memory::Outline wanted_;
  std::optional<memory::Assembly> assembly_;
  std::vector<Piece> pieces_;
  size_t next_ = 0;
  std::deque<Result<RecordFile>> opened_;  // Of the wanted pieces from `next_` on, some.
  size_t open_next_ = 0;
  std::unique_ptr<PagesAhead> pages_ahead_;  // Of the blocks that records are read into.
  bool is_bad_ = false;
};

}  // namespace cairn::store
