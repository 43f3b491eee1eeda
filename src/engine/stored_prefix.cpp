// Stages of a look-up, and the thread that works on them: searches first, then one record of each
// in turn, so that a short one does not wait for a long one.
#include "engine/stored_prefix.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/threads/background_thread.h"
#include "base/threads/start_thread.h"
#include "base/trace/trace.h"
#include "memory/common_prefix.h"
#include "store/loading.h"
#include "store/shared_tier.h"

namespace cairn {

namespace {

using Clock = std::chrono::steady_clock;

// Fewer tokens are computed as soon as they are read.
constexpr int32_t kWorthTokens = 32;
// A disk that gives nothing for so long is not waited for.
constexpr std::chrono::seconds kPatience(60);
constexpr std::chrono::milliseconds kReaderNewsWait(100);

}  // namespace

// Of the engine's thread, but while it is out: then of the reader's.
struct StoredPrefix::Work {
  Sha256Digest fingerprint{};
  Selection selection;
  std::vector<Token> prompt;
  int32_t known = 0;  // Of the prompt's tokens: what memory has.
  std::optional<store::Loading> loading;
  std::chrono::steady_clock::time_point first_asked, not_before{};
  std::string_view tier_note;
  size_t desk = 0;                           // Whose source found what is loaded.
  bool is_read = false;                      // Blocks are taken.
  bool is_out = false, is_given_up = false;  // Under the reader's mutex.
  bool holds_memory = false;                 // Likewise: a search holds none.

