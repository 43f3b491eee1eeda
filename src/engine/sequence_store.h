// What an engine keeps beyond its memory and its process: finished turns, and what the prefix cache
// evicts, are written to a folder by a thread of its own, and a prompt that memory does not know is
// looked for there by another. No step waits for either. No failure of the disk is more than a
// prompt computed again. Thread rule: the engine's thread calls it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "engine/adapters.h"
#include "engine/stored_prefix.h"
#include "memory/memory.h"
#include "memory/cache/prefix_cache.h"
#include "store/disk_store.h"

namespace cairn {

class SequenceStore {
 public:
  // Memory and cache outlive it. `model`: its name, for people.
  // Errors: those of store::DiskStore::open().
  static Result<std::unique_ptr<SequenceStore>> open(const store::StoreOptions& options,
                                                     std::string model, memory::Memory* memory,
                                                     memory::PrefixCache* cache);
  ~SequenceStore();  // When all that was handed over is written.

  // Looks for what the prompt can be resumed from behind `known`; see StoredPrefix.
  std::unique_ptr<StoredPrefix> look_up(const Sha256Digest& fingerprint, const Selection& selection,
                                        std::span<const Token> prompt, int32_t known) {
    return reader_->look_up(fingerprint, selection, prompt, known);
  }
  // Gives back the blocks of what was written, and of look-ups that were given up. Whether a thread
  // still holds some of such a look-up.
  bool collect();
  void wait_for_news(std::chrono::milliseconds longest) { reader_->wait_for_news(longest); }
  // Has it written, soon. Its blocks stay until then. What waits too long is passed over: the
  // memory it holds has a limit, a quarter of the budget.
  void keep(const memory::Sequence& sequence, const Sha256Digest& fingerprint);
  // The same for what the prefix cache is about to evict, unless the store has it, or as much waits
  // as may wait.
  void demote(const memory::Sequence& sequence, const Sha256Digest& fingerprint);
  // Whether something that waits to be written, or is being written, holds memory.
  bool holds_memory();
  // Waits until everything is written, and lets go of its blocks. What is not written when the
  // patience is over is passed over. False: there was nothing.
  bool drain(std::optional<std::chrono::milliseconds> patience = std::nullopt);

  // Saves the sequence under a name: it is on the disk when the call returns, and stays until it is
  // removed. Errors: those of store::DiskStore::save().
  Status save(const std::string& session, const memory::Sequence& sequence,
              const Sha256Digest& fingerprint);
  // Puts a saved sequence into the cache; its tokens, of which as many can be resumed as could be
  // read. Errors: those of store::DiskStore::open_session() and load().
  Result<std::vector<Token>> restore(const std::string& session, const Sha256Digest& fingerprint,
                                     memory::Variant variant);

  // What became of sequences, since it was opened.
  struct Counts {
    int64_t demoted = 0;      // Handed over when they were evicted.
    int64_t passed_over = 0;  // Not written, for lack of memory or time.
  };
  Counts counts();
  store::StoreStats stats() const { return disk_->stats(); }
  const std::string& path() const { return path_; }

 private:
  SequenceStore(std::unique_ptr<store::DiskStore> disk, std::string path, std::string model,
                memory::Memory* memory, memory::PrefixCache* cache);
  void write_all();
  bool is_idle() const { return waiting_.empty() && !is_writing_; }
  uint64_t waiting_bytes();
  void hand_over(std::unique_ptr<store::Snapshot> snapshot, uint64_t waiting_bytes_max);
  Result<memory::Sequence> load(const Sha256Digest& fingerprint, memory::Variant variant,
                                const store::DiskStore::Match& match);

  using Snapshots = std::deque<std::unique_ptr<store::Snapshot>>;

  std::unique_ptr<store::DiskStore> disk_;
  std::string path_, model_;
  memory::Memory* memory_;
  memory::PrefixCache* cache_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Snapshots waiting_;  // To be written, in this order.
  Snapshots written_;  // To be destroyed by the engine's thread.
  bool is_writing_ = false, is_closing_ = false;
  std::atomic<bool> gives_up_{false};  // The writer leaves what it is writing.
  std::thread writer_;
  Counts counts_;  // Under the mutex, as all above but the thread.
  std::unique_ptr<StoreReader> reader_;
};

}  // namespace cairn
