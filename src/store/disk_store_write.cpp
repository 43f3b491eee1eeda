// Writing, and making room: records first, the manifest last; a sequence goes manifest first.
#include <algorithm>
#include <array>
#include <utility>

#include "store/disk_store.h"
#include "store/encoded_record.h"

namespace cairn::store {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
// After a failure of the disk nothing is written for a minute, then twice as long each time, up to
// an hour.
constexpr int64_t kPauseMinNs = 60 * kSecondNs, kPauseMaxNs = 3600 * kSecondNs;
// Records without a manifest may belong to a writer that is not done.
constexpr int64_t kYoungNs = 600 * kSecondNs;
// Who waits until all is read is asked so often whether it shall go on.
constexpr std::chrono::milliseconds kAskAgain(20);
// Who saves waits so long for another program that makes room, and writes again so often what that
// one has taken meanwhile.
constexpr std::chrono::milliseconds kSavePatience(10000);
constexpr int kSaveTries = 3;

}  // namespace

void DiskStore::pause(const Error& error) {
  if (error.code == ErrorCode::cancelled) return;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.refused;
  }
  if (error.code != ErrorCode::io) return;
  pause_ns_ = std::clamp(2 * pause_ns_, kPauseMinNs, kPauseMaxNs);
  paused_until_ns_ = now_ns_() + pause_ns_;
}

Result<Sha256Digest> DiskStore::write(const Snapshot& snapshot, Durability durability,
                                      GoesOn goes_on) {
  const Chain chain(snapshot.fingerprint(), snapshot.outline().tokens);
  being_written_.clear();
  new_records_.clear();
  writing_tenant_ = snapshot.tenant();
  Result<Sha256Digest> written = write_all(snapshot, chain, durability, goes_on);
  being_written_.clear();
  if (!written && written.error().code == ErrorCode::no_room) drop_new_records();
  if (!written) pause(written.error());
  if (written) pause_ns_ = 0;
  // What is being saved has a name first: what had the name before may be covered then.
  if (written && durability == Durability::cache) drop_covered(*written, chain);
  return written;
}

Result<Sha256Digest> DiskStore::write_all(const Snapshot& snapshot, const Chain& chain,
                                          Durability durability, GoesOn goes_on) {
  while (!is_read_within(kAskAgain)) {
    if (is_closing_ || !goes_on()) return fail(ErrorCode::cancelled, "store: the memory is needed");
  }
  if (unread_) return *unread_;
  if (folder_->is_read_only()) {
    return fail(ErrorCode::no_room, "{}: it can only be read", folder_->path());
  }
  // A clock that was set back does not make the pause longer.
  const int64_t left_ns = paused_until_ns_ - now_ns_();
  if (left_ns > 0 && left_ns <= pause_ns_) {
    return fail(ErrorCode::no_room, "{}: not written to for a while, since the disk failed",
                folder_->path());
  }
  Manifest manifest = snapshot.manifest();
  for (const Piece& piece : snapshot.pieces()) {
    if (!goes_on()) return fail(ErrorCode::cancelled, "store: the memory is needed");
    CAIRN_TRY(const PieceRef ref, write_piece(snapshot, piece, chain, durability));
    manifest.pieces.push_back(ref);
  }
  return write_manifest(manifest, chain, layout_id(snapshot.layout()), durability);
}

// What has no room as a whole takes none in parts: nobody's share would count them.
// Where others may have come to need them, they are left to be swept.
void DiskStore::drop_new_records() {
  if (new_records_.empty()) return;
  const Descriptor collection = folder_->lock_collection();
  if (!collection || !learn_from_others(Extent::changes)) return;
  for (const Sha256Digest& name : new_records_) {
    {
      const std::lock_guard lock(mutex_);
      if (index_.is_needed(name)) continue;
    }
    drop_record(name);
  }
}

