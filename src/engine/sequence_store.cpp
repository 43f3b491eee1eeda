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

// Of the budget, what waits to be written holds at most a quarter, what was evicted an eighth.
constexpr std::chrono::milliseconds kLookAgain(100);
constexpr uint64_t kWaitingPart = 4, kDemotedPart = 8;

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
  CAIRN_TRY(
      made->reader_,
      StoreReader::start(
          made->disk_.get(), memory, cache,
          {.on_loaded = [](const Selection&, const Sha256Digest&, const memory::Sequence&) {},
           .free_memory = [store = made.get()] { store->drain(); }}));
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
  reader_.reset();
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
    const Result<Sha256Digest> written =
        disk_->write(*snapshot, store::Durability::cache, [this] { return !gives_up_; });
    if (!written) log::info("store: a sequence was not written: {}", written.error().message);
    const bool is_left = !written && written.error().code == ErrorCode::cancelled;
    lock.lock();
    counts_.passed_over += int64_t(is_left);
    is_writing_ = false;
    written_.push_back(std::move(snapshot));
    changed_.notify_all();
  }
}

bool SequenceStore::collect() {
  const bool is_held = reader_->collect();
  Snapshots written;
  const std::lock_guard lock(mutex_);
  written.swap(written_);
  return is_held;
}

bool SequenceStore::drain(std::optional<std::chrono::milliseconds> patience) {
  bool had_any = false;
  Snapshots passed_over;
  {
    std::unique_lock lock(mutex_);
    had_any = !is_idle() || !written_.empty();
    const auto is_idle = [this] { return this->is_idle(); };
    if (patience && !changed_.wait_for(lock, *patience, is_idle)) {
      passed_over.swap(waiting_);
      counts_.passed_over += int64_t(passed_over.size());
      gives_up_ = true;
    }
    changed_.wait(lock, is_idle);
    gives_up_ = false;
  }
  while (collect()) {
    had_any = true;
    wait_for_news(kLookAgain);
  }
  return had_any;
}

SequenceStore::Counts SequenceStore::counts() {
  const std::lock_guard lock(mutex_);
  return counts_;
}

bool SequenceStore::holds_memory() {
  (void)collect();
  const std::lock_guard lock(mutex_);
  return !is_idle();
}

uint64_t SequenceStore::waiting_bytes() {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& snapshot : waiting_) bytes += snapshot->payload_bytes();
  return bytes;
}

void SequenceStore::keep(const memory::Sequence& sequence, const Sha256Digest& fingerprint) {
  (void)collect();
  if (sequence.is_closed() || sequence.length() < store::kChainTokens) return;
  hand_over(std::make_unique<store::Snapshot>(*memory_, sequence, fingerprint, model_),
            memory_->options().budget_bytes / kWaitingPart);
}

// Most of what is evicted was written when its turn was finished. Whoever evicts needs memory now,
// which a copy keeps from being free: so little may wait, and the rest is lost.
void SequenceStore::demote(const memory::Sequence& sequence, const Sha256Digest& fingerprint) {
  if (sequence.is_closed() || sequence.length() < store::kChainTokens) return;
  if (disk_->covers(fingerprint, sequence.tokens())) return;
  auto snapshot = std::make_unique<store::Snapshot>(*memory_, sequence, fingerprint, model_);
  const uint64_t bytes_max = memory_->options().budget_bytes / kDemotedPart;
  const bool has_room = snapshot->payload_bytes() + waiting_bytes() <= bytes_max;
  {
    const std::lock_guard lock(mutex_);
    ++(has_room ? counts_.demoted : counts_.passed_over);
  }
  if (!has_room) return;
  hand_over(std::move(snapshot), bytes_max);
}

// A sequence that goes on from one that still waits makes that one unnecessary.
void SequenceStore::hand_over(std::unique_ptr<store::Snapshot> snapshot,
                              uint64_t waiting_bytes_max) {
  const std::span<const Token> tokens = snapshot->outline().tokens;
  const auto is_beginning = [&](const std::unique_ptr<store::Snapshot>& other) {
    const std::span<const Token> beginning = other->outline().tokens;
    return other->fingerprint() == snapshot->fingerprint() && beginning.size() <= tokens.size() &&
           std::ranges::equal(beginning, tokens.first(beginning.size()));
  };
  Snapshots unwritten;
  {
    const std::lock_guard lock(mutex_);
    uint64_t bytes = snapshot->payload_bytes();
    for (std::unique_ptr<store::Snapshot>& other : waiting_) {
      if (is_beginning(other)) unwritten.push_back(std::move(other));
    }
    std::erase(waiting_, nullptr);
    for (const auto& other : waiting_) bytes += other->payload_bytes();
    while (!waiting_.empty() && bytes > waiting_bytes_max) {
      bytes -= waiting_.front()->payload_bytes();
      unwritten.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      ++counts_.passed_over;
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
  CAIRN_TRY(memory::Sequence sequence, load(fingerprint, variant, match));
  cache_->keep(std::move(sequence));
  return match.manifest.outline.tokens;
}

Result<memory::Sequence> SequenceStore::load(const Sha256Digest& fingerprint,
                                             memory::Variant variant,
                                             const store::DiskStore::Match& match) {
  Result<memory::Sequence> loaded = disk_->load(*memory_, variant, fingerprint, match, 0);
  if (loaded || loaded.error().code != ErrorCode::memory_full) return loaded;
  drain();
  uint64_t bytes = 0;
  for (const store::PieceRef& piece : match.manifest.pieces) bytes += piece.file_bytes;
  if (!cache_->make_room(size_t(bytes))) return loaded;
  return disk_->load(*memory_, variant, fingerprint, match, 0);
}

}  // namespace cairn
