// The writing thread, and what the engine's thread hands over to it.
#include "engine/sequence_store.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/blocked_signals.h"
#include "base/log.h"
#include "base/quantities.h"
#include "base/threads.h"

namespace cairn {

namespace {

// Fewer tokens are computed as soon as they are read.
constexpr int32_t kWorthTokens = 32;

// It runs where there is room, and steps go before it.
void give_way() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : usable_cpus()) CPU_SET(size_t(cpu), &cpus);
  (void)::sched_setaffinity(0, sizeof cpus, &cpus);
  (void)::setpriority(PRIO_PROCESS, id_t(::gettid()), 10);
}

}  // namespace

Result<std::unique_ptr<SequenceStore>> SequenceStore::open(const store::StoreOptions& options,
                                                           std::string model,
                                                           memory::Memory* memory,
                                                           memory::PrefixCache* cache) {
  CAIRN_TRY(std::unique_ptr<store::DiskStore> disk, store::DiskStore::open(options));
  const store::StoreStats stats = disk->stats();
  log::info("store: {}; {} sequences, {} of {}", options.path, stats.entries,
            show_bytes(stats.bytes), show_bytes(stats.budget_bytes));
  std::unique_ptr<SequenceStore> made(
      new SequenceStore(std::move(disk), options.path, std::move(model), memory, cache));
  const BlockedSignals blocked;
  try {
    made->writer_ = std::thread([store = made.get()] { store->write_all(); });
  } catch (const std::system_error& refused) {
    return fail(ErrorCode::io, "{}: the thread that writes: {}", options.path, refused.what());
  }
  return made;
}

SequenceStore::SequenceStore(std::unique_ptr<store::DiskStore> disk, std::string path,
                             std::string model, memory::Memory* memory, memory::PrefixCache* cache)
    : disk_(std::move(disk)),
      path_(std::move(path)),
      model_(std::move(model)),
      memory_(memory),
      cache_(cache) {}

SequenceStore::~SequenceStore() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  if (writer_.joinable()) writer_.join();
}

void SequenceStore::write_all() {
  give_way();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !waiting_.empty() || is_closing_; });
    if (waiting_.empty()) return;
    std::unique_ptr<store::Snapshot> snapshot = std::move(waiting_.front());
    waiting_.pop_front();
    is_writing_ = true;
    lock.unlock();
    const Result<Sha256Digest> written = disk_->write(*snapshot, store::Durability::cache);
    if (!written) log::info("store: a sequence was not written: {}", written.error().message);
    lock.lock();
    is_writing_ = false;
    written_.push_back(std::move(snapshot));
    changed_.notify_all();
  }
}

void SequenceStore::let_go() {
  Snapshots written;
  const std::lock_guard lock(mutex_);
  written.swap(written_);
}

bool SequenceStore::drain() {
  bool had_any = false;
  {
    std::unique_lock lock(mutex_);
    had_any = !is_idle() || !written_.empty();
    changed_.wait(lock, [this] { return is_idle(); });
  }
  let_go();
  return had_any;
}

// A sequence that goes on from one that still waits makes that one unnecessary.
void SequenceStore::keep(const memory::Sequence& sequence, const Sha256Digest& fingerprint) {
  let_go();
  if (sequence.is_closed() || sequence.length() < store::kChainTokens) return;
  auto snapshot = std::make_unique<store::Snapshot>(*memory_, sequence, fingerprint, model_);
  const std::span<const Token> tokens = snapshot->outline().tokens;
  const auto is_beginning = [&](const std::unique_ptr<store::Snapshot>& other) {
    const std::span<const Token> beginning = other->outline().tokens;
    return other->fingerprint() == fingerprint && beginning.size() <= tokens.size() &&
           std::ranges::equal(beginning, tokens.first(beginning.size()));
  };
  Snapshots passed_over;
  {
    const std::lock_guard lock(mutex_);
    uint64_t bytes = snapshot->payload_bytes();
    for (std::unique_ptr<store::Snapshot>& other : waiting_) {
      if (is_beginning(other)) passed_over.push_back(std::move(other));
    }
    std::erase(waiting_, nullptr);
    for (const auto& other : waiting_) bytes += other->payload_bytes();
    while (!waiting_.empty() && bytes > memory_->options().budget_bytes / 4) {
      bytes -= waiting_.front()->payload_bytes();
      passed_over.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    waiting_.push_back(std::move(snapshot));
  }
  changed_.notify_all();
}

// The writing thread has nothing to do meanwhile: one thread writes at a time.
Status SequenceStore::save(const std::string& session, const memory::Sequence& sequence,
                           const Sha256Digest& fingerprint) {
  if (sequence.is_closed() || sequence.length() == 0) {
    return fail(ErrorCode::invalid_argument, "session {}: expected tokens, found none", session);
  }
  drain();
  return disk_->save(session, store::Snapshot(*memory_, sequence, fingerprint, model_));
}

Result<std::vector<Token>> SequenceStore::restore(const std::string& session,
                                                  const Sha256Digest& fingerprint,
                                                  memory::Variant variant) {
  CAIRN_TRY(const store::DiskStore::Match match,
            disk_->open_session(session, fingerprint, memory_->layout()));
  CAIRN_TRY(memory::Sequence sequence, load(fingerprint, variant, match, 0));
  cache_->keep(std::move(sequence));
  return match.manifest.outline.tokens;
}

Result<memory::Sequence> SequenceStore::load(const Sha256Digest& fingerprint,
                                             memory::Variant variant,
                                             const store::DiskStore::Match& match, int32_t known) {
  Result<memory::Sequence> loaded = disk_->load(*memory_, variant, fingerprint, match, known);
  if (loaded || loaded.error().code != ErrorCode::memory_full) return loaded;
  drain();
  uint64_t bytes = 0;
  for (const store::PieceRef& piece : match.manifest.pieces) bytes += piece.file_bytes;
  if (!cache_->make_room(size_t(bytes))) return loaded;
  return disk_->load(*memory_, variant, fingerprint, match, known);
}

bool SequenceStore::fetch(const Sha256Digest& fingerprint, memory::Variant variant,
                          std::span<const Token> prompt, int32_t known) {
  let_go();
  const int32_t worth = known + kWorthTokens - 1;
  if (int64_t(prompt.size()) <= worth) return false;
  const auto begin = std::chrono::steady_clock::now();
  const auto match = disk_->find(fingerprint, memory_->layout(), prompt, true, worth);
  if (!match) return false;
  Result<memory::Sequence> loaded = load(fingerprint, variant, *match, worth);
  if (!loaded) {
    log::info("store: a prompt of {} tokens is computed: {}", prompt.size(),
              loaded.error().message);
    return false;
  }
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
  log::info("store: {} of {} tokens restored in {:.1f} ms", loaded->length(), prompt.size(),
            spent.count());
  cache_->keep(std::move(loaded).value());
  return true;
}

}  // namespace cairn
