// Reading everything that a store has, digests included.
#include <algorithm>
#include <optional>
#include <utility>

#include "memory/common_prefix.h"
#include "store/crc32c.h"
#include "store/disk_store.h"

namespace cairn::store {
namespace {

constexpr size_t kReadBytes = size_t(1) << 20;

// The header is that of the name, and all digests are right. Sizes come from the file itself, which
// is as large as they say, before anything is allocated. Errors: cancelled, where `goes_on` says
// so.
Result<RecordHeader> verify_file(const RecordFile& file, const Sha256Digest& name,
                                 DiskStore::GoesOn goes_on) {
  std::vector<std::byte> bytes(kHeaderBytes);
  CAIRN_TRY(file.read(0, bytes));
  CAIRN_TRY(const RecordHeader header, decode_header(bytes));
  if (name_of(header) != name || header.file_bytes() != file.size()) {
    return fail(ErrorCode::invalid_data, "record: not that of its name");
  }
  bytes.resize(size_t(header.payload_offset()));
  CAIRN_TRY(file.read(0, bytes));
  CAIRN_TRY(const RecordFront front, decode_front(bytes));
  Sha256 sha;
  BlockChecksums checksums;
  std::vector<std::byte> piece(kReadBytes);
  for (uint64_t done = 0; done < header.payload_bytes;) {
    if (!goes_on()) return fail(ErrorCode::cancelled, "record: not read to its end");
    const auto part =
        std::span(piece).first(size_t(std::min<uint64_t>(kReadBytes, header.payload_bytes - done)));
    CAIRN_TRY(file.read(header.payload_offset() + done, part));
    sha.add(part);
    checksums.add(part);
    done += part.size();
  }
  if (sha.finish() == header.payload_digest && checksums.finish() == front.checksums) return header;
  return fail(ErrorCode::invalid_data, "record: the digest of its payload is another");
}

}  // namespace

bool DiskStore::verify_record(const PieceRef& ref) {
  Result<RecordFile> file = folder_->open_record(Place::objects, ref.name);
  if (!file) return false;
  const auto verify = [&]() -> Status {
    CAIRN_TRY(const RecordHeader header, verify_file(*file, ref.name, always));
    const bool is_partial = (header.flags & kIsPartial) != 0;
    const bool is_expected =
        (is_partial || header.payload_digest == ref.digest) && file->size() == ref.file_bytes;
    if (is_expected) return Ok{};
    return fail(ErrorCode::invalid_data, "record: not that of its manifest");
  };
  const Status status = verify();
  if (!status) put_away(Place::objects, ref.name, status.error().message);
  return bool(status);
}

void DiskStore::list_for_scrub() {
  const std::lock_guard lock(mutex_);
  for (const IndexEntry* entry : index_.oldest_first()) {
    to_scrub_.emplace_back(Place::manifests, entry->name);
  }
  for (const Sha256Digest& name : index_.records()) to_scrub_.emplace_back(Place::objects, name);
}

// What is not there any more was removed, and what another version wrote is not understood.
bool DiskStore::scrub_next(GoesOn goes_on) {
  if (folder_->is_read_only() || !is_read_within({})) return false;
  if (to_scrub_.empty()) list_for_scrub();
  if (to_scrub_.empty()) return false;
  const auto [place, name] = to_scrub_.back();
  Status status = Ok{};
  if (Result<RecordFile> file = folder_->open_record(place, name); file) {
    Result<RecordHeader> header = verify_file(*file, name, goes_on);
    if (!header) status = std::move(header).error();
  }
  if (!status && status.error().code == ErrorCode::cancelled) return false;
  to_scrub_.pop_back();
  {
    const std::lock_guard lock(mutex_);
    ++stats_.scrubbed;  // First: who sees the damage sees who has found it.
  }
  if (!status && status.error().code == ErrorCode::invalid_data) {
    put_away(place, name, status.error().message);
  }
  return true;
}

void DiskStore::condemn(const Sha256Digest& fingerprint, std::span<const Token> tokens,
                        int32_t position, const std::string& reason) {
  if (!wait_until_read()) return;
  const Chain chain(fingerprint, tokens);
  const int32_t link_count = std::min(position / kChainTokens, chain.link_count());
  std::vector<Sha256Digest> names;
  {
    const std::lock_guard lock(mutex_);
    names = index_.passing(chain, link_count);
  }
  for (const Sha256Digest& name : names) {
    Result<Manifest> manifest = read_manifest(name);
    if (!manifest || memory::common_prefix(manifest->outline.tokens, tokens) <= position) continue;
    for (const PieceRef& piece : manifest->pieces) {
      if (folder_->size_of(Place::objects, piece.name)) {
        put_away(Place::objects, piece.name, reason);
      }
    }
    put_away(Place::manifests, name, reason);
    const std::lock_guard lock(mutex_);
    ++stats_.condemned;
  }
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
    writing_tenant_ = manifest.tenant;
  }
  wait_until_read();
  if (unread_) return *unread_;
  being_written_.insert(name);
  const PieceRef ref{.name = name, .digest = header.payload_digest, .file_bytes = record.size()};
  if (!is_manifest && folder_->size_of(place, name)) (void)verify_record(ref);
  CAIRN_TRY(const bool is_new, write_file(place, name, {&record, 1}, Durability::saved));
  CAIRN_TRY(folder_->sync_names(place, name));
  const std::lock_guard lock(mutex_);
  if (is_new) stats_.written_bytes += record.size();
  if (entry) {
    entry->is_saved = saved_.contains(name);
    index_.add(std::move(*entry));
    being_written_.clear();
  } else {
    index_.note_record(name, record.size(), now_ns_());
  }
  return name;
}

}  // namespace cairn::store