Result<PieceRef> DiskStore::write_piece(const Snapshot& snapshot, const Piece& piece,
                                        const Chain& chain, Durability durability) {
  const RecordHeader expected = header_of(piece, chain, snapshot.layout());
  const Sha256Digest name = name_of(expected);
  being_written_.insert(name);
  if (folder_->size_of(Place::objects, name)) {
    Result<PieceRef> existing = keep_existing(expected, name, durability);
    // Who saves wants to know that what is there is good.
    const bool is_good = existing && (durability == Durability::cache || verify_record(*existing));
    if (is_good) return existing;
  }
  const EncodedRecord record = encode_piece(snapshot, piece, chain);
  const RecordHeader& header = record.header;
  const PieceRef& ref = record.ref;
  CAIRN_TRY(const bool is_new, write_file(Place::objects, name, record.parts(), durability));
  if (durability == Durability::saved) CAIRN_TRY(folder_->sync_names(Place::objects, name));
  if (!is_new) {
    CAIRN_TRY(const PieceRef existing, keep_existing(header, name, durability));
    const bool may_differ = (header.flags & kIsPartial) != 0;
    if (existing.digest != ref.digest && !may_differ) {
      put_away(Place::objects, name, "two payloads of one name");
      const std::lock_guard lock(mutex_);
      ++stats_.conflicts;
      return fail(ErrorCode::invalid_data, "store: two payloads of one name");
    }
    return existing;
  }
  new_records_.push_back(name);
  const std::lock_guard lock(mutex_);
  index_.note_record(name, header.file_bytes(), now_ns_());
  stats_.written_bytes += header.file_bytes();
  return ref;
}

// The system may have less room than the disk: a quota, or others who were faster.
Result<bool> DiskStore::write_file(Place place, const Sha256Digest& name, FileParts parts,
                                   Durability durability) {
  uint64_t bytes = 0;
  for (const std::span<const std::byte> part : parts) bytes += part.size();
  CAIRN_TRY(make_room(bytes));
  Result<bool> is_new = folder_->write(place, name, parts, durability);
  if (is_new || is_new.error().code != ErrorCode::no_room) return is_new;
  if (const uint64_t used = stats().bytes; bytes < used) evict_for(bytes, used);
  return folder_->write(place, name, parts, durability);
}

// What a file that is there says of itself. A damaged one is put away, and written again next time.
Result<PieceRef> DiskStore::keep_existing(const RecordHeader& header, const Sha256Digest& name,
                                          Durability durability) {
  const auto read = [&]() -> Result<PieceRef> {
    CAIRN_TRY(const RecordFile file, folder_->open_record(Place::objects, name));
    std::vector<std::byte> bytes(kHeaderBytes);
    CAIRN_TRY(file.read(0, bytes));
    CAIRN_TRY(RecordHeader found, decode_header(bytes));
    const Sha256Digest digest = std::exchange(found.payload_digest, header.payload_digest);
    if (found != header || file.size() != header.file_bytes()) {
      return fail(ErrorCode::invalid_data, "record: not that of its name");
    }
    if (durability == Durability::saved) {
      CAIRN_TRY(file.sync());
      CAIRN_TRY(folder_->sync_names(Place::objects, name));
    }
    return PieceRef{.name = name, .digest = digest, .file_bytes = header.file_bytes()};
  };
  Result<PieceRef> ref = read();
  if (!ref && ref.error().code == ErrorCode::invalid_data) {
    put_away(Place::objects, name, ref.error().message);
  }
  return ref;
}

// A damaged one of the same name is put away as it is read.
Status DiskStore::write_manifest_file(const EncodedRecord& record, Durability durability) {
  const Sha256Digest& name = record.ref.name;
  const bool is_there = folder_->size_of(Place::manifests, name) && read_manifest(name);
  if (is_there) {
    folder_->mark_used(Place::manifests, name);
  } else {
    CAIRN_TRY(write_file(Place::manifests, name, record.parts(), durability));
    const std::lock_guard lock(mutex_);
    stats_.written_bytes += record.ref.file_bytes;
  }
  if (durability == Durability::cache) return Ok{};
  if (is_there) {
    CAIRN_TRY(const RecordFile file, folder_->open_record(Place::manifests, name));
    CAIRN_TRY(file.sync());
  }
  return folder_->sync_names(Place::manifests, name);
}

