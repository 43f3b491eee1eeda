// Blocks, records, checksums.
#include "store/loading.h"

#include <algorithm>
#include <utility>

#include "store/crc32c.h"
#include "store/snapshot.h"

namespace cairn::store {
namespace {

// Payload bytes come in blocks that are checked as a whole; what is wanted of the last block may be
// a part of it.
uint64_t rounded_to_block(uint64_t bytes, uint64_t all) {
  return std::min((bytes + kCrcBlockBytes - 1) / kCrcBlockBytes * kCrcBlockBytes, all);
}

// Records that the disk reads while one before them is checked: 2 MiB each at most.
constexpr size_t kOpenAhead = 4;
// Of fewer bytes the system clears the pages in less time than a thread takes to begin.
constexpr size_t kClearAheadBytes = size_t(16) << 20;

// Where the payload of a piece goes: into the blocks of what is wanted, and what lies before them
// into `scratch`.
std::vector<std::span<std::byte>> targets_of(const Piece& piece, const memory::Outline& wanted,
                                             const memory::Layout& layout,
                                             memory::Assembly& assembly,
                                             std::vector<std::byte>& scratch) {
  if (piece.type == RecordType::state) return parts_of(piece, layout, assembly);
  std::vector<std::span<std::byte>> targets;
  const size_t page_bytes = size_t(piece.payload_bytes) / size_t(piece.pages.count);
  scratch.resize(page_bytes);
  int32_t next = piece.pages.first;
  for (const memory::PageRun& run : wanted.runs[size_t(piece.group)]) {
    Piece part = piece;
    part.pages.first = std::max(run.first, piece.pages.first);
    part.pages.count = std::min(run.end(), piece.pages.end()) - part.pages.first;
    if (part.pages.count <= 0) continue;
    for (; next < part.pages.first; ++next) targets.push_back(scratch);
    const std::vector<std::span<std::byte>> parts = parts_of(part, layout, assembly);
    targets.insert(targets.end(), parts.begin(), parts.end());
    next = part.pages.end();
  }
  return targets;
}

}  // namespace

// Moving a list of tokens leaves them where they are, so that the chain may refer to them.
Loading::Loading(const Sha256Digest& fingerprint, Match match, int32_t known)
    : match_(std::move(match)),
      known_(known),
      chain_(fingerprint, match_.manifest.outline.tokens),
      outline_(match_.held ? *match_.held : match_.manifest.outline) {}

int32_t Loading::resume(const memory::Layout& layout) const {
  return resume_position(outline_, layout, match_.position, match_.wants_logits);
}

memory::Outline Loading::wanted(const memory::Layout& layout) const {
  memory::Outline wanted = outline_;
  wanted.cut(layout, resume(layout));
  return wanted;
}

size_t Loading::needed_bytes(const memory::Layout& layout) const {
  return memory::Assembly::needed_bytes(layout, wanted(layout));
}

Status Loading::begin(memory::Memory& memory, memory::Variant variant) {
  layout_ = &memory.layout();
  const bool is_hopeless = is_bad_ && (is_late() || !match_.place->tries_again());
  if (is_hopeless || resume(*layout_) <= known_) {
    match_.place->count_miss();
    return fail(ErrorCode::not_found, "store: nothing that helps could be read");
  }
  wanted_ = wanted(*layout_);
  CAIRN_TRY(assembly_, memory::Assembly::begin(memory, wanted_, variant));
  pieces_ = pieces_of(match_.manifest.outline, *layout_);
  next_ = open_next_ = 0;
  opened_.clear();
  is_bad_ = false;
  return Ok{};
}

bool Loading::read_next() {
  CHECK(assembly_.has_value());
  if (next_ == pieces_.size() || is_bad_) return false;
  if (match_.patience && !deadline_) {
    deadline_ = std::chrono::steady_clock::now() + *match_.patience;
  }
  if (next_ == 0) clear_ahead();
  is_bad_ = !read_piece(next_);
  if (is_bad_) {
    drop(pieces_[next_], *layout_, outline_);
  } else if (++next_ < pieces_.size()) {
    return true;
  }
  pages_ahead_.reset();  // Here, so that the engine's thread need not wait for it.
  return false;
}

bool Loading::is_late() const {
  return deadline_ && std::chrono::steady_clock::now() >= *deadline_;
}

Result<memory::Sequence> Loading::finish() {
  CHECK(assembly_.has_value() && (is_bad_ || next_ == pieces_.size()));
  if (is_bad_) {
    assembly_.reset();
    return fail(ErrorCode::invalid_data, "store: a record is missing or damaged");
  }
  fill_rows();
  match_.place->count_hit(match_.name);
  memory::Sequence sequence = std::move(*assembly_).finish();
  assembly_.reset();
  return sequence;
}

// Hidden rows lie in the manifest.
void Loading::fill_rows() {
  const size_t row_bytes = layout_->hidden_bytes();
  const std::vector<int32_t> stored = match_.manifest.outline.hidden_positions();
  for (const int32_t position : wanted_.hidden_positions()) {
    const size_t row = size_t(std::ranges::lower_bound(stored, position) - stored.begin());
    const auto bytes = std::span(match_.manifest.hidden_rows).subspan(row * row_bytes, row_bytes);
    std::ranges::copy(bytes, assembly_->hidden(position).data);
  }
}

void Loading::open_ahead() {
  for (; open_next_ < pieces_.size() && opened_.size() < kOpenAhead; ++open_next_) {
    if (!has_part_in(pieces_[open_next_], wanted_)) continue;
    opened_.push_back(match_.place->open_record(match_.manifest.pieces[open_next_], deadline_));
  }
}

void Loading::clear_ahead() {
  std::vector<std::span<std::byte>> parts;
  size_t bytes = 0;
  for (size_t group = 0; group < wanted_.runs.size(); ++group) {
    for (const memory::PageRun& run : wanted_.runs[group]) {
      for (int32_t page = run.first; page < run.end(); ++page) {
        const DeviceBytes block = assembly_->page(int32_t(group), page);
        bytes += block.size;
        parts.emplace_back(block.data, block.size);
      }
    }
  }
  if (bytes >= kClearAheadBytes) pages_ahead_ = std::make_unique<PagesAhead>(std::move(parts));
}

// Only records that hold something wanted are read.
bool Loading::read_piece(size_t index) {
  const Piece& piece = pieces_[index];
  if (!has_part_in(piece, wanted_)) return true;
  open_ahead();
  Result<std::unique_ptr<OpenRecord>> record = std::move(opened_.front());
  opened_.pop_front();
  const PieceRef& ref = match_.manifest.pieces[index];
  std::vector<std::byte> scratch;
  const auto targets = targets_of(piece, wanted_, *layout_, *assembly_, scratch);
  const Status status =
      record ? read_record(**record, piece, ref, targets) : Status(record.error());
  // What cannot be read now may be readable again: only what was read and is wrong is put away.
  if (!status && status.error().code == ErrorCode::invalid_data) {
    match_.place->refuse_record(ref, status.error().message);
  }
  return bool(status);
}

Status Loading::read_record(OpenRecord& record, const Piece& piece, const PieceRef& ref,
                            std::span<const std::span<std::byte>> targets) {
  RecordHeader expected = header_of(piece, chain_, *layout_);
  expected.payload_digest = ref.digest;
  if (name_of(expected) != ref.name) {
    return fail(ErrorCode::invalid_data, "record: not that of its name");
  }
  CAIRN_TRY(record.expect_bytes(expected.file_bytes()));
  std::vector<std::byte> bytes(size_t(expected.payload_offset()));
  CAIRN_TRY(record.read(0, bytes));
  CAIRN_TRY(const RecordFront front, decode_front(bytes));
  // Rows that nobody wants may differ between two records of one name.
  if (piece.is_partial) expected.payload_digest = front.header.payload_digest;
  const std::span<const Token> tokens = match_.manifest.outline.tokens;
  const auto own = tokens.subspan(size_t(piece.begin), size_t(piece.end - piece.begin));
  if (front.header != expected || !std::ranges::equal(front.tokens, own)) {
    return fail(ErrorCode::invalid_data, "record: it is that of other tokens");
  }
  return read_payload(record, front, targets);
}

// Into parts that nobody else sees before all of them are checked.
Status Loading::read_payload(OpenRecord& record, const RecordFront& front,
                             std::span<const std::span<std::byte>> parts) {
  BlockChecksums checksums;
  uint64_t offset = front.header.payload_offset();
  uint64_t wanted = 0;
  for (const std::span<std::byte>& part : parts) {
    CAIRN_TRY(record.read(offset, part));
    checksums.add(part);
    offset += part.size();
    wanted += part.size();
  }
  std::vector<std::byte> rest(
      size_t(rounded_to_block(wanted, front.header.payload_bytes) - wanted));
  CAIRN_TRY(record.read(offset, rest));
  checksums.add(rest);
  const std::vector<uint32_t> found = checksums.finish();
  const bool is_equal = found.size() <= front.checksums.size() &&
                        std::equal(found.begin(), found.end(), front.checksums.begin());
  match_.place->count_read(wanted + rest.size());
  if (is_equal) return Ok{};
  return fail(ErrorCode::invalid_data, "record: a checksum of its payload is another");
}

}  // namespace cairn::store
