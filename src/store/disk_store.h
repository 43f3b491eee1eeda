// Sequences that survive the process: written as records in a folder, found by the tokens of a
// prompt, loaded into any memory of the same fingerprint and layout. Whatever is read is checked
// before it is used; what is missing or damaged shortens what can be resumed, and no failure is
// more than a miss. docs/store.md has the format and the promises.
// Thread rule: one thread at a time writes, any number find and load meanwhile. While it is still
// being read, find(), entries() and whatever writes wait; a sequence's or a session's name is
// enough to load it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "memory/archive.h"
#include "memory/even_shares.h"
#include "store/encoded_record.h"
#include "store/folder.h"
#include "store/index.h"
#include "store/manifest.h"
#include "store/record_source.h"
#include "store/snapshot.h"
#include "store/store_options.h"
#include "store/store_stats.h"
#include "store/stored_part.h"

namespace cairn::store {

class DiskStore : public RecordSource, public RecordPlace {
 public:
  // Reads all manifests. Errors: those of Folder::open(), and of listing it; where it is read
  // aside, a store that cannot be listed has nothing, and takes nothing.
  static Result<std::unique_ptr<DiskStore>> open(const StoreOptions& options);
  ~DiskStore() override;

  // Makes the sequence survive; records that are there already are not written again. The result is
  // the manifest's name. Errors: no_room (budget, disk), io; cancelled, where `goes_on`, which is
  // asked between records, says so. Nothing is visible then.
  using GoesOn = FunctionRef<bool()>;
  static bool always() { return true; }
  Result<Sha256Digest> write(const Snapshot& snapshot, Durability durability,
                             GoesOn goes_on = always);
  // From now on each of these tenants keeps its share of the budget, whatever others write.
  void set_shares(std::vector<uint64_t> tenants, double part);
  // Whether a stored sequence has all whole links of these tokens.
  bool covers(const Sha256Digest& fingerprint, const memory::Layout& layout,
              std::span<const Token> tokens) const;
  // Where stored sequences that begin as these tokens do have something of them, as their manifests
  // say. Reads no file.
  StoredPart part_of(const Sha256Digest& fingerprint, const memory::Layout& layout,
                     std::span<const Token> tokens) const;
  // Writes it under a session's name, all of it on the disk when the call returns. The note comes
  // back with open_session().
  Status save(const std::string& session, const Snapshot& snapshot, std::string_view note = {});

  using Match = store::Match;
  // That from which the fewest tokens of the prompt have to be computed; nothing where none is
  // better than `known`, a position that needs no store.
  std::optional<Match> find(const Sha256Digest& fingerprint, const memory::Layout& layout,
                            std::span<const Token> prompt, bool wants_logits, int32_t known);
  // All of a sequence, by its name or its session's.
  // Errors: not_found, invalid_data, unsupported (other fingerprint or layout), io.
  Result<Match> open_sequence(const Sha256Digest& name, const Sha256Digest& fingerprint,
                              const memory::Layout& layout);
  Result<Match> open_session(const std::string& session, const Sha256Digest& fingerprint,
                             const memory::Layout& layout, std::string* note = nullptr);
  // The sequence up to where it can be resumed, which is behind `known`, as store/loading.h does it
  // step by step. Records that turn out bad are put away, and it resumes earlier.
  // Errors: not_found (nothing is left behind `known`), memory_full, context_full.
  Result<memory::Sequence> load(memory::Memory& memory, memory::Variant variant,
                                const Sha256Digest& fingerprint, const Match& match, int32_t known);

  Answer look_up(const Question& question) override;
  Origin origin() const override { return Origin::folder; }
  Result<std::unique_ptr<OpenRecord>> open_record(const PieceRef& piece,
                                                  std::optional<TimePoint> deadline) override;
  void refuse_record(const PieceRef& piece, const std::string& reason) override;
  bool tries_again() const override { return true; }
  void count_hit(const Sha256Digest& name) override;
  void count_miss() override;
  void count_read(uint64_t bytes) override;

