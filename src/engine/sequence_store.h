// What an engine keeps beyond its memory and its process: finished turns are written to a folder by
// a thread of its own, and a prompt that memory does not know is looked for there. Looking and
// loading are done by the engine's thread, between steps; nothing waits for writing. No failure of
// the disk is more than a prompt computed again. Thread rule: the engine's thread calls it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
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

  // Puts a stored sequence into the cache where the prompt can be resumed from it behind `known`,
  // by enough tokens to be worth it. Whether it did.
  bool fetch(const Sha256Digest& fingerprint, memory::Variant variant,
             std::span<const Token> prompt, int32_t known);
  // Has it written, soon. Its blocks stay until then. What waits too long is passed over: the
  // memory it holds has a limit, a quarter of the budget.
  void keep(const memory::Sequence& sequence, const Sha256Digest& fingerprint);
  // Waits until everything is written, and lets go of its blocks. False: there was nothing.
  bool drain();

  // Saves the sequence under a name: it is on the disk when the call returns, and stays until it is
  // removed. Errors: those of store::DiskStore::save().
  Status save(const std::string& session, const memory::Sequence& sequence,
              const Sha256Digest& fingerprint);
  // Puts a saved sequence into the cache; its tokens, of which as many can be resumed as could be
  // read. Errors: those of store::DiskStore::open_session() and load().
  Result<std::vector<Token>> restore(const std::string& session, const Sha256Digest& fingerprint,
                                     memory::Variant variant);

  store::StoreStats stats() const { return disk_->stats(); }
  const std::string& path() const { return path_; }

 private:
  SequenceStore(std::unique_ptr<store::DiskStore> disk, std::string path, std::string model,
                memory::Memory* memory, memory::PrefixCache* cache);
  void write_all();
  void let_go();
  bool is_idle() const { return waiting_.empty() && !is_writing_; }
  Result<memory::Sequence> load(const Sha256Digest& fingerprint, memory::Variant variant,
                                const store::DiskStore::Match& match, int32_t known);

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
  std::thread writer_;
};

}  // namespace cairn
