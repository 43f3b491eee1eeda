// The beginning of a prompt that is in the store and not in memory, on its way into the prefix
// cache: searched, read and checked by a thread of its own, so that nobody's steps wait for a disk;
// the engine's thread takes the blocks and, when all are right, makes them known. Until then nobody
// else sees them. Thread rule: the engine's thread, but for the reader's own one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "engine/adapters.h"
#include "memory/cache/prefix_cache.h"
#include "memory/memory.h"
#include "store/record_source.h"

namespace cairn {

class StoreReader;
class Trace;

class StoredPrefix {
 public:
  enum class Stage : uint8_t {
    searching,  // For it; or another one brings much of it into memory.
    found,      // read() takes memory for it.
    reading,
    ended,  // What could be brought is in the prefix cache.
  };

  // Gives up what has not ended: the blocks come back with StoreReader::collect().
  ~StoredPrefix();
  StoredPrefix(const StoredPrefix&) = delete;
  StoredPrefix& operator=(const StoredPrefix&) = delete;

  std::span<const Token> prompt() const;
  // Goes on as far as that is possible without waiting.
  Stage advance();
  Stage stage() const { return stage_; }  // That of the last call of advance().
  // While it is found or read: where the prompt can then be resumed, and bytes that it takes.
  int32_t resume() const;
  size_t needed_bytes() const;
  // Takes the blocks, for which the prefix cache makes room; `spares_shares`: as PrefixCache has
  // it. Where there is none it ends: then the prompt is computed. REQUIRES: found.
  void read(bool spares_shares = false);
  // Waits until it has ended.
  void wait();
  // Whether it, or another look-up meanwhile, brought more of the prompt. REQUIRES: ended.
  bool has_brought() const { return has_brought_; }
  // Of what was brought: who had it.
  store::Origin origin() const { return origin_; }
  // What became of it in a tier that others share, in a word; empty: there is none.
  std::string_view tier_note() const { return tier_note_; }

 private:
  friend class StoreReader;
  struct Work;
  StoredPrefix(StoreReader* reader, std::unique_ptr<Work> work);
  void take_search();
  Status take_blocks();
  void take_reading();
  void end();
  bool is_stuck();

  StoreReader* reader_;
  std::shared_ptr<Work> work_;
  Stage stage_ = Stage::searching;
  int32_t target_ = 0;  // While it is read: where the prompt can be resumed then.
  bool is_waited_for_ = false, other_brings_ = false, has_brought_ = false;
  bool spares_shares_ = false;
  std::string_view tier_note_;
  store::Origin origin_ = store::Origin::folder;
  int64_t seen_progress_ = 0;
  std::chrono::steady_clock::time_point begin_, progress_at_;
};

class StoreReader {
 public:
  struct Hooks {
    // For every sequence that was read.
    std::function<void(const Sha256Digest& fingerprint, const Selection&, const memory::Sequence&)>
        on_loaded;
    std::function<void()> free_memory;  // Where the caller waits anyway, and there is none.
  };

  // Of these sources, which are asked one after another, each by a thread of its own. Errors: io,
  // where the system gives no thread. All outlive it; `trace` may be null. Hooks are called by the
  // engine's thread.
  static Result<std::unique_ptr<StoreReader>> start(std::vector<store::RecordSource*> sources,
                                                    memory::Memory* memory,
                                                    memory::PrefixCache* cache, Trace* trace,
                                                    Hooks hooks);
  ~StoreReader();  // REQUIRES: no look-up is left.

  // Looks for what the prompt can be resumed from behind `known`, by enough tokens to be worth it.
  std::unique_ptr<StoredPrefix> look_up(const Sha256Digest& fingerprint, const Selection& selection,
                                        std::span<const Token> prompt, int32_t known);
  // Gives back the blocks of look-ups that were given up. Whether a reader still holds some.
  bool collect();
  // Until a reader is done with some look-up, or the time has passed.
  void wait_for_news(std::chrono::milliseconds longest);

 private:
  friend class StoredPrefix;
  using Work = StoredPrefix::Work;
  StoreReader(memory::Memory* memory, memory::PrefixCache* cache, Trace* trace, Hooks hooks);
  // What a source's thread has before it, under the mutex but for the source.
  struct Desk {
    store::RecordSource* source = nullptr;
    std::deque<std::shared_ptr<Work>> searches, reads;
    std::condition_variable handed_over;
    std::thread thread;
  };
  enum class Next : uint8_t { done, read, search_again, search_elsewhere };
  void run(size_t desk);
  std::shared_ptr<Work> take_next(Desk& desk, std::unique_lock<std::mutex>& lock);
  Next make_progress(size_t desk, Work& work);
  Next search(size_t desk, Work& work);
  void hand_over(std::shared_ptr<Work> work);
  bool is_out(const Work& work);
  void give_up(std::shared_ptr<Work> work);
  bool is_brought_by_other(const StoredPrefix& one) const;

  memory::Memory* memory_;
  memory::PrefixCache* cache_;
  Trace* trace_;
  Hooks hooks_;
  std::vector<StoredPrefix*> reading_;  // The engine's thread alone knows them.
  std::atomic<int64_t> progress_{0};    // Searches, and records that were read.
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<Desk> desks_;
  std::vector<std::shared_ptr<Work>> given_up_;  // To be destroyed by the engine's thread.
  int32_t held_count_ = 0;                       // Given up, and not handed back yet.
  int64_t news_count_ = 0, seen_news_ = 0;
  bool is_closing_ = false;
};

}  // namespace cairn
