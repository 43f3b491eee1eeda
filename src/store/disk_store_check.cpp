// Reading everything that a store has, digests included.
#include <algorithm>
#include <optional>
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
  const bool is_partial = (header.flags & kIsPartial) != 0;
  const bool is_expected = name_of(header) == ref.name &&
                           (is_partial || header.payload_digest == ref.digest) &&
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

Result<std::vector<std::byte>> DiskStore::read_whole(Place place, const Sha256Digest& name) {
  CAIRN_TRY(const RecordFile file, folder_->open_record(place, name));
  std::vector<std::byte> bytes(kHeaderBytes);
  CAIRN_TRY(file.read(0, bytes));
  CAIRN_TRY(const RecordHeader header, decode_header(bytes));
  if (header.file_bytes() != file.size()) {
    return fail(ErrorCode::invalid_data, "record: expected {} bytes, found {}", header.file_bytes(),
                file.size());
  }
  bytes.resize(size_t(file.size()));
  CAIRN_TRY(file.read(0, bytes));
  return bytes;
}

Result<Sha256Digest> DiskStore::adopt(std::span<const std::byte> record) {
  CAIRN_TRY(const RecordHeader header, decode_header(record));
  if (record.size() != header.file_bytes()) {
    return fail(ErrorCode::invalid_data, "record: expected {} bytes, found {}", header.file_bytes(),
                record.size());
  }
  CAIRN_TRY(RecordFront front, decode_front(record.first(size_t(header.payload_offset()))));
  const std::span<const std::byte> payload = record.subspan(size_t(header.payload_offset()));
  BlockChecksums checksums;
  checksums.add(payload);
  const bool is_whole = checksums.finish() == front.checksums &&
                        Sha256().add(payload).finish() == header.payload_digest;
  if (!is_whole) {
    return fail(ErrorCode::invalid_data, "record: the digest of its payload is another");
  }
  const Sha256Digest name = name_of(header);
  const bool is_manifest = header.type == RecordType::manifest;
  const Place place = is_manifest ? Place::manifests : Place::objects;
  std::optional<IndexEntry> entry;
  if (is_manifest) {
    const Chain chain(header.fingerprint, front.tokens);
    CAIRN_TRY(const Manifest manifest, decode_manifest(payload, front.tokens));
    if (header.token_count != uint32_t(header.end) ||
        chain.key_at(int32_t(front.tokens.size())) != header.key_at_end) {
      return fail(ErrorCode::invalid_data, "manifest: its tokens are not those of its key");
    }
    for (const PieceRef& piece : manifest.pieces) {
      if (folder_->size_of(Place::objects, piece.name) == piece.file_bytes) continue;
      return fail(ErrorCode::invalid_data, "manifest: a record that it names is missing");
    }
    entry = entry_of(header, manifest, chain);
    entry->used_ns = now_ns_();
  }
  being_written_.insert(name);
  const PieceRef ref{.name = name, .digest = header.payload_digest, .file_bytes = record.size()};
  if (!is_manifest && folder_->size_of(place, name)) (void)verify_record(ref);
  CAIRN_TRY(make_room(record.size()));
  CAIRN_TRY(const bool is_new, folder_->write(place, name, {&record, 1}, Durability::saved));
  CAIRN_TRY(folder_->sync_names(place, name));
  const std::lock_guard lock(mutex_);
  if (is_new) stats_.written_bytes += record.size();
  if (entry) {
    index_.add(std::move(*entry));
    being_written_.clear();
  } else {
    index_.note_record(name, record.size(), now_ns_());
  }
  return name;
}

}  // namespace cairn::store
