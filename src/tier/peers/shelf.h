// What a machine lends to others: copies of sequences that were read or said last, which hold
// memory until that is needed for something else, and below them the folder, where there is one.
// Thread rule: add() by the one thread that prepares them, collect() and drain() by the engine's,
// has() and read() by the one that lends; the rest by any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "store/disk_store.h"
#include "store/encoded_record.h"
#include "store/snapshot.h"

namespace cairn::tier {

// A sequence whose records can be asked for by their names.
struct LentSequence {
  // Takes the snapshot, if it succeeds. `digests`: of payloads by names, as far as they are known;
  // those that are not are added. Errors: no_room: a manifest larger than any that is sent;
  // cancelled, where `gives_up`, which is asked between records, is set.
  static Result<std::shared_ptr<LentSequence>> prepare(
      std::unique_ptr<store::Snapshot>& snapshot, std::map<Sha256Digest, Sha256Digest>& digests,
      const std::atomic<bool>& gives_up);

  std::unique_ptr<store::Snapshot> snapshot;
  std::unique_ptr<store::Chain> chain;
  store::EncodedRecord manifest;
  std::map<Sha256Digest, size_t> pieces;  // By name.
};

class Shelf {
 public:
  struct Counts {
    uint64_t sequences = 0, records = 0, bytes = 0;  // On it now; lent since it is there.
  };

  // Outlives it.
  void lend_folder(store::DiskStore* folder);
  // The oldest ones go until no more than `bytes_max` are held, and so does what is the beginning
  // of this one.
  void add(std::shared_ptr<LentSequence> sequence, uint64_t bytes_max);
  // All of it goes, as soon as nobody reads it.
  void clear();
  // Gives back the memory of what has gone.
  void collect();
  bool is_leaving() const;  // Something has gone that still holds memory.
  // Waits until all has gone. False: there was nothing.
  bool drain();

  bool has(const Sha256Digest& name);
  // A record, whole. Errors: not_found, those of store::DiskStore::read_whole().
  Result<std::vector<std::byte>> read(const Sha256Digest& name);
  Counts counts() const;

 private:
  std::shared_ptr<LentSequence> find(const Sha256Digest& name) const;  // Under the mutex.

  mutable std::mutex mutex_;
  std::condition_variable returned_;
  std::deque<std::shared_ptr<LentSequence>> sequences_;  // The newest last.
  // The engine's thread destroys them: whoever reads one refers to it as well.
  std::vector<std::shared_ptr<LentSequence>> gone_;
  store::DiskStore* folder_ = nullptr;
  Counts counts_;
};

}  // namespace cairn::tier