  int32_t worth() const { return known + kWorthTokens - 1; }
};

StoredPrefix::StoredPrefix(StoreReader* reader, std::unique_ptr<Work> work)
    : reader_(reader),
      work_(std::move(work)),
      begin_(std::chrono::steady_clock::now()),
      progress_at_(begin_) {
  if (int64_t(work_->prompt.size()) <= work_->worth()) {
    stage_ = Stage::ended;
  } else {
    reader_->hand_over(work_);
  }
}

StoredPrefix::~StoredPrefix() {
  end();
  reader_->give_up(std::move(work_));
}

std::span<const Token> StoredPrefix::prompt() const {
  return work_->prompt;
}

// The reader may be about to find a bad record.
int32_t StoredPrefix::resume() const {
  if (stage_ == Stage::reading) return target_;
  return work_->loading->resume(reader_->memory_->layout());
}

size_t StoredPrefix::needed_bytes() const {
  return work_->loading->needed_bytes(reader_->memory_->layout());
}

void StoredPrefix::end() {
  std::erase(reader_->reading_, this);
  stage_ = Stage::ended;
  const bool is_told = tier_note_ == store::name_of(store::TierOutcome::fetched);
  if (is_told && !has_brought_) tier_note_ = store::kDropped;
}

bool StoredPrefix::is_stuck() {
  const auto now = std::chrono::steady_clock::now();
  const int64_t progress = reader_->progress_;
  if (progress != seen_progress_) progress_at_ = now;
  seen_progress_ = progress;
  return now - progress_at_ > kPatience;
}

StoredPrefix::Stage StoredPrefix::advance() {
  const bool is_waiting = stage_ == Stage::searching || stage_ == Stage::reading;
  if (!is_waiting) return stage_;
  if (reader_->is_out(*work_)) {
    if (!is_stuck()) return stage_;
    log::info("store: the disk does not answer; a prompt of {} tokens is computed",
              work_->prompt.size());
    end();
  } else if (stage_ == Stage::reading) {
    take_reading();
  } else {
    take_search();
  }
  return stage_;
}

// By now memory may have more than when it was asked for.
void StoredPrefix::take_search() {
  tier_note_ = work_->tier_note;
  if (!work_->loading) return end();
  if (!is_waited_for_ && reader_->is_brought_by_other(*this)) {
    other_brings_ = true;
    return;
  }
  const int32_t known =
      reader_->cache_->find(work_->prompt, work_->selection.variant(), true).plan.resume;
  if (known <= work_->known) {
    stage_ = Stage::found;
    return;
  }
  if (other_brings_) {
    has_brought_ = true;
    origin_ = work_->loading->place().origin();
  }
  work_->known = known;
  work_->loading.reset();
  if (int64_t(work_->prompt.size()) <= work_->worth()) return end();
  progress_at_ = std::chrono::steady_clock::now();
  reader_->hand_over(work_);
}

Status StoredPrefix::take_blocks() {
  memory::Memory& memory = *reader_->memory_;
  Status taken = work_->loading->begin(memory, work_->selection.variant());
  const auto is_full = [&] { return !taken && taken.error().code == ErrorCode::memory_full; };
  if (is_full() && is_waited_for_) reader_->hooks_.free_memory();
  const memory::Variant variant = work_->selection.variant();
  if (is_full() && reader_->cache_->make_room(needed_bytes(), variant, spares_shares_)) {
    taken = work_->loading->begin(memory, variant);
  }
  return taken;
}

void StoredPrefix::read(bool spares_shares) {
  CHECK(stage_ == Stage::found);
  spares_shares_ = spares_shares;
  const Status taken = take_blocks();
  if (!taken) {
    log::info("store: a prompt of {} tokens is computed: {}", work_->prompt.size(),
              taken.error().message);
    const bool is_lost = taken.error().code == ErrorCode::not_found;
    if (is_lost && !tier_note_.empty()) tier_note_ = work_->loading->place().why_lost();
    return end();
  }
  target_ = resume();
  work_->is_read = true;
  stage_ = Stage::reading;
  reader_->reading_.push_back(this);
  progress_at_ = std::chrono::steady_clock::now();
  reader_->hand_over(work_);
}

void StoredPrefix::take_reading() {
  Result<memory::Sequence> loaded = work_->loading->finish();
  work_->is_read = false;
  std::erase(reader_->reading_, this);
  if (!loaded) {  // A record was bad: with what is left.
    stage_ = Stage::found;
    return read(spares_shares_);
  }
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin_;
  log::info("store: {} of {} tokens restored in {:.1f} ms", loaded->length(), work_->prompt.size(),
            spent.count());
  reader_->hooks_.on_loaded(work_->fingerprint, work_->selection, *loaded);
  reader_->cache_->keep(std::move(loaded).value());
  has_brought_ = true;
  origin_ = work_->loading->place().origin();
  end();
}

// Others get on by this thread alone: waiting for them would never end.
void StoredPrefix::wait() {
  is_waited_for_ = true;
  while (advance() != Stage::ended) {
    if (stage_ == Stage::found) {
      read();
    } else {
      reader_->wait_for_news(kReaderNewsWait);
    }
  }
}

Result<std::unique_ptr<StoreReader>> StoreReader::start(std::vector<store::RecordSource*> sources,
                                                        memory::Memory* memory,
                                                        memory::PrefixCache* cache, Trace* trace,
                                                        Hooks hooks) {
  std::unique_ptr<StoreReader> made(new StoreReader(memory, cache, trace, std::move(hooks)));
  for (store::RecordSource* const source : sources) made->desks_.emplace_back().source = source;
  for (size_t desk = 0; desk < sources.size(); ++desk) {
    CAIRN_TRY(made->desks_[desk].thread,
              start_thread("the thread that reads the store",
                           [reader = made.get(), desk] { reader->run(desk); }));
  }
  return made;
}

StoreReader::StoreReader(memory::Memory* memory, memory::PrefixCache* cache, Trace* trace,
                         Hooks hooks)
    : memory_(memory), cache_(cache), trace_(trace), hooks_(std::move(hooks)) {}

StoreReader::~StoreReader() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
    for (Desk& desk : desks_) desk.handed_over.notify_all();
  }
  for (Desk& desk : desks_) {
    if (desk.thread.joinable()) desk.thread.join();
  }
}

std::unique_ptr<StoredPrefix> StoreReader::look_up(const Sha256Digest& fingerprint,
                                                   const Selection& selection,
                                                   std::span<const Token> prompt, int32_t known) {
  auto work = std::make_unique<Work>();
  work->fingerprint = fingerprint;
  work->selection = selection;
  work->prompt.assign(prompt.begin(), prompt.end());
  work->known = known;
  work->first_asked = std::chrono::steady_clock::now();
  return std::unique_ptr<StoredPrefix>(new StoredPrefix(this, std::move(work)));
}

void StoreReader::hand_over(std::shared_ptr<Work> work) {
  const std::lock_guard lock(mutex_);
  work->is_out = true;
  work->holds_memory = work->is_read;
  Desk& desk = desks_[work->is_read ? work->desk : 0];
  (work->is_read ? desk.reads : desk.searches).push_back(std::move(work));
  desk.handed_over.notify_all();
}

bool StoreReader::is_out(const Work& work) {
  const std::lock_guard lock(mutex_);
  return work.is_out;
}

void StoreReader::give_up(std::shared_ptr<Work> work) {
  const std::lock_guard lock(mutex_);
  if (!work->is_out) return;
  work->is_given_up = true;
  if (work->holds_memory) ++held_count_;
}

