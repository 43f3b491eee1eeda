// What an engine keeps beyond its memory and its process: finished turns, and what the prefix cache
// evicts, are written to a folder by a thread of its own, and a prompt that memory does not know is
// looked for there by another; likewise in a tier that machines share (store/shared_tier.h). No
// step waits for any. While nothing is computed the folder is read through, a file each second; of
// what was loaded, some is handed out to be computed again. No failure of either is more than a
// prompt computed again. Thread rule: the engine's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "engine/adapters.h"
#include "engine/stored_prefix.h"
#include "memory/cache/prefix_cache.h"
#include "memory/memory.h"
#include "sample/state.h"
#include "store/disk_store.h"
#include "store/shared_tier.h"

namespace cairn {

class SequenceStore {
 public:
  // Memory and cache outlive it.
  struct Options {
    store::StoreOptions disk;       // Without a path: there is no folder.
    store::OpenTier open_tier;      // Null: there is no tier. One of both there is.
    std::string model;              // Its name, for people.
    int32_t audit_interval = 1000;  // Of about so many that are loaded one is audited; 0: none.
    Trace* trace = nullptr;         // Outlives it; null: none.
  };
  // Errors: those of store::DiskStore::open() and of store::OpenTier.
  static Result<std::unique_ptr<SequenceStore>> open(Options options, memory::Memory* memory,
                                                     memory::PrefixCache* cache);
  ~SequenceStore();  // When all that was handed over is written.

  // Looks for what the prompt can be resumed from behind `known`; see StoredPrefix.
  std::unique_ptr<StoredPrefix> look_up(const Sha256Digest& fingerprint, const Selection& selection,
                                        std::span<const Token> prompt, int32_t known) {
    return reader_->look_up(fingerprint, selection, prompt, known);
  }
  // Gives back blocks of what was written, and of look-ups that were given up: true, while a thread
  // still holds some of these.
  bool collect();
  void wait_for_news(std::chrono::milliseconds longest) { reader_->wait_for_news(longest); }
  // Has it written, soon. Its blocks stay until then. What waits too long is passed over: the
  // memory it holds has a limit, a quarter of the budget.
  void keep(const memory::Sequence& sequence, const Sha256Digest& fingerprint);
  // The same for what the prefix cache is about to evict, unless it is stored, or enough waits.
  void demote(const memory::Sequence& sequence, const Sha256Digest& fingerprint);
  bool holds_memory();  // Of what waits to be written, or is being written.
  // Whether the folder has been read: before, nothing is written.
  bool is_ready() const { return disk_ == nullptr || disk_->is_read_within({}); }
  bool has_folder() const { return disk_ != nullptr; }
  store::SharedTier* tier() const { return tier_.get(); }  // Null: there is none.
  // Shows it to the tier, if there is one, which knows what of it is sent.
  void offer(const memory::Sequence& sequence, const Sha256Digest& fingerprint,
             store::SharedTier::Offer offer);
  // Waits until everything is written, and lets go of its blocks. What is not when the patience is
  // over is passed over; what is being written or read then keeps them longer. False: had nothing.
  bool drain(std::optional<std::chrono::milliseconds> patience = std::nullopt);

  // Saves the sequence under a name: it is on the disk when the call returns, and stays until it is
  // removed. With it goes what its sampler remembers. Errors: those of store::DiskStore::save();
  // unsupported, where there is no folder.
  Status save(const std::string& session, const memory::Sequence& sequence,
              const Sha256Digest& fingerprint, const sample::SamplerState& sampler = {});
  // Puts a saved sequence into the cache, as much of it as can be read, which may be nothing.
  // Errors: those of store::DiskStore::open_session() and load(); invalid_data.
  struct Restored {
    std::vector<Token> tokens;
    sample::SamplerState sampler;
  };
  Result<Restored> restore(const std::string& session, const Sha256Digest& fingerprint,
                           const Selection& selection);

  // What the disk has of the tokens (store/disk_store.h).
  store::StoredPart part_of(const Sha256Digest& fingerprint, std::span<const Token> tokens) const;

  // What it has, the oldest first; all of that when is_ready().
  std::vector<store::IndexEntry> entries() const;
  // Errors: those of store::DiskStore::read_manifest().
  Result<std::vector<Token>> tokens_of(const Sha256Digest& name);

