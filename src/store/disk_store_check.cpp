// Reading everything that a store has, digests included.
#include <utility>

#include "store/crc32c.h"
#include "store/disk_store.h"

namespace cairn::store {
namespace {

constexpr size_t kReadBytes = size_t(1) << 20;

// Sizes come from the file itself, which is as large as they say, before anything is allocated.
Status verify_file(const RecordFile& file, const PieceRef& ref) {
  std::vector<std::byte> bytes(kHeaderBytes);
  CAIRN_TRY(file.read(0, bytes));
  CAIRN_TRY(const RecordHeader header, decode_header(bytes));
  const bool is_expected = name_of(header) == ref.name && header.payload_digest == ref.digest &&
                           header.file_bytes() == file.size() && file.size() == ref.file_bytes;
  if (!is_expected) return fail(ErrorCode::invalid_data, "record: not that of its name");
  bytes.resize(size_t(header.payload_offset()));
  CAIRN_TRY(file.read(0, bytes));
  CAIRN_TRY(const RecordFront front, decode_front(bytes));
  Sha256 sha;
  BlockChecksums checksums;
  std::vector<std::byte> piece(kReadBytes);
  for (uint64_t done = 0; done < header.payload_bytes;) {
    const auto part =
        std::span(piece).first(size_t(std::min<uint64_t>(kReadBytes, header.payload_bytes - done)));
    CAIRN_TRY(file.read(header.payload_offset() + done, part));
    sha.add(part);
    checksums.add(part);
    done += part.size();
  }
  if (sha.finish() == header.payload_digest && checksums.finish() == front.checksums) return Ok{};
  return fail(ErrorCode::invalid_data, "record: the digest of its payload is another");
}

}  // namespace

bool DiskStore::verify_record(const PieceRef& ref) {
  Result<RecordFile> file = folder_->open_record(Place::objects, ref.name);
  if (!file) return false;
  const Status status = verify_file(*file, ref);
  if (!status) put_away(Place::objects, ref.name, status.error().message);
  return bool(status);
}

// A record that many sequences need is read once.
Result<DiskStore::Verified> DiskStore::verify() {
  Verified verified;
  std::set<Sha256Digest> seen;
  for (const IndexEntry& entry : entries()) {
    Result<Manifest> manifest = read_manifest(entry.name);
    if (!manifest && manifest.error().code == ErrorCode::unsupported) continue;
    ++verified.sequences;
    if (!manifest) ++verified.bad_sequences;
    if (!manifest) continue;
    bool is_good = true;
    for (const PieceRef& piece : manifest->pieces) {
      if (!seen.insert(piece.name).second) continue;
      ++verified.records;
      const bool is_whole = verify_record(piece);
      verified.bad_records += uint64_t(!is_whole);
      is_good = is_good && is_whole;
    }
    verified.bad_sequences += uint64_t(!is_good);
  }
  return verified;
}

}  // namespace cairn::store