  // Until all is read, of its entries and bytes none are known.
  StoreStats stats() const;
  // What it has, the oldest first.
  std::vector<IndexEntry> entries() const;
  // Removes a sequence, and the records that no other needs. Errors: not_found, io. REQUIRES:
  // nobody writes meanwhile; for verify() as well.
  Status remove(const Sha256Digest& name);
  struct Verified {
    uint64_t sequences = 0, bad_sequences = 0;
    uint64_t records = 0, bad_records = 0;  // Missing ones are bad.
  };
  // Reads every record whole and compares all digests; bad ones are put away.
  Result<Verified> verify();
  // Reads the next file of all, in turn, and compares its digest; a damaged one is put away. False:
  // there was none, or `goes_on`, which is asked for each MiB, said no. Thread rule: as writing.
  bool scrub_next(GoesOn goes_on);
  // What these tokens compute was found to be something else than what the store has of them behind
  // `position`: puts away all sequences that have more in common with the tokens than what is
  // before it, with all their records. Thread rule: as writing.
  void condemn(const Sha256Digest& fingerprint, std::span<const Token> tokens, int32_t position,
               const std::string& reason);
  // A record from elsewhere, whole: every digest of it is compared before it is written. Records
  // come before the manifest that names them, which is refused without them.
  // Errors: invalid_data, unsupported, no_room, io.
  Result<Sha256Digest> adopt(std::span<const std::byte> record);
  // All bytes of a record's file. Errors: not_found, invalid_data, io.
  Result<std::vector<std::byte>> read_whole(Place place, const Sha256Digest& name);
  Result<Manifest> read_manifest(const Sha256Digest& name, Sha256Digest* fingerprint = nullptr,
                                 uint32_t* layout = nullptr);
  Folder& folder() { return *folder_; }

  // Whether all that the folder has is known, or will be soon.
  bool is_read_within(std::chrono::milliseconds longest) const;
  // What waits for that, here and later, finds nothing, or is cancelled.
  void stop_reading();

 private:
  DiskStore(std::unique_ptr<Folder> folder, const StoreOptions& options);
  std::shared_ptr<RecordPlace> as_place();  // Of matches, which the store outlives.
  Status scan();
  void read_aside();
  bool wait_until_read() const;  // False: nothing is read any more.
  std::optional<IndexEntry> scan_manifest(const Sha256Digest& name, const RecordFile& file);
  Result<ManifestRecord> read_manifest_record(const Sha256Digest& name);
  Result<ManifestRecord> read_manifest_file(const Sha256Digest& name, const RecordFile& file);
  void put_away(Place place, const Sha256Digest& name, const std::string& reason);

  using FileParts = std::span<const std::span<const std::byte>>;
  Result<PieceRef> write_piece(const Snapshot& snapshot, const Piece& piece, const Chain& chain,
                               Durability durability);
  Result<PieceRef> keep_existing(const RecordHeader& header, const Sha256Digest& name,
                                 Durability durability);
  Status write_manifest_file(const EncodedRecord& record, Durability durability);
  Result<Sha256Digest> write_manifest(const Manifest& manifest, const Chain& chain, uint32_t layout,
                                      Durability durability);
  Result<Sha256Digest> write_all(const Snapshot& snapshot, const Chain& chain,
                                 Durability durability, GoesOn goes_on);
  Result<bool> write_file(Place place, const Sha256Digest& name, FileParts parts,
                          Durability durability);
  Status make_room(uint64_t bytes);
  void evict_for(uint64_t bytes, uint64_t room);
  Result<std::set<Sha256Digest>> saved_manifests();
  enum class Extent : uint8_t { changes, everything };
  bool learn_saved(), learn_uses(), learn_changes(Extent extent), learn_from_others(Extent extent);
  void drop_covered(const Sha256Digest& name, const Chain& chain);
  Result<bool> save_name(const std::string& session, const Sha256Digest& name,
                         std::string_view note);
  std::map<uint64_t, uint64_t> held_by_tenant(uint64_t more_bytes) const;
  uint64_t room() const { return budget_bytes_ / 10 * 9; }  // That eviction leaves in use.
  bool drop_entry(const Sha256Digest& name);
  void drop_record(const Sha256Digest& name);
  void drop_new_records();
  bool is_foreign(const Sha256Digest& name);
  void sweep_old_records(bool spares_foreign);
  bool verify_record(const PieceRef& ref);
  void list_for_scrub();
  void pause(const Error& error);

  std::unique_ptr<FileCalls> own_calls_;
  std::unique_ptr<Folder> folder_;
  std::function<int64_t()> now_ns_;
  uint64_t budget_bytes_ = 0, free_bytes_min_ = 0;
  mutable std::mutex mutex_;  // Of the index, the counts and the shares.
  mutable std::condition_variable read_;
  bool is_read_ = false;
  Index index_;  // Empty until all is read.
  StoreStats stats_;
  memory::EvenShares shares_;
  // The writer's alone.
  uint64_t writing_tenant_ = 0;
  int64_t paused_until_ns_ = 0, pause_ns_ = 0;
  std::set<Sha256Digest> being_written_;   // Records whose manifest is not there yet.
  std::vector<Sha256Digest> new_records_;  // Those of them that were not there before.
  std::set<Sha256Digest> saved_;           // Manifests that names of sessions stand for.
  FolderTimes known_times_;                // Of what of these and of manifests is known.
  std::vector<std::pair<Place, Sha256Digest>> to_scrub_;  // The next one last.
  // That it cannot be counted: then nothing may be written. Set before is_read_.
  std::optional<Error> unread_;
  std::atomic<bool> is_closing_{false};
  std::thread reader_;
};

}  // namespace cairn::store
