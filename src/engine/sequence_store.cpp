// The writing thread, and what the engine's thread hands over to it.
#include "engine/sequence_store.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/quantities.h"
#include "base/threads/background_thread.h"
#include "base/threads/start_thread.h"
#include "base/trace/trace.h"
#include "sample/state_text.h"

namespace cairn {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWriterNewsWait(100);
// While nothing is computed a file is scrubbed so often.
constexpr std::chrono::seconds kScrubPause(1);
// Restored sequences that wait to be computed again.
constexpr size_t kAuditsMax = 8;
// Of the budget, what waits to be written holds at most a quarter, what was evicted an eighth.
// More than a sixteenth is written without rest.
constexpr uint64_t kWaitingPart = 4, kDemotedPart = 8, kBehindPart = 16;
// Beside steps the writing thread rests so many times as long as it has computed: two processors
// lose less than a hundredth of their time, with what the system does for it.
constexpr int64_t kRestPerWork = 120;
// Steps are being made, if one was so short ago.
constexpr std::chrono::milliseconds kBesideSteps(100);

// Of the calling thread.
std::chrono::nanoseconds processor_time() {
  timespec time{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Result<std::unique_ptr<SequenceStore>> SequenceStore::open(Options options, memory::Memory* memory,
                                                           memory::PrefixCache* cache) {
  store::StoreOptions disk = options.disk;
  const store::OpenTier open_tier = options.open_tier;
  std::unique_ptr<SequenceStore> made(new SequenceStore(std::move(options), memory, cache));
  if (!disk.path.empty()) CAIRN_TRY(made->open_folder(disk));
  if (open_tier != nullptr) {
    CAIRN_TRY(made->tier_, open_tier());
    if (made->disk_ != nullptr) made->tier_->lend_folder(made->disk_.get());
  }
  CAIRN_TRY(made->start_reader());
  return made;
}

SequenceStore::SequenceStore(Options options, memory::Memory* memory, memory::PrefixCache* cache)
    : path_(std::move(options.disk.path)),
      model_(std::move(options.model)),
      trace_(options.trace),
      memory_(memory),
      cache_(cache),
      last_step_ns_(now_ns()),
      audit_interval_(options.audit_interval),
      random_(std::random_device()()) {}

Status SequenceStore::open_folder(const store::StoreOptions& options) {
  store::StoreOptions aside = options;
  aside.is_read_aside = true;
  CAIRN_TRY(disk_, store::DiskStore::open(aside));
  CAIRN_TRY(writer_, start_thread(fmt::format("{}: the thread that writes", path_),
                                  [this] { write_all(); }));
  return Ok{};
}

// What is near is asked first.
Status SequenceStore::start_reader() {
  std::vector<store::RecordSource*> sources;
  if (disk_ != nullptr) sources.push_back(disk_.get());
  if (tier_ != nullptr) sources.push_back(tier_->source());
  CHECK(!sources.empty());
  CAIRN_TRY(reader_, StoreReader::start(
                         std::move(sources), memory_, cache_, trace_,
                         {.on_loaded =
                              [this](const Sha256Digest& fingerprint, const Selection& selection,
                                     const memory::Sequence& loaded) {
                                note_loaded(fingerprint, selection, loaded);
                              },
                          .free_memory = [this] { drain(); }}));
  return Ok{};
}

SequenceStore::~SequenceStore() {
  if (disk_ != nullptr) disk_->stop_reading();
  if (tier_ != nullptr) tier_->leave();
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  if (writer_.joinable()) writer_.join();
  reader_.reset();
}

int64_t SequenceStore::now_ns() {
  return Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void SequenceStore::write_all() {
  run_anywhere();
  give_way();
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool is_called =
        changed_.wait_for(lock, kScrubPause, [this] { return has_errand() || is_closing_; });
    if (!is_called) {
      scrub(lock);
    } else if (has_errand()) {
      is_writing_ = true;
      work_once(lock);
      is_writing_ = gives_up_ = false;
      is_wanted_ = is_wanted_ && has_errand();
      changed_.notify_all();
    } else {
      return;
    }
  }
}

// What is known to be wrong goes first.
void SequenceStore::work_once(std::unique_lock<std::mutex>& lock) {
  if (!condemned_.empty()) {
    const Condemned condemned = std::move(condemned_.back());
    condemned_.pop_back();
    lock.unlock();
    disk_->condemn(condemned.audit.fingerprint, condemned.audit.tokens,
                   condemned.difference.position, condemned.difference.what);
    lock.lock();
    return;
  }
  std::unique_ptr<store::Snapshot> snapshot = std::move(waiting_.front());
  waiting_.pop_front();
  lock.unlock();
  const Result<Sha256Digest> written = write(*snapshot);
  if (!written) log::info("store: a sequence was not written: {}", written.error().message);
  const bool is_left = !written && written.error().code == ErrorCode::cancelled;
  lock.lock();
  counts_.passed_over += int64_t(is_left);
  written_.push_back(std::move(snapshot));
}

Result<Sha256Digest> SequenceStore::write(const store::Snapshot& snapshot) {
  TraceSpan span(trace_, "store writer", "store write");
  span.add("tokens", snapshot.outline().length());
  span.add("bytes", int64_t(snapshot.payload_bytes()));
  return disk_->write(snapshot, store::Durability::cache,
                      [this, worked = processor_time()]() mutable { return rest(worked); });
}

// Between two records, the writing thread. False: it shall leave what it writes.
bool SequenceStore::rest(std::chrono::nanoseconds& rested_at) {
  const std::chrono::nanoseconds now = processor_time();
  const std::chrono::nanoseconds pause = kRestPerWork * (now - rested_at);
  rested_at = now;
  std::unique_lock lock(mutex_);
  // That steps have ended is told by nobody.
  for (const auto end = Clock::now() + pause; Clock::now() < end && !is_hurried();) {
    changed_.wait_until(lock, std::min(end, Clock::now() + kBesideSteps));
  }
  return !gives_up_;
}

void SequenceStore::hurry() {
  if (tier_ != nullptr) tier_->give_room();
  {
    const std::lock_guard lock(mutex_);
    if (is_wanted_ || is_idle()) return;
    is_wanted_ = true;
  }
  changed_.notify_all();
}

bool SequenceStore::is_hurried() const {
  return drain_count_ > 0 || is_wanted_ || is_closing_ ||
         waiting_bytes() > memory_->options().budget_bytes / kBehindPart ||
         !is_beside_steps(kBesideSteps);
}

bool SequenceStore::may_scrub() {
  if (is_beside_steps(kScrubPause)) return false;
  const std::lock_guard lock(mutex_);
  return !has_errand() && !is_closing_;
}

void SequenceStore::scrub(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  if (may_scrub()) (void)disk_->scrub_next([this] { return may_scrub(); });
  lock.lock();
}

void SequenceStore::note_loaded(const Sha256Digest& fingerprint, const Selection& selection,
                                const memory::Sequence& loaded) {
  if (audit_interval_ == 0 || random_() % uint64_t(audit_interval_) != 0) return;
  audits_.push_back({.fingerprint = fingerprint,
                     .selection = selection,
                     .tokens = {loaded.tokens().begin(), loaded.tokens().end()}});
  if (audits_.size() <= kAuditsMax) return;
  pass_over(audits_.front());
  audits_.pop_front();
}

std::optional<SequenceStore::Audit> SequenceStore::next_audit() {
  if (audits_.empty()) return std::nullopt;
  Audit audit = std::move(audits_.front());
  audits_.pop_front();
  return audit;
}

void SequenceStore::pass_over(const Audit& audit) {
  log::info("store: {} restored tokens were not computed again", audit.tokens.size());
  const std::lock_guard lock(mutex_);
  ++counts_.audits_passed_over;
}

void SequenceStore::close_audit(const Audit& audit, const std::optional<Difference>& difference) {
  if (difference) {
    log::error(
        "store: of {} restored tokens {} is not what they compute. It is taken out of "
        "memory and of {}; this machine's memory or disk may be failing",
        audit.tokens.size(), difference->what, path_);
    cache_->condemn(audit.tokens, audit.selection.variant(), difference->position);
  }
  const std::lock_guard lock(mutex_);
  ++counts_.audited;
  if (!difference) return;
  ++counts_.differing;
  if (tier_ != nullptr) tier_->distrust();
  if (disk_ == nullptr) return;
  condemned_.push_back({audit, *difference});
  changed_.notify_all();
}

bool SequenceStore::collect() {
  const bool is_held = reader_->collect();
  if (tier_ != nullptr) tier_->collect();
  Snapshots written;
  const std::lock_guard lock(mutex_);
  written.swap(written_);
  return is_held;
}

bool SequenceStore::drain(std::optional<std::chrono::milliseconds> patience) {
  const bool tier_had_any = tier_ != nullptr && tier_->drain();
  return drain_folder(patience) || tier_had_any;
}

// What is being written or read when the patience is over is left between two records: until then
// its blocks stay, however long the disk takes.
bool SequenceStore::drain_folder(std::optional<std::chrono::milliseconds> patience) {
  const auto end = Clock::now() + patience.value_or(std::chrono::milliseconds(0));
  bool had_any = false;
  Snapshots passed_over;
  {
    std::unique_lock lock(mutex_);
    had_any = !is_idle() || !written_.empty();
    ++drain_count_;
    changed_.notify_all();
    const auto is_idle = [this] { return this->is_idle(); };
    if (!patience) {
      changed_.wait(lock, is_idle);
    } else if (!changed_.wait_until(lock, end, is_idle)) {
      passed_over.swap(waiting_);
      counts_.passed_over += int64_t(passed_over.size());
      gives_up_ = is_writing_;
    }
    --drain_count_;
  }
  while (collect()) {
    had_any = true;
    if (patience && Clock::now() >= end) break;
    wait_for_news(kWriterNewsWait);
  }
  return had_any;
}

void SequenceStore::end_step(const store::ComputedTokens& prompt) {
  last_step_ns_ = now_ns();
  is_in_step_ = false;
  if (tier_ == nullptr) return;
  tier_->note_computed(prompt, std::chrono::nanoseconds(last_step_ns_ - step_began_ns_));
}

Result<std::vector<Token>> SequenceStore::tokens_of(const Sha256Digest& name) {
  if (disk_ == nullptr) return fail(ErrorCode::not_found, "store: there is no folder");
  CAIRN_TRY(store::Manifest manifest, disk_->read_manifest(name));
  return std::move(manifest.outline.tokens);
}

store::StoredPart SequenceStore::part_of(const Sha256Digest& fingerprint,
                                         std::span<const Token> tokens) const {
  if (disk_ == nullptr) return {};
  return disk_->part_of(fingerprint, memory_->layout(), tokens);
}

std::vector<store::IndexEntry> SequenceStore::entries() const {
  if (disk_ == nullptr) return {};
  return disk_->entries();
}

store::StoreStats SequenceStore::stats() const {
  if (disk_ == nullptr) return {};
  return disk_->stats();
}

SequenceStore::Counts SequenceStore::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

// Asked first: what is written by then is collected.
bool SequenceStore::holds_memory() {
  std::unique_lock lock(mutex_);
  const bool is_busy = !is_idle() || (tier_ != nullptr && tier_->holds_memory());
  lock.unlock();
  (void)collect();
  return is_busy;
}

void SequenceStore::offer(const memory::Sequence& sequence, const Sha256Digest& fingerprint,
                          store::SharedTier::Offer offer) {
  if (tier_ == nullptr) return;
  tier_->collect();
  if (sequence.is_closed() || sequence.length() < store::kChainTokens) return;
  const bool is_evicted = offer == store::SharedTier::Offer::evicted;
  const uint64_t bytes_max =
      memory_->options().budget_bytes / (is_evicted ? kDemotedPart : kWaitingPart);
  tier_->offer(std::make_unique<store::Snapshot>(*memory_, sequence, fingerprint, model_), offer,
               bytes_max);
}

uint64_t SequenceStore::waiting_bytes() const {
  uint64_t bytes = 0;
  for (const auto& snapshot : waiting_) bytes += snapshot->payload_bytes();
  return bytes;
}

void SequenceStore::keep(const memory::Sequence& sequence, const Sha256Digest& fingerprint) {
  (void)collect();
  if (sequence.is_closed() || sequence.length() < store::kChainTokens) return;
  offer(sequence, fingerprint, store::SharedTier::Offer::turn);
  if (disk_ == nullptr) return;
  hand_over(std::make_unique<store::Snapshot>(*memory_, sequence, fingerprint, model_),
            memory_->options().budget_bytes / kWaitingPart);
}

// Most of what is evicted was written when its turn was finished. Whoever evicts needs memory now,
// which a copy keeps from being free: so little may wait, and the rest is lost.
void SequenceStore::demote(const memory::Sequence& sequence, const Sha256Digest& fingerprint) {
  if (sequence.is_closed() || sequence.length() < store::kChainTokens) return;
  offer(sequence, fingerprint, store::SharedTier::Offer::evicted);
  if (disk_ == nullptr) return;
  if (disk_->covers(fingerprint, memory_->layout(), sequence.tokens())) return;
  auto snapshot = std::make_unique<store::Snapshot>(*memory_, sequence, fingerprint, model_);
  const uint64_t bytes_max = memory_->options().budget_bytes / kDemotedPart;
  bool has_room = false;
  {
    const std::lock_guard lock(mutex_);
    has_room = snapshot->payload_bytes() + waiting_bytes() <= bytes_max;
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
    for (std::unique_ptr<store::Snapshot>& other : waiting_) {
      if (is_beginning(other)) unwritten.push_back(std::move(other));
    }
    std::erase(waiting_, nullptr);
    uint64_t bytes = snapshot->payload_bytes() + waiting_bytes();
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
                           const Sha256Digest& fingerprint, const sample::SamplerState& sampler) {
  if (sequence.is_closed() || sequence.length() == 0) {
    return fail(ErrorCode::invalid_argument, "session {}: expected tokens, found none", session);
  }
  if (disk_ == nullptr) {
    return fail(ErrorCode::unsupported, "session {}: expected a folder (--cache-dir), found none",
                session);
  }
  offer(sequence, fingerprint, store::SharedTier::Offer::kept);
  drain_folder(std::nullopt);
  return disk_->save(session, store::Snapshot(*memory_, sequence, fingerprint, model_),
                     sample::to_text(sampler));
}

Result<SequenceStore::Restored> SequenceStore::restore(const std::string& session,
                                                       const Sha256Digest& fingerprint,
                                                       const Selection& selection) {
  if (disk_ == nullptr) {
    return fail(ErrorCode::unsupported, "session {}: expected a folder (--cache-dir), found none",
                session);
  }
  std::string note;
  CAIRN_TRY(store::DiskStore::Match match,
            disk_->open_session(session, fingerprint, memory_->layout(), &note));
  Restored restored;
  CAIRN_TRY(restored.sampler, sample::read_sampler_state(note));
  Result<memory::Sequence> sequence = load(fingerprint, selection.variant(), match);
  if (sequence) {
    note_loaded(fingerprint, selection, *sequence);
    cache_->keep(std::move(sequence).value());
  } else if (sequence.error().code != ErrorCode::not_found) {
    return std::move(sequence).error();
  }
  restored.tokens = std::move(match.manifest.outline.tokens);
  return restored;
}

Result<memory::Sequence> SequenceStore::load(const Sha256Digest& fingerprint,
                                             memory::Variant variant,
                                             const store::DiskStore::Match& match) {
  Result<memory::Sequence> loaded = disk_->load(*memory_, variant, fingerprint, match, 0);
  if (loaded || loaded.error().code != ErrorCode::memory_full) return loaded;
  drain();
  uint64_t bytes = 0;
  for (const store::PieceRef& piece : match.manifest.pieces) bytes += piece.file_bytes;
  if (!cache_->make_room(size_t(bytes), variant)) return loaded;
  return disk_->load(*memory_, variant, fingerprint, match, 0);
}

}  // namespace cairn