Result<Sha256Digest> DiskStore::write_manifest(const Manifest& manifest, const Chain& chain,
                                               uint32_t layout, Durability durability) {
  CAIRN_TRY(const EncodedRecord record, encode_manifest(manifest, chain, layout));
  CAIRN_TRY(write_manifest_file(record, durability));
  IndexEntry entry = entry_of(record.header, manifest, chain);
  const Sha256Digest name = entry.name;
  entry.used_ns = now_ns_();
  entry.is_saved = saved_.contains(name);
  const std::lock_guard lock(mutex_);
  index_.add(std::move(entry));
  return name;
}

// What a sequence goes on from is not needed any more, unless a session's name stands for it. Where
// another program makes room just now, it goes another time.
void DiskStore::drop_covered(const Sha256Digest& name, const Chain& chain) {
  std::vector<Sha256Digest> covered;
  {
    const std::lock_guard lock(mutex_);
    const IndexEntry* const entry = index_.find(name);
    if (entry == nullptr) return;
    covered = index_.covered_by(chain, entry->length, entry->borders);
  }
  std::erase(covered, name);
  if (covered.empty()) return;
  const Descriptor lock = folder_->lock_collection();
  if (!lock || !learn_from_others(Extent::changes)) return;
  {
    const std::lock_guard guard(mutex_);
    std::erase_if(covered, [&](const Sha256Digest& other) {
      const IndexEntry* const entry = index_.find(other);
      return entry == nullptr || entry->is_saved;
    });
  }
  for (const Sha256Digest& other : covered) drop_entry(other);
}

Status DiskStore::save(const std::string& session, const Snapshot& snapshot,
                       std::string_view note) {
  if (!is_session_name(session)) return folder_->save_name(session, {});
  for (int tries = 0; tries < kSaveTries; ++tries) {
    CAIRN_TRY(const Sha256Digest name, write(snapshot, Durability::saved));
    CAIRN_TRY(const bool is_whole, save_name(session, name, note));
    if (!is_whole) continue;
    drop_covered(name, Chain(snapshot.fingerprint(), snapshot.outline().tokens));
    return Ok{};
  }
  return fail(ErrorCode::io, "{}: another program removes what session {} needs", folder_->path(),
              session);
}

// Nobody removes anything meanwhile. False: of what was written something is gone already.
Result<bool> DiskStore::save_name(const std::string& session, const Sha256Digest& name,
                                  std::string_view note) {
  const Descriptor lock = folder_->lock_collection(kSavePatience);
  if (!lock) {
    return fail(ErrorCode::io, "{}: another program has made room there for {} seconds",
                folder_->path(), kSavePatience.count() / 1000);
  }
  std::vector<Sha256Digest> records;
  {
    const std::lock_guard guard(mutex_);
    if (const IndexEntry* const entry = index_.find(name)) records = entry->records;
  }
  const bool is_whole = folder_->size_of(Place::manifests, name) &&
                        std::ranges::all_of(records, [&](const Sha256Digest& record) {
                          return folder_->size_of(Place::objects, record).has_value();
                        });
  if (!is_whole) return false;
  CAIRN_TRY(folder_->save_name(session, name, note));
  CAIRN_TRY(saved_, saved_manifests());
  const std::lock_guard guard(mutex_);
  index_.set_saved(saved_);
  return true;
}

// Counted before anything is written.
Status DiskStore::make_room(uint64_t bytes) {
  uint64_t used = stats().bytes;
  if (used + bytes > budget_bytes_) {
    if (bytes < room()) evict_for(bytes, room());
    used = stats().bytes;
  }
  if (used + bytes > budget_bytes_) {
    return fail(ErrorCode::no_room, "{}: {} bytes more than the {} that it may take",
                folder_->path(), used + bytes - budget_bytes_, budget_bytes_);
  }
  const int64_t free_bytes = folder_->free_bytes();
  if (free_bytes >= 0 && uint64_t(free_bytes) >= free_bytes_min_ + bytes) return Ok{};
  return fail(ErrorCode::no_room, "{}: expected {} free bytes on the disk, found {}",
              folder_->path(), free_bytes_min_ + bytes, free_bytes);
}

void DiskStore::set_shares(std::vector<uint64_t> tenants, double part) {
  const std::lock_guard lock(mutex_);
  shares_.set(std::move(tenants), part, room());
}

