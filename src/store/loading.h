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
#include "memory/archive.h"
#include "store/pages_ahead.h"
#include "store/pieces.h"
#include "store/record_source.h"

namespace cairn::store {

class Loading {
 public:
  // Resumes behind `known`. REQUIRES: a match that has a place.
  Loading(const Sha256Digest& fingerprint, Match match, int32_t known);
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

  const Match& match() const { return match_; }
  const RecordPlace& place() const { return *match_.place; }
  // Where the sequence can be resumed, as far as is known by now.
  int32_t resume(const memory::Layout& layout) const;
  // Of the blocks that begin() takes.
  size_t needed_bytes(const memory::Layout& layout) const;

  // Takes the blocks. Errors: not_found (nothing is left behind `known`), memory_full,
  // context_full.
  Status begin(memory::Memory& memory, memory::Variant variant);
  // Reads a record. False: it was the last, or a bad one, or there is no time for more. REQUIRES:
  // begin() succeeded.
  bool read_next();
  // REQUIRES: read_next() returned false. Errors: invalid_data: a record was bad, which is put away
  // by now, and begin() may be called again, which says whether that is worth it.
  Result<memory::Sequence> finish();

 private:
  memory::Outline wanted(const memory::Layout& layout) const;
  void open_ahead();
  void clear_ahead();
  bool read_piece(size_t index);
  Status read_record(OpenRecord& record, const Piece& piece, const PieceRef& ref,
                     std::span<const std::span<std::byte>> targets);
  Status read_payload(OpenRecord& record, const RecordFront& front,
                      std::span<const std::span<std::byte>> parts);
  void fill_rows();
  bool is_late() const;

  Match match_;
  int32_t known_;
  Chain chain_;              // Of the manifest's tokens.
  memory::Outline outline_;  // Without what turned out bad.
  // Of the try that was begun.
  const memory::Layout* layout_ = nullptr;
  memory::Outline wanted_;
  std::optional<memory::Assembly> assembly_;
  std::vector<Piece> pieces_;
  size_t next_ = 0;
  std::deque<Result<std::unique_ptr<OpenRecord>>>
      opened_;  // Of the wanted pieces from `next_` on, some.
  size_t open_next_ = 0;
  std::unique_ptr<PagesAhead> pages_ahead_;  // Of the blocks that records are read into.
  bool is_bad_ = false;
  std::optional<TimePoint> deadline_;  // From the first record on, where there is one.
};

}  // namespace cairn::store