  // What of the disk's budget each of these tenants keeps (store/disk_store.h).
  void set_shares(const std::vector<uint64_t>& tenants, double part) {
    if (disk_ != nullptr) disk_->set_shares(tenants, part);
  }

  // Around each step: meanwhile and for a while the disk is not scrubbed, and what nobody waits for
  // is written slowly.
  void begin_step() {
    step_began_ns_ = now_ns();
    is_in_step_ = true;
  }
  // `prompt`: what it computed, where that was nothing else.
  void end_step(const store::ComputedTokens& prompt);
  // Somebody waits for memory: what waits is written without rest.
  void hurry();

  // A sequence that was loaded, to be compared with what its tokens compute.
  struct Audit {
    Sha256Digest fingerprint{};
    Selection selection;
    std::vector<Token> tokens;
  };
  // That which waits longest, if any.
  std::optional<Audit> next_audit();
  // It was not made: the sequence has gone, or there is no room for it.
  void pass_over(const Audit& audit);
  // What became of it. `differs`: nothing, or behind how many tokens, and what. Then all that
  // begins like it up to there goes, from the prefix cache and from the disk.
  struct Difference {
    int32_t position = 0;
    std::string what;
  };
  void close_audit(const Audit& audit, const std::optional<Difference>& difference);

  // What became of sequences, since it was opened.
  struct Counts {
    int64_t demoted = 0;      // Handed over when they were evicted.
    int64_t passed_over = 0;  // Not written, for lack of memory or time.
    int64_t audited = 0;      // Computed again, and compared.
    int64_t audits_passed_over = 0;
    int64_t differing = 0;  // Audits that found a difference: an alarm.
  };
  Counts counts() const;
  store::StoreStats stats() const;
  const std::string& path() const { return path_; }

 private:
  SequenceStore(Options options, memory::Memory* memory, memory::PrefixCache* cache);
  Status open_folder(const store::StoreOptions& options);
  Status start_reader();
  bool drain_folder(std::optional<std::chrono::milliseconds> patience);
  struct Condemned {
    Audit audit;
    Difference difference;
  };
  static int64_t now_ns();
  void write_all();
  void work_once(std::unique_lock<std::mutex>& lock);
  Result<Sha256Digest> write(const store::Snapshot& snapshot);
  bool rest(std::chrono::nanoseconds& rested_at);
  bool is_hurried() const;
  bool is_beside_steps(std::chrono::nanoseconds since) const {
    return is_in_step_ || now_ns() - last_step_ns_ < since.count();
  }
  void scrub(std::unique_lock<std::mutex>& lock);
  bool may_scrub();
  void note_loaded(const Sha256Digest& fingerprint, const Selection& selection,
                   const memory::Sequence& loaded);
  bool has_errand() const { return !waiting_.empty() || !condemned_.empty(); }
  bool is_idle() const { return !has_errand() && !is_writing_; }
  uint64_t waiting_bytes() const;  // Under the mutex.
  void hand_over(std::unique_ptr<store::Snapshot> snapshot, uint64_t waiting_bytes_max);
  Result<memory::Sequence> load(const Sha256Digest& fingerprint, memory::Variant variant,
                                const store::DiskStore::Match& match);

  using Snapshots = std::deque<std::unique_ptr<store::Snapshot>>;

  std::unique_ptr<store::DiskStore> disk_;  // Null: no folder.
  std::unique_ptr<store::SharedTier> tier_;
  std::string path_, model_;
  Trace* trace_;
  memory::Memory* memory_;
  memory::PrefixCache* cache_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Snapshots waiting_;  // To be written, in this order.
  Snapshots written_;  // To be destroyed by the engine's thread.
  std::vector<Condemned> condemned_;
  bool is_writing_ = false, is_closing_ = false;
  int32_t drain_count_ = 0;            // Who waits until everything is written.
  bool is_wanted_ = false;             // The memory of what waits, until nothing does.
  std::atomic<bool> gives_up_{false};  // The writer leaves what it is writing.
  std::thread writer_;
  Counts counts_;  // Under the mutex, as all above but the thread.
  std::atomic<bool> is_in_step_{false};
  std::atomic<int64_t> last_step_ns_{0};  // When the last one ended.
  int64_t step_began_ns_ = 0;
  std::unique_ptr<StoreReader> reader_;
  int32_t audit_interval_;
  std::mt19937_64 random_;  // Which ones are audited.
  std::deque<Audit> audits_;
};

}  // namespace cairn