// What a tenant is writing counts as its own, with so many bytes more of it.
std::map<uint64_t, uint64_t> DiskStore::held_by_tenant(uint64_t more_bytes) const {
  const std::lock_guard lock(mutex_);
  std::map<uint64_t, uint64_t> held = index_.bytes_by_tenant();
  uint64_t& of_writer = held[writing_tenant_];
  of_writer += more_bytes;
  for (const Sha256Digest& record : being_written_) {
    if (!index_.is_needed(record)) of_writer += index_.record_bytes(record);
  }
  return held;
}

// So that all files have `room` with so many bytes more. What is above a share goes first, then
// what the writing tenant has; of either the longest unused.
void DiskStore::evict_for(uint64_t bytes, uint64_t room) {
  const Descriptor lock = folder_->lock_collection();
  if (!lock || !learn_from_others(Extent::everything)) return;
  sweep_old_records(true);
  std::map<uint64_t, uint64_t> held = held_by_tenant(bytes);
  const std::vector<IndexEntry> oldest_first = entries();
  memory::EvenShares shares;
  {
    const std::lock_guard guard(mutex_);
    shares = shares_;
  }
  for (const bool takes_own : {false, true}) {
    for (const IndexEntry& entry : oldest_first) {
      const uint64_t used = stats().bytes;
      if (used + bytes <= room) return;
      uint64_t& of_tenant = held[entry.tenant];
      const bool is_own = takes_own && entry.tenant == writing_tenant_;
      const bool may_go = is_own || shares.is_above(entry.tenant, of_tenant);
      if (entry.is_saved || !may_go || !drop_entry(entry.name)) continue;
      const std::lock_guard guard(mutex_);
      of_tenant -= std::min(of_tenant, used - index_.total_bytes());
      ++stats_.evicted;
    }
  }
  sweep_old_records(false);
}

// The manifest goes first; records that no other needs follow. Whether it was there and has gone.
bool DiskStore::drop_entry(const Sha256Digest& name) {
  std::vector<Sha256Digest> records;
  {
    const std::lock_guard lock(mutex_);
    const IndexEntry* const entry = index_.find(name);
    if (entry == nullptr || !folder_->remove(Place::manifests, name)) return false;
    records = entry->records;
    index_.remove(name);
    std::erase_if(records, [&](const Sha256Digest& record) {
      return index_.is_needed(record) || being_written_.contains(record);
    });
  }
  for (const Sha256Digest& record : records) drop_record(record);
  return true;
}

void DiskStore::drop_record(const Sha256Digest& name) {
  if (!folder_->remove(Place::objects, name)) return;
  const std::lock_guard lock(mutex_);
  index_.forget_record(name);
}

bool DiskStore::is_foreign(const Sha256Digest& name) {
  Result<RecordFile> file = folder_->open_record(Place::objects, name);
  std::array<std::byte, kHeaderBytes> bytes{};
  if (!file || !file->read(0, bytes)) return false;
  const Result<RecordHeader> header = decode_header(bytes);
  return !header && header.error().code == ErrorCode::unsupported;
}

// Left by writers that were killed. Those of another version may have a manifest that is not
// understood here; they go when all else that may go has gone.
void DiskStore::sweep_old_records(bool spares_foreign) {
  std::vector<Sha256Digest> records;
  {
    const std::lock_guard lock(mutex_);
    records = index_.unneeded_records(now_ns_() - kYoungNs);
  }
  for (const Sha256Digest& name : records) {
    if (being_written_.contains(name)) continue;
    if (!spares_foreign || !is_foreign(name)) drop_record(name);
  }
}

Status DiskStore::remove(const Sha256Digest& name) {
  wait_until_read();
  const Descriptor collection = folder_->lock_collection(kSavePatience);
  if (!collection || !learn_from_others(Extent::changes)) {
    return fail(ErrorCode::io, "{}: cannot be locked and read, so that nothing is removed",
                folder_->path());
  }
  {
    const std::lock_guard lock(mutex_);
    if (index_.find(name) == nullptr) {
      return fail(ErrorCode::not_found, "{}: no sequence has the name {}", folder_->path(),
                  hex_of(name));
    }
  }
  drop_entry(name);
  return Ok{};
}

}  // namespace cairn::store
