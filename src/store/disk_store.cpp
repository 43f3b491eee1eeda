// Opening a store, finding and loading.
#include "store/disk_store.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/quantities.h"
#include "base/threads/background_thread.h"
#include "base/threads/start_thread.h"
#include "memory/common_prefix.h"
#include "store/loading.h"

namespace cairn::store {
namespace {

constexpr uint64_t kGiB = uint64_t(1) << 30;
// Of a manifest, read before anything is known of it.
constexpr uint64_t kFirstBytes = 65536;

int64_t system_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// What cannot be read now may be readable again: only what was read and is wrong is put away.
bool is_damage(const Error& error) {
  return error.code == ErrorCode::invalid_data;
}

// Else there is one, which cannot be opened now.
bool is_no_record(const Error& error) {
  return error.code == ErrorCode::not_found || is_damage(error);
}

}  // namespace

DiskStore::DiskStore(std::unique_ptr<Folder> folder, const StoreOptions& options)
    : folder_(std::move(folder)),
      now_ns_(options.now_ns ? options.now_ns : std::function<int64_t()>(system_now_ns)),
      budget_bytes_(options.budget_bytes) {
  const uint64_t disk = uint64_t(std::max<int64_t>(folder_->disk_bytes(), 0));
  if (budget_bytes_ == 0) {
    budget_bytes_ = options.is_lent ? disk / 10 : std::min(20 * kGiB, disk / 10);
  }
  free_bytes_min_ = options.free_bytes_min.value_or(std::min(kGiB, disk / 20));
}

Result<std::unique_ptr<DiskStore>> DiskStore::open(const StoreOptions& options) {
  std::unique_ptr<FileCalls> own;
  if (options.calls == nullptr) own = std::make_unique<FileCalls>();
  FileCalls& calls = own ? *own : *options.calls;
  CAIRN_TRY(std::unique_ptr<Folder> folder, Folder::open(options.path, calls));
  std::unique_ptr<DiskStore> store(new DiskStore(std::move(folder), options));
  store->own_calls_ = std::move(own);
  if (!options.is_read_aside) {
    CAIRN_TRY(store->scan());
    return store;
  }
  CAIRN_TRY(store->reader_, start_thread(fmt::format("{}: the thread that reads it", options.path),
                                         [made = store.get()] { made->read_aside(); }));
  return store;
}

DiskStore::~DiskStore() {
  stop_reading();
  if (reader_.joinable()) reader_.join();
}

void DiskStore::stop_reading() {
  const std::lock_guard lock(mutex_);
  is_closing_ = true;
  read_.notify_all();
}

void DiskStore::read_aside() {
  run_anywhere();
  const auto begin = std::chrono::steady_clock::now();
  if (Status status = scan(); !status) {
    log::error("store: nothing is kept: {}", status.error().message);
    unread_ = std::move(status).error();
    const std::lock_guard lock(mutex_);
    is_read_ = true;
    read_.notify_all();
    return;
  }
  if (is_closing_) return;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  const StoreStats known = stats();
  log::info("store: {}; {} sequences, {} of {}; read in {}", folder_->path(), known.entries,
            show_bytes(known.bytes), show_bytes(known.budget_bytes), show_seconds(spent.count()));
}

bool DiskStore::wait_until_read() const {
  std::unique_lock lock(mutex_);
  read_.wait(lock, [this] { return is_read_ || is_closing_; });
  return !is_closing_;
}

bool DiskStore::is_read_within(std::chrono::milliseconds longest) const {
  std::unique_lock lock(mutex_);
  read_.wait_for(lock, longest, [this] { return is_read_ || is_closing_; });
  return is_read_;
}

// Every file is counted before the first is written. Manifests of other versions stay, unread. What
// is put away meanwhile may be counted still: it goes when room is made.
Status DiskStore::scan() {
  Index index;
  CAIRN_TRY(const std::vector<ListedRecord> records, folder_->list(Place::objects));
  for (const ListedRecord& record : records) {
    index.note_record(record.name, record.bytes, record.used_ns);
  }
  std::mutex mutex;
  std::vector<IndexEntry> entries;
  CAIRN_TRY(
      folder_->open_each(Place::manifests, [&](const Sha256Digest& name, const RecordFile& file) {
        if (is_closing_) return;
        if (std::optional<IndexEntry> entry = scan_manifest(name, file)) {
          const std::lock_guard lock(mutex);
          entries.push_back(std::move(*entry));
        }
      }));
  std::ranges::sort(entries, {}, &IndexEntry::used_ns);
  size_t link_count = 0;
  for (const IndexEntry& entry : entries) link_count += entry.links.size();
  index.reserve(entries.size(), link_count);
  for (IndexEntry& entry : entries) index.add(std::move(entry));
  if (Result<std::set<Sha256Digest>> saved = saved_manifests(); saved) {
    saved_ = std::move(saved).value();
    index.set_saved(saved_);
  }
  const std::lock_guard lock(mutex_);
  index_ = std::move(index);
  is_read_ = true;
  read_.notify_all();
  return Ok{};
}

// That names of sessions stand for.
Result<std::set<Sha256Digest>> DiskStore::saved_manifests() {
  std::set<Sha256Digest> manifests;
  CAIRN_TRY(const std::vector<std::string> sessions, folder_->list_saved());
  for (const std::string& session : sessions) {
    Result<Sha256Digest> name = folder_->saved(session);
    if (name) manifests.insert(*name);
    if (!name && name.error().code == ErrorCode::io) return std::move(name).error();
  }
  return manifests;
}

// What names of sessions stand for by now. False where that cannot be known.
bool DiskStore::learn_saved() {
  if (!folder_->have_saved_changed(known_times_)) return true;
  Result<std::set<Sha256Digest>> saved = saved_manifests();
  if (!saved) return false;
  saved_ = std::move(saved).value();
  const std::lock_guard lock(mutex_);
  index_.set_saved(saved_);
  return true;
}

// When others used what is known.
bool DiskStore::learn_uses() {
  Result<std::vector<ListedRecord>> manifests = folder_->list(Place::manifests);
  if (!manifests) return false;
  const std::lock_guard lock(mutex_);
  for (const ListedRecord& listed : *manifests) {
    IndexEntry* const known = index_.find(listed.name);
    if (known != nullptr) known->used_ns = std::max(known->used_ns, listed.used_ns);
  }
  return true;
}

// What other programs have written and saved since all was read, so that nothing goes which they
// need; what they have used as well, where everything is listed again. REQUIRES: the collection is
// locked. False where that cannot be known.
bool DiskStore::learn_from_others(Extent extent) {
  if (extent == Extent::everything) known_times_.clear();
  if (learn_changes(extent)) return true;
  known_times_.clear();  // Of what was listed some is not known: all is listed again.
  return false;
}

bool DiskStore::learn_changes(Extent extent) {
  Result<std::vector<Sha256Digest>> manifests =
      folder_->list_changed(Place::manifests, known_times_);
  if (!manifests || !learn_saved()) return false;
  if (extent == Extent::everything && !learn_uses()) return false;
  for (const Sha256Digest& name : *manifests) {
    {
      const std::lock_guard lock(mutex_);
      if (index_.find(name) != nullptr) continue;
    }
    Result<RecordFile> file = folder_->open_record(Place::manifests, name);
    if (!file && is_no_record(file.error())) continue;
    std::optional<IndexEntry> entry;
    if (file) entry = scan_manifest(name, *file);
    if (!entry) {
      known_times_.erase(hex_of(name).substr(0, 2));
      // Which records it needs is not known: none must go, unless the disk has lost it.
      if (!file || saved_.contains(name)) return false;
      continue;
    }
    entry->is_saved = saved_.contains(name);
    for (const Sha256Digest& record : entry->records) {
      const std::optional<uint64_t> bytes = folder_->size_of(Place::objects, record);
      const std::lock_guard lock(mutex_);
      if (bytes) index_.note_record(record, *bytes, entry->used_ns);
    }
    const std::lock_guard lock(mutex_);
    index_.add(std::move(*entry));
  }
  return true;
}

// None where it cannot be read now, or is damaged.
std::optional<IndexEntry> DiskStore::scan_manifest(const Sha256Digest& name,
                                                   const RecordFile& file) {
  IndexEntry entry{.name = name, .manifest_bytes = file.size()};
  Result<ManifestRecord> read = read_manifest_file(name, file);
  if (!read && read.error().code != ErrorCode::unsupported) return std::nullopt;
  if (read) {
    entry = entry_of(read->header, read->manifest,
                     Chain(read->header.fingerprint, read->manifest.outline.tokens));
  }
  entry.used_ns = file.used_ns();
  return entry;
}

// REQUIRES: the mutex is not held. Absence is no damage.
void DiskStore::put_away(Place place, const Sha256Digest& name, const std::string& reason) {
  folder_->quarantine(place, name, reason);
  const std::lock_guard lock(mutex_);
  ++stats_.damaged;
  if (place == Place::objects) {
    index_.forget_record(name);
  } else {
    index_.remove(name);
  }
}

Result<ManifestRecord> DiskStore::read_manifest_record(const Sha256Digest& name) {
  Result<RecordFile> file = folder_->open_record(Place::manifests, name);
  if (file) return read_manifest_file(name, *file);
  if (is_damage(file.error())) put_away(Place::manifests, name, file.error().message);
  return std::move(file).error();
}

// Its name is made of what it contains, so that a manifest in another's place is noticed; that its
// tokens are those of its key shows when records are looked up by them. Most of them are read by
// one call.
Result<ManifestRecord> DiskStore::read_manifest_file(const Sha256Digest& name,
                                                     const RecordFile& file) {
  const auto read = [&]() -> Result<ManifestRecord> {
    std::vector<std::byte> bytes(size_t(std::min(file.size(), kFirstBytes)));
    CAIRN_TRY(file.read(0, bytes));
    CAIRN_TRY(const RecordHeader header, decode_header(bytes));
    const bool is_whole =
        header.payload_bytes <= kManifestBytesMax && header.file_bytes() == file.size();
    if (!is_whole) return fail(ErrorCode::invalid_data, "manifest: not that of its name");
    const size_t first_bytes = bytes.size();
    bytes.resize(size_t(file.size()));
    CAIRN_TRY(file.read(first_bytes, std::span(bytes).subspan(first_bytes)));
    return decode_manifest_record(name, bytes);
  };
  Result<ManifestRecord> record = read();
  if (!record && is_damage(record.error())) {
    put_away(Place::manifests, name, record.error().message);
  }
  return record;
}

Result<Manifest> DiskStore::read_manifest(const Sha256Digest& name, Sha256Digest* fingerprint,
                                          uint32_t* layout) {
  CAIRN_TRY(ManifestRecord record, read_manifest_record(name));
  if (fingerprint != nullptr) *fingerprint = record.header.fingerprint;
  if (layout != nullptr) *layout = record.header.layout;
  return std::move(record.manifest);
}

std::optional<DiskStore::Match> DiskStore::find(const Sha256Digest& fingerprint,
                                                const memory::Layout& layout,
                                                std::span<const Token> prompt, bool wants_logits,
                                                int32_t known) {
  const Chain chain(fingerprint, prompt);
  std::vector<Index::Candidate> candidates;
  if (!wait_until_read()) return std::nullopt;
  {
    const std::lock_guard lock(mutex_);
    candidates = index_.candidates(chain);
  }
  std::optional<Match> best;
  int32_t least = known;
  for (const Index::Candidate& candidate : candidates) {
    // It parts from the prompt within the next link.
    if ((candidate.links + 1) * int64_t(kChainTokens) <= least) break;
    Match match{.place = as_place(), .name = candidate.name};
    Sha256Digest found_fingerprint{};
    uint32_t found_layout = 0;
    Result<Manifest> manifest = read_manifest(candidate.name, &found_fingerprint, &found_layout);
    if (!manifest || found_fingerprint != fingerprint) continue;
    if (!check_manifest(*manifest, found_layout, layout)) continue;
    match.manifest = std::move(manifest).value();
    match.position = memory::common_prefix(match.manifest.outline.tokens, prompt);
    match.wants_logits = wants_logits && size_t(match.position) == prompt.size();
    match.resume =
        resume_position(match.manifest.outline, layout, match.position, match.wants_logits);
    if (match.resume <= least) continue;
    least = match.resume;
    best = std::move(match);
  }
  if (!best) count_miss();
  return best;
}

bool DiskStore::covers(const Sha256Digest& fingerprint, const memory::Layout& layout,
                       std::span<const Token> tokens) const {
  const Chain chain(fingerprint, tokens);
  const uint32_t layout_wanted = layout_id(layout);
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(index_.candidates(chain), [&](const Index::Candidate& candidate) {
    return candidate.links == chain.link_count() &&
           index_.find(candidate.name)->layout == layout_wanted;
  });
}

// Of an entry that parts from the tokens within a link it is not known where.
StoredPart DiskStore::part_of(const Sha256Digest& fingerprint, const memory::Layout& layout,
                              std::span<const Token> tokens) const {
  const Chain chain(fingerprint, tokens);
  const uint32_t layout_wanted = layout_id(layout);
  StoredPart part;
  const std::lock_guard lock(mutex_);
  for (const Index::Candidate& candidate : index_.candidates(chain)) {
    const IndexEntry& entry = *index_.find(candidate.name);
    if (entry.fingerprint != fingerprint || entry.layout != layout_wanted) continue;
    const bool is_whole =
        size_t(entry.length) <= tokens.size() && chain.key_at(entry.length) == entry.key_at_end;
    part.add(entry, is_whole ? entry.length : candidate.links * kChainTokens, layout);
  }
  return part;
}

Result<DiskStore::Match> DiskStore::open_session(const std::string& session,
                                                 const Sha256Digest& fingerprint,
                                                 const memory::Layout& layout, std::string* note) {
  CAIRN_TRY(const Sha256Digest name, folder_->saved(session, note));
  Result<Match> match = open_sequence(name, fingerprint, layout);
  if (match || match.error().code != ErrorCode::not_found) return match;
  return fail(ErrorCode::invalid_data, "session {}: the sequence that it names is missing",
              session);
}

Result<DiskStore::Match> DiskStore::open_sequence(const Sha256Digest& name,
                                                  const Sha256Digest& fingerprint,
                                                  const memory::Layout& layout) {
  Sha256Digest found_fingerprint{};
  uint32_t found_layout = 0;
  CAIRN_TRY(Manifest manifest, read_manifest(name, &found_fingerprint, &found_layout));
  if (found_fingerprint != fingerprint) {
    return fail(ErrorCode::unsupported,
                "sequence {}: expected one of this model, numerics, KV types and adapters "
                "(fingerprint {}), found {}",
                hex_of(name).substr(0, 12), hex_of(fingerprint), hex_of(found_fingerprint));
  }
  CAIRN_TRY(check_manifest(manifest, found_layout, layout));
  const int32_t length = manifest.outline.length();
  const int32_t resume = resume_position(manifest.outline, layout, length, false);
  return Match{.place = as_place(),
               .name = name,
               .manifest = std::move(manifest),
               .position = length,
               .resume = resume,
               .wants_logits = false};
}

// Each try that fails loses a record.
Result<memory::Sequence> DiskStore::load(memory::Memory& memory, memory::Variant variant,
                                         const Sha256Digest& fingerprint, const Match& match,
                                         int32_t known) {
  Match own = match;
  own.place = as_place();
  Loading loading(fingerprint, std::move(own), known);
  for (;;) {
    CAIRN_TRY(loading.begin(memory, variant));
    while (loading.read_next()) {
    }
    Result<memory::Sequence> sequence = loading.finish();
    if (sequence || sequence.error().code != ErrorCode::invalid_data) return sequence;
  }
}

namespace {

class OpenFile : public OpenRecord {
 public:
  explicit OpenFile(RecordFile file) : file_(std::move(file)) { file_.will_read(); }