bool StoreReader::collect() {
  std::vector<std::shared_ptr<Work>> given_up;
  const std::lock_guard lock(mutex_);
  given_up.swap(given_up_);
  return held_count_ > 0;
}

void StoreReader::wait_for_news(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, longest, [this] { return news_count_ != seen_news_; });
  seen_news_ = news_count_;
}

// Whether a look-up that is being read gives the prompt nearly as much as this one would. What the
// reader has now and then changes no manifest.
bool StoreReader::is_brought_by_other(const StoredPrefix& one) const {
  return std::ranges::any_of(reading_, [&](const StoredPrefix* other) {
    if (other->work_->fingerprint != one.work_->fingerprint) return false;
    const std::span<const Token> stored = other->work_->loading->match().manifest.outline.tokens;
    const int32_t shared =
        memory::common_prefix(stored.first(size_t(other->target_)), one.prompt());
    return shared + kWorthTokens > one.resume();
  });
}

// Searches first; null: it is closed. What shall be asked again later waits for its time.
std::shared_ptr<StoredPrefix::Work> StoreReader::take_next(Desk& desk,
                                                           std::unique_lock<std::mutex>& lock) {
  while (!is_closing_) {
    const Clock::time_point now = Clock::now();
    auto& searches = desk.searches;
    const auto ready = std::ranges::find_if(searches, [now](const std::shared_ptr<Work>& work) {
      return work->is_given_up || work->not_before <= now;
    });
    if (ready != searches.end() || !desk.reads.empty()) {
      auto& queue = ready != searches.end() ? searches : desk.reads;
      const auto place = ready != searches.end() ? ready : desk.reads.begin();
      std::shared_ptr<Work> work = std::move(*place);
      queue.erase(place);
      return work;
    }
    if (searches.empty()) {
      desk.handed_over.wait(lock);
      continue;
    }
    const auto first = std::ranges::min_element(
        searches, {}, [](const std::shared_ptr<Work>& work) { return work->not_before; });
    const Clock::time_point until = (*first)->not_before;
    desk.handed_over.wait_until(lock, until);
  }
  return nullptr;
}

void StoreReader::run(size_t desk) {
  run_anywhere();
  std::unique_lock lock(mutex_);
  while (std::shared_ptr<Work> work = take_next(desks_[desk], lock)) {
    const bool goes_on = !work->is_given_up;
    lock.unlock();
    const Next next = goes_on ? make_progress(desk, *work) : Next::done;
    lock.lock();
    if (next == Next::read) {
      desks_[desk].reads.push_back(std::move(work));
      continue;
    }
    if (next == Next::search_again) {
      desks_[desk].searches.push_back(std::move(work));
      continue;
    }
    if (next == Next::search_elsewhere) {
      desks_[desk + 1].searches.push_back(std::move(work));
      desks_[desk + 1].handed_over.notify_all();
      continue;
    }
    work->is_out = false;
    if (work->is_given_up) {
      if (work->holds_memory) --held_count_;
      given_up_.push_back(std::move(work));
    }
    work.reset();
    ++news_count_;
    news_.notify_all();
  }
}

StoreReader::Next StoreReader::make_progress(size_t desk, Work& work) {
  ++progress_;
  TraceSpan span(trace_, "store reader", work.is_read ? "store read" : "store search");
  span.add("tokens", int64_t(work.prompt.size()));
  if (!work.is_read) return search(desk, work);
  return work.loading->read_next() ? Next::read : Next::done;
}

// A source that is asked later is asked for more than those before it have.
StoreReader::Next StoreReader::search(size_t desk, Work& work) {
  store::RecordSource& source = *desks_[desk].source;
  const int32_t found = work.loading ? work.loading->match().resume : 0;
  const int32_t known = std::max(work.worth(), found);
  store::RecordSource::Answer answer = source.look_up({.fingerprint = work.fingerprint,
                                                       .layout = &memory_->layout(),
                                                       .prompt = work.prompt,
                                                       .wants_logits = true,
                                                       .known = known,
                                                       .first_asked = work.first_asked});
  if (answer.match) {
    work.loading.emplace(work.fingerprint, std::move(*answer.match), work.worth());
    work.desk = desk;
  }
  if (!answer.note.empty()) work.tier_note = answer.note;
  if (answer.ask_again.count() > 0) {
    work.not_before = std::chrono::steady_clock::now() + answer.ask_again;
    return Next::search_again;
  }
  const bool is_enough = int64_t(work.prompt.size()) <= known + kWorthTokens;
  return desk + 1 < desks_.size() && !is_enough ? Next::search_elsewhere : Next::done;
}

}  // namespace cairn
