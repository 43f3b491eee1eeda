// Preparing, finding, reading.
#include "tier/peers/shelf.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "store/pieces.h"
#include "tier/tier.h"

namespace cairn::tier {

namespace {

std::vector<std::byte> bytes_of(const store::EncodedRecord& record) {
  std::vector<std::byte> bytes;
  bytes.reserve(size_t(record.ref.file_bytes));
  for (const std::span<const std::byte>& part : record.parts()) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

// Whether whoever has `longer` does not miss `other`.
bool covers(const store::Snapshot& longer, const store::Snapshot& other) {
  const std::span<const Token> tokens = longer.outline().tokens, own = other.outline().tokens;
  return longer.fingerprint() == other.fingerprint() && own.size() <= tokens.size() &&
         std::ranges::equal(own, tokens.first(own.size())) &&
         resume_position(longer.outline(), longer.layout(), int32_t(own.size()), true) ==
             int32_t(own.size());
}

// What a disk has lost is not lent.
Status check_payload(std::span<const std::byte> file) {
  CAIRN_TRY(const store::RecordHeader header, store::decode_header(file));
  const auto payload = file.subspan(size_t(header.payload_offset()));
  if (Sha256().add(payload).finish() == header.payload_digest) return Ok{};
  return fail(ErrorCode::invalid_data, "record: its payload has another digest");
}

}  // namespace

Result<std::shared_ptr<LentSequence>> LentSequence::prepare(
    std::unique_ptr<store::Snapshot>& snapshot, std::map<Sha256Digest, Sha256Digest>& digests,
    const std::atomic<bool>& gives_up) {
  auto made = std::make_shared<LentSequence>();
  made->chain = std::make_unique<store::Chain>(snapshot->fingerprint(), snapshot->outline().tokens);
  store::Manifest manifest = snapshot->manifest();
  for (size_t index = 0; index < snapshot->pieces().size(); ++index) {
    if (gives_up) return fail(ErrorCode::cancelled, "tier: the memory is needed");
    const store::Piece& piece = snapshot->pieces()[index];
    const store::RecordHeader header = header_of(piece, *made->chain, snapshot->layout());
    const Sha256Digest name = name_of(header);
    made->pieces.emplace(name, index);
    auto known = digests.find(name);
    if (known == digests.end()) {
      const store::EncodedRecord record = encode_piece(*snapshot, piece, *made->chain);
      known = digests.emplace(name, record.ref.digest).first;
    }
    manifest.pieces.push_back(
        {.name = name, .digest = known->second, .file_bytes = header.file_bytes()});
  }
  CAIRN_TRY(made->manifest,
            store::encode_manifest(manifest, *made->chain, store::layout_id(snapshot->layout())));
  if (made->manifest.ref.file_bytes + kSealBytes > kManifestRecordBytesMax) {
    return fail(ErrorCode::no_room, "tier: expected a manifest of at most {} bytes, found {}",
                kManifestRecordBytesMax, made->manifest.ref.file_bytes);
  }
  made->snapshot = std::move(snapshot);
  return made;
}

void Shelf::lend_folder(store::DiskStore* folder) {
  const std::lock_guard lock(mutex_);
  folder_ = folder;
}

void Shelf::add(std::shared_ptr<LentSequence> sequence, uint64_t bytes_max) {
  const std::lock_guard lock(mutex_);
  const auto go = [&](std::shared_ptr<LentSequence>& one) { gone_.push_back(std::move(one)); };
  for (std::shared_ptr<LentSequence>& one : sequences_) {
    if (covers(*sequence->snapshot, *one->snapshot)) go(one);
  }
  std::erase(sequences_, nullptr);
  sequences_.push_back(std::move(sequence));
  uint64_t bytes = 0;
  for (const auto& one : sequences_) bytes += one->snapshot->payload_bytes();
  while (!sequences_.empty() && bytes > bytes_max) {
    bytes -= sequences_.front()->snapshot->payload_bytes();
    go(sequences_.front());
    sequences_.pop_front();
  }
}

void Shelf::clear() {
  const std::lock_guard lock(mutex_);
  for (std::shared_ptr<LentSequence>& one : sequences_) gone_.push_back(std::move(one));
  sequences_.clear();
}

// Nobody begins to read what has gone.
void Shelf::collect() {
  std::vector<std::shared_ptr<LentSequence>> unread;
  const std::lock_guard lock(mutex_);
  for (std::shared_ptr<LentSequence>& one : gone_) {
    if (one.use_count() == 1) unread.push_back(std::move(one));
  }
  std::erase(gone_, nullptr);
}

bool Shelf::is_leaving() const {
  const std::lock_guard lock(mutex_);
  return !gone_.empty();
}

bool Shelf::drain() {
  clear();
  {
    std::unique_lock lock(mutex_);
    if (gone_.empty()) return false;
    returned_.wait(lock, [this] {
      return std::ranges::all_of(gone_, [](const auto& one) { return one.use_count() == 1; });
    });
  }
  collect();
  return true;
}

std::shared_ptr<LentSequence> Shelf::find(const Sha256Digest& name) const {
  for (auto one = sequences_.rbegin(); one != sequences_.rend(); ++one) {
    if ((*one)->manifest.ref.name == name || (*one)->pieces.contains(name)) return *one;
  }
  return nullptr;
}

bool Shelf::has(const Sha256Digest& name) {
  const std::lock_guard lock(mutex_);
  if (find(name) != nullptr) return true;
  return folder_ != nullptr &&
         (folder_->folder().size_of(store::Place::objects, name).has_value() ||
          folder_->folder().size_of(store::Place::manifests, name).has_value());
}

Result<std::vector<std::byte>> Shelf::read(const Sha256Digest& name) {
  std::shared_ptr<LentSequence> found;
  store::DiskStore* folder = nullptr;
  {
    const std::lock_guard lock(mutex_);
    found = find(name);
    folder = folder_;
  }
  Result<std::vector<std::byte>> bytes = fail(ErrorCode::not_found, "record: nobody has it");
  if (found != nullptr) {
    const auto piece = found->pieces.find(name);
    bytes = piece == found->pieces.end()
                ? bytes_of(found->manifest)
                : bytes_of(encode_piece(*found->snapshot, found->snapshot->pieces()[piece->second],
                                        *found->chain));
  } else if (folder != nullptr) {
    bytes = folder->read_whole(store::Place::objects, name);
    if (!bytes) bytes = folder->read_whole(store::Place::manifests, name);
    if (bytes) {
      if (const Status whole = check_payload(*bytes); !whole) bytes = whole.error();
    }
  }
  const std::lock_guard lock(mutex_);
  found.reset();
  returned_.notify_all();
  if (bytes) {
    ++counts_.records;
    counts_.bytes += (*bytes).size();
  }
  return bytes;
}

Shelf::Counts Shelf::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.sequences = sequences_.size();
  return counts;
}

}  // namespace cairn::tier