  Status expect_bytes(uint64_t count) override {
    if (file_.size() == count) return Ok{};
    return fail(ErrorCode::invalid_data, "record: expected {} bytes, found {}", count,
                file_.size());
  }
  Status read(uint64_t offset, std::span<std::byte> bytes) override {
    return file_.read(offset, bytes);
  }

 private:
  RecordFile file_;
};

}  // namespace

std::shared_ptr<RecordPlace> DiskStore::as_place() {
  return {std::shared_ptr<void>(), this};
}

RecordSource::Answer DiskStore::look_up(const Question& question) {
  return {.match = find(question.fingerprint, *question.layout, question.prompt,
                        question.wants_logits, question.known)};
}

// The disk reads what was opened while records before it are checked.
Result<std::unique_ptr<OpenRecord>> DiskStore::open_record(const PieceRef& piece,
                                                           std::optional<TimePoint>) {
  CAIRN_TRY(RecordFile file, folder_->open_record(Place::objects, piece.name));
  return std::unique_ptr<OpenRecord>(std::make_unique<OpenFile>(std::move(file)));
}

void DiskStore::refuse_record(const PieceRef& piece, const std::string& reason) {
  put_away(Place::objects, piece.name, reason);
}

void DiskStore::count_hit(const Sha256Digest& name) {
  folder_->mark_used(Place::manifests, name);
  const std::lock_guard lock(mutex_);
  ++stats_.hits;
  if (IndexEntry* const entry = index_.find(name)) entry->used_ns = now_ns_();
}

void DiskStore::count_miss() {
  const std::lock_guard lock(mutex_);
  ++stats_.misses;
}

void DiskStore::count_read(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  stats_.read_bytes += bytes;
}

StoreStats DiskStore::stats() const {
  const std::lock_guard lock(mutex_);
  StoreStats stats = stats_;
  stats.entries = index_.entry_count();
  stats.changes = index_.change_count();
  stats.bytes = index_.total_bytes();
  stats.budget_bytes = budget_bytes_;
  return stats;
}

std::vector<IndexEntry> DiskStore::entries() const {
  wait_until_read();
  const std::lock_guard lock(mutex_);
  std::vector<IndexEntry> list;
  for (const IndexEntry* entry : index_.oldest_first()) list.push_back(*entry);
  return list;
}

}  // namespace cairn::store
