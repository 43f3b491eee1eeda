// One step: who is admitted, which rows, what becomes of them.
#include "engine/schedule/scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/trace/trace.h"

namespace cairn {

namespace {

using Stored = StoredPrefix::Stage;

// Fewer rows of a prompt are not worth reading the weights for.
constexpr int32_t kPromptRowsMin = 16;
// A replayed row reads no weights: it counts for a client as so much of a computed one.
constexpr double kReplayedRow = 0.1;
// So long a step without anything else to do waits for the disk, unless that is done before.
constexpr std::chrono::milliseconds kDiskWait(5);
// Of smaller vocabularies a token is chosen sooner than threads are woken.
constexpr int32_t kVocabularyToShare = 16384;

}  // namespace

Scheduler::Scheduler(Engine* engine, const SchedulerOptions& options)
    : engine_(engine),
      options_(options),
      tenants_(&jobs_, &engine->cache()),
      draft_rows_(options.checks_all_drafts) {
  const size_t item_count_max = size_t(engine->runner().row_count_max());
  items_.reserve(item_count_max);
  shares_.reserve(item_count_max);
}

Scheduler::~Scheduler() {
  for (const auto& job : jobs_) {
    end(*job, fail(ErrorCode::cancelled, "the engine stops"));
  }
}

void Scheduler::set_tenants(const TenantShares& shares) {
  tenants_.set(shares, engine_->memory().options().budget_bytes);
  if (SequenceStore* const store = engine_->sequence_store()) {
    store->set_shares(shares.tenants, shares.part);
  }
  ++memory_epoch_;
}

void Scheduler::submit(JobId id, std::unique_ptr<Job> job, JobTerms terms) {
  Client& client = clients_.come(terms.client);
  if (Status has_room = tenants_.check_queue(client, options_.waiting_max); !has_room) {
    job->end(std::move(has_room));
    return;
  }
  ++client.job_count;
  auto entry = std::make_unique<ScheduledJob>(
      ScheduledJob{.id = id, .terms = std::move(terms), .job = std::move(job), .client = &client});
  const auto place =
      std::upper_bound(jobs_.begin(), jobs_.end(), entry,
                       [this](const auto& a, const auto& b) { return goes_first(*a, *b); });
  trace_begin(*entry);
  jobs_.insert(place, std::move(entry));
}

// Seniority: it never changes, so that of two jobs only one can take the other's memory.
bool Scheduler::goes_first(const ScheduledJob& a, const ScheduledJob& b) const {
  if (a.terms.is_idle != b.terms.is_idle) return b.terms.is_idle;
  if (a.terms.priority != b.terms.priority) return a.terms.priority > b.terms.priority;
  return a.id < b.id;
}

bool Scheduler::cancel(JobId id, Error why) {
  for (const auto& job : jobs_) {
    if (job->id != id) continue;
    end(*job, std::move(why));
    forget_ended();
    return true;
  }
  return false;
}

// What waits to be written gives it back then, and what was read for a job that has gone; if it has
// not just now.
bool Scheduler::does_memory_come_back() const {
  SequenceStore* const store = engine_->sequence_store();
  if (store == nullptr) return false;
  const size_t used_bytes = engine_->memory().usage().used_bytes();
  return store->holds_memory() || store->collect() ||
         engine_->memory().usage().used_bytes() < used_bytes;
}

bool Scheduler::has_work() const {
  SequenceStore* const store = engine_->sequence_store();
  return !jobs_.empty() || (store != nullptr && store->collect());
}

bool Scheduler::step() {
  const int64_t epoch = memory_epoch_;
  expire();
  const bool has_admitted = admit();
  choose_rows();
  compute();
  const bool has_gone_on = settle();
  forget_ended();
  return has_admitted || has_gone_on || computed_count_ > 0 || memory_epoch_ != epoch ||
         wait_for_disk();
}

// Whether there was something to wait for.
bool Scheduler::wait_for_disk() {
  SequenceStore* const store = engine_->sequence_store();
  if (store == nullptr) return false;
  if (!store->collect() && !waits_for_disk_) return false;
  store->wait_for_news(kDiskWait);
  return true;
}

void Scheduler::expire() {
  const auto now = Clock::now();
  for (const auto& job : jobs_) {
    if (!job->terms.deadline || now < *job->terms.deadline) continue;
    end(*job, fail(ErrorCode::cancelled, "deadline: the request was not done in time"));
  }
}

// Waiting jobs begin, as far as there is memory: those of higher priority first, then those that
// have given up their memory, then those whose clients have had the fewest tokens.
bool Scheduler::admit() {
  queue_.clear();
  held_up_.clear();
  are_all_held_up_ = waits_for_disk_ = false;
  int32_t running_count = 0, reading_count = 0;
  bool has_others = false;  // Somebody who is not idle, and is read.
  bool has_slow_start = false;
  for (const auto& job : jobs_) {
    if (job->has_ended) continue;
    job->lent_priority = std::numeric_limits<int32_t>::min();
    running_count += int32_t(job->stage == ScheduledJob::Stage::running);
    if (job->job->is_blocked()) {
      give_up_reading(*job);
      continue;
    }
    reading_count += int32_t(job->read_stored() != nullptr);
    has_others |= !job->terms.is_idle;
    if (job->stage == ScheduledJob::Stage::waiting) queue_.push_back(job.get());
  }
  const auto tokens_of = [](const ScheduledJob& job) {
    return job.has_started ? -1 : job.client->computed_tokens;
  };
  std::stable_sort(queue_.begin(), queue_.end(), [&](const ScheduledJob* a, const ScheduledJob* b) {
    if (a->terms.is_idle != b->terms.is_idle) return b->terms.is_idle;
    if (a->terms.priority != b->terms.priority) return a->terms.priority > b->terms.priority;
    return tokens_of(*a) < tokens_of(*b);
  });
  const int32_t running_before = running_count;
  // What those who are held up already read from the store comes in nonetheless.
  for (ScheduledJob* job : queue_) {
    if (job->terms.is_idle && has_others) {
      give_up_reading(*job);
      continue;
    }
    if (is_held_up(*job) && job->read_stored() == nullptr) continue;
    if (job->planned_in != memory_epoch_) plan(*job);
    if (waits_for_prefix(*job)) continue;
    const Stored stored = look_in_store(*job);
    waits_for_disk_ |= stored == Stored::searching || stored == Stored::reading;
    if (stored == Stored::searching || stored == Stored::reading) continue;
    if (is_held_up(*job)) continue;
    const bool is_slow = !job->has_started && job->job->starts_slowly();
    if (is_slow && has_slow_start) continue;
    const size_t wanted_bytes = job->wanted_bytes + engine_->new_plan_bytes(job->job->variant());
    if (!make_room(*job, wanted_bytes, running_count, reading_count)) {
      hold_up(*job);
      continue;
    }
    if (stored == Stored::found) {
      read_stored(*job);
      reading_count += int32_t(job->read_stored() != nullptr);
      continue;
    }
    has_slow_start |= is_slow;
    if (!try_start(*job)) continue;
    // What it goes on from could be evicted until it did.
    if (job->lane() != nullptr && !make_room(*job, 0, running_count, reading_count)) {
      const int64_t missing = -spare_bytes(*job);
      put_back(*job);
      job->wanted_bytes = size_t(spare_bytes(*job) + missing);
      hold_up(*job);
      continue;
    }
    ++running_count;
  }
  return running_count > running_before;
}

// Who cannot begin is not overtaken by those behind, which would keep it waiting for ever; a tenant
// of whom something runs gets on, and only itself waits for the rest.
void Scheduler::hold_up(const ScheduledJob& job) {
  if (tenants_.is_alone(job)) {
    are_all_held_up_ = true;
  } else {
    held_up_.push_back(job.client);
  }
}

bool Scheduler::is_held_up(const ScheduledJob& job) const {
  return are_all_held_up_ ||
         std::find(held_up_.begin(), held_up_.end(), job.client) != held_up_.end();
}

// Somebody of the same tenant takes memory before it in this step.
bool Scheduler::follows_kin(const Share& share) const {
  if (!tenants_.has_tenants()) return false;
  return std::any_of(shares_.data(), &share,
                     [&](const Share& before) { return before.job->client == share.job->client; });
}

// Whether the other waits for what it may not take, and this job may: then nothing is kept for it.
bool Scheduler::is_stalled_beside(const ScheduledJob& job, const ScheduledJob& other) const {
  return other.client != job.client && other.stalled_in == memory_epoch_ &&
         tenants_.spares_shares(other) && tenants_.is_alone(job);
}

// Whether there is room for so many bytes more, after those that yield to this job have given up
// theirs. Where nobody runs there is, as soon as the disk holds none.
bool Scheduler::make_room(const ScheduledJob& job, size_t bytes, int32_t& running_count,
                          int32_t reading_count) {
  for (;;) {
    const bool lacks_place = !tenants_.has_place(job, running_count, options_.running_max);
    if (!lacks_place && has_room(job, bytes)) return true;
    if (running_count == 0) {
      const bool will_have_more = does_memory_come_back();
      waits_for_disk_ |= will_have_more;
      return reading_count == 0 && !will_have_more;
    }
    // A place that another tenant gives up may be kept for that tenant.
    if (!preempt_yielding(job, !tenants_.is_alone(job), lacks_place && !tenants_.is_alone(job))) {
      SequenceStore* const store = engine_->sequence_store();
      if (store != nullptr && !has_room(job, bytes)) store->hurry();
      return false;
    }
    --running_count;
  }
}

void Scheduler::plan(ScheduledJob& job) {
  set_plan(job, job.has_started ? job.lane()->resume_plan() : job.job->plan());
}

void Scheduler::set_plan(ScheduledJob& job, const memory::ResumePlan& plan) {
  job.plan = plan;
  job.wanted_bytes = plan.new_bytes;
  job.planned_in = memory_epoch_;
}

// What the store has of its prompt, and memory lacks, is brought before it begins; it then costs
// less to compute, and the bytes of what was found.
StoredPrefix::Stage Scheduler::look_in_store(ScheduledJob& job) {
  Lane* const lane = job.lane();
  if (lane == nullptr) return Stored::ended;
  StoredPrefix* const stored = job.has_started
                                   ? lane->look_up_again()
                                   : lane->look_up(job.job->prompt(), job.job->message_starts());
  if (stored == nullptr) return Stored::ended;
  const Stored before = stored->stage();
  const Stored after = stored->advance();
  if (after != before) ++memory_epoch_;
  if (after == Stored::found) {
    set_plan(job, lane->plan_stored(*stored));
  } else if (after == Stored::ended && before != Stored::ended) {
    stats_.stored_prefixes += int64_t(stored->has_brought());
    plan(job);
  }
  return after;
}

// Where there is no room after all, it is computed.
void Scheduler::read_stored(ScheduledJob& job) {
  job.lane()->read_found(!tenants_.is_alone(job));
  ++memory_epoch_;
}

// Its blocks are back when the reading thread has left them, which a step that lacks memory waits
// for. It looks in the store again later.
bool Scheduler::give_up_reading(ScheduledJob& job) {
  if (job.read_stored() == nullptr) return false;
  job.lane()->forget_stored();
  ++stats_.preemptions;
  ++memory_epoch_;
  return true;
}

bool Scheduler::try_start(ScheduledJob& job) {
  Status started = job.has_started ? job.lane()->resume() : job.job->start();
  job.has_started = true;
  if (!started) {
    end(job, std::move(started));
    return false;
  }
  job.stage = ScheduledJob::Stage::running;
  trace_phase(job, Phase::reading);
  return true;
}

// What another job has computed of the prompt, or is about to, is not computed again.
bool Scheduler::waits_for_prefix(ScheduledJob& job) {
  Lane* const lane = job.lane();
  const bool may_wait = lane != nullptr && lane->reuses_prefixes() && !job.has_started;
  if (!may_wait) return false;
  const std::span<const Token> prompt = job.job->prompt();
  ScheduledJob* best = nullptr;
  int32_t best_shared = job.plan.resume + options_.shared_tokens_min - 1;
  for (const auto& other : jobs_) {
    if (!other->is_running() || other->lane() == nullptr || other->job->is_blocked()) continue;
    const int32_t shared = shared_prefix(*other, job, prompt);
    if (shared <= best_shared) continue;
    best = other.get();
    best_shared = shared;
  }
  if (best == nullptr) return false;
  Lane& source = *best->lane();
  const bool is_known = job.source == best->id && job.source_position == best_shared;
  if (!is_known) {
    job.source = best->id;
    job.source_position = best_shared;
    source.expect_branch(best_shared);
  }
  if (source.sequence().length() < best_shared) {
    stats_.shared_waits += int64_t(!is_known);
    best->lent_priority = std::max(best->lent_priority, job.terms.priority);
    return true;
  }
  if (job.has_source_published && is_known) return false;
  job.has_source_published = true;
  source.publish();
  ++memory_epoch_;
  plan(job);
  return false;
}

// How many of the prompt's tokens the running job computes for both. Nobody waits for an idle job.
int32_t Scheduler::shared_prefix(const ScheduledJob& running, const ScheduledJob& waiting,
                                 std::span<const Token> prompt) const {
  const Lane& source = *running.lane();
  if (source.is_preempted() || source.sequence().variant() != waiting.job->variant()) return 0;
  int32_t shared = source.planned_prefix(prompt);
  if (running.terms.is_idle) shared = std::min(shared, source.sequence().length());
  // The logits at the prompt's end are there only where the other prompt ends as well.
  const bool ends_too = source.prompt_end() == shared;
  return shared == int32_t(prompt.size()) && !ends_too ? shared - 1 : shared;
}

// Bytes that the running jobs' prompts and next tokens still take.
size_t Scheduler::promised_bytes(const ScheduledJob& beside) const {
  size_t bytes = 0;
  for (const auto& job : jobs_) {
    if (is_stalled_beside(beside, *job)) continue;
    if (job->is_running() && job->lane() != nullptr) bytes += job->lane()->demand().new_bytes;
    const StoredPrefix* const stored = job->read_stored();
    if (stored != nullptr) bytes += job->lane()->plan_stored(*stored).new_bytes;
  }
  return bytes;
}

// What can go for a job that begins: of what the cache has, and plans that nobody uses.
size_t Scheduler::evictable_bytes(const ScheduledJob& job) const {
  const memory::PrefixCache& cache = engine_->cache();
  const size_t of_cache =
      tenants_.is_alone(job) ? cache.evictable_bytes() : cache.evictable_bytes_for(job.tenant());
  return of_cache + engine_->idle_plan_bytes();
}

// For so many bytes beside those that are promised.
bool Scheduler::has_room(const ScheduledJob& job, size_t bytes) const {
  const memory::Usage usage = engine_->memory().usage();
  const size_t wanted = bytes + promised_bytes(job);
  const size_t free_bytes = usage.budget_bytes - usage.used_bytes();
  return wanted <= free_bytes || wanted <= free_bytes + evictable_bytes(job);
}

// What is free or can be evicted, and is not promised; negative if more is promised.
int64_t Scheduler::spare_bytes(const ScheduledJob& job) const {
  const memory::Usage usage = engine_->memory().usage();
  const size_t free_bytes = usage.budget_bytes - usage.used_bytes();
  return int64_t(free_bytes + evictable_bytes(job)) - int64_t(promised_bytes(job));
}

// Of the rows that answers could have, those that stay for prompts: these take none from an answer
// that is more urgent. REQUIRES: the most urgent answers come first.
int32_t Scheduler::rows_beside_answers(int32_t free_rows) const {
  if (queue_.empty()) return 0;
  const auto urgent = std::ranges::max_element(queue_, {}, &ScheduledJob::step_priority);
  const auto may_wait = [&](const ScheduledJob* answer) {
    return answer->terms.priority <= (*urgent)->step_priority();
  };
  const auto count =
      std::ranges::count_if(answering_.begin(), answering_.begin() + free_rows, may_wait);
  const int32_t most =
      free_rows == 1 ? int32_t(stats_.steps % 2) : std::min(kPromptRowsMin, free_rows / 2);
  return std::min(most, int32_t(count));
}

// Each answer has a row in every step. Where a step has fewer rows, those go on that have waited
// longest, and prompts are read beside them, or in turn where there is one row: else an answer that
// began later would wait for the end of one that began before.
int32_t Scheduler::choose_answers(int32_t free_rows) {
  if (int32_t(answering_.size()) >= free_rows) {
    std::ranges::stable_sort(answering_, [](const ScheduledJob* a, const ScheduledJob* b) {
      if (a->terms.priority != b->terms.priority) return a->terms.priority > b->terms.priority;
      return a->turn < b->turn;
    });
    answering_.resize(size_t(free_rows - rows_beside_answers(free_rows)));
  }
  for (ScheduledJob* job : answering_) {
    job->turn = ++turn_count_;
    shares_.push_back({.job = job, .row_count = 1, .is_prompt = false});
    trace_phase(*job, Phase::writing);
  }
  return int32_t(answering_.size());
}

// Rows of prompts fill up what those of answers leave, by the clients' turns.
void Scheduler::choose_rows() {
  shares_.clear();
  queue_.clear();
  answering_.clear();
  decode_rows_ = prompt_rows_ = 0;
  int32_t free_rows = engine_->runner().row_count_max();
  bool has_stalled = false;
  for (const auto& job : jobs_) {
    bool may_step = job->is_running() && job->lane() != nullptr && job->lane()->wants_rows() &&
                    !job->job->is_blocked();
    // Memory becomes free without the scheduler, too; and somebody who has some may have become one
    // that nobody waits for.
    if (may_step && job->stalled_in == memory_epoch_) {
      may_step = has_room(*job, 0) || preempt_yielding(*job, tenants_.spares_shares(*job));
      has_stalled |= !may_step;
      if (may_step) job->stalled_in = -1;
    }
    // Seniors come first: idle jobs last.
    const bool has_others = !answering_.empty() || !queue_.empty();
    if (!may_step || (job->terms.is_idle && has_others)) continue;
    (job->lane()->is_reading() ? queue_ : answering_).push_back(job.get());
  }
  decode_rows_ = choose_answers(free_rows);
  free_rows -= decode_rows_;
  std::stable_sort(queue_.begin(), queue_.end(), [](const ScheduledJob* a, const ScheduledJob* b) {
    if (a->step_priority() != b->step_priority()) return a->step_priority() > b->step_priority();
    return a->client->computed_tokens < b->client->computed_tokens;
  });
  const bool is_idle = !queue_.empty() && queue_.front()->terms.is_idle;
  const bool is_quiet = decode_rows_ == 0 && !is_idle;
  const double seconds = is_quiet ? options_.quiet_step_seconds : options_.step_seconds;
  const int32_t least = std::min(kPromptRowsMin, free_rows);
  // Idle work has to end soon when other work comes, even the first of it.
  const int32_t most = is_idle && step_time_.prompt_row_seconds() == 0 ? least : free_rows;
  int32_t rows = step_time_.prompt_rows(decode_rows_, seconds, least, most);
  for (ScheduledJob* job : queue_) {
    if (rows == 0) break;
    const int32_t taken = std::min(rows, job->lane()->wanted_rows());
    shares_.push_back({.job = job, .row_count = taken, .is_prompt = true});
    rows -= taken;
    prompt_rows_ += taken;
  }
  // What others than these gave up may have gone to a share: they are tried again.
  if (tenants_.has_tenants() && shares_.empty() && has_stalled) ++memory_epoch_;
  // Seniors are computed first, where memory is short.
  std::sort(shares_.begin(), shares_.end(),
            [this](const Share& a, const Share& b) { return goes_first(*a.job, *b.job); });
  choose_drafts();
}

// Beside rows of prompts none: a step with these computes as much as it can anyway.
void Scheduler::choose_drafts() {
  draft_rows_.begin(engine_->runner().row_count_max());
  if (prompt_rows_ > 0) return;
  for (const Share& share : shares_) {
    draft_rows_.add(share.job->job->drafted(), share.job->lane()->sequence().length());
  }
  draft_rows_.choose();
  for (size_t i = 0; i < shares_.size(); ++i) shares_[i].row_count = draft_rows_.rows(i);
}

int32_t Scheduler::take_outputs(ScheduledJob& job, const StepOutputs& outputs) {
  if (!job.lane()->has_drafted()) {
    DraftedAnswer* const answer = job.lane()->is_reading() ? nullptr : job.job->drafted();
    if (answer != nullptr) answer->see(outputs);
    return job.lane()->take(outputs);
  }
  const int32_t accepted = job.job->drafted()->take(outputs);
  ++stats_.drafts;
  stats_.accepted_drafts += accepted - 1;
  return accepted;
}

// Computes the shares, as far as there is memory.
void Scheduler::compute() {
  computed_count_ = 0;
  while (!shares_.empty()) {
    items_.clear();
    for (const Share& share : shares_) {
      items_.push_back(share.job->lane()->next(share.row_count));
      items_.back().spares_shares = follows_kin(share) || tenants_.spares_shares(*share.job);
      items_.back().others_wait = jobs_.size() > shares_.size();
      items_.back().is_tried_again = true;
    }
    const auto begin = Clock::now();
    const auto take = [this](size_t item, const StepOutputs& outputs) {
      return take_outputs(*shares_[item].job, outputs);
    };
    const auto choose = [this](std::span<const size_t> items) { choose_tokens(items); };
    const auto is_unwanted = [this] {
      return std::ranges::all_of(
          shares_, [this](const Share& share) { return is_unwanted_(share.job->id); });
    };
    Result<StepReport> stepped =
        engine_->step(items_, take, choose, is_unwanted_ ? StepGivenUp(is_unwanted) : std::nullopt);
    if (stepped) {
      computed_count_ = stepped->item_count;
      count_step(*stepped, std::chrono::duration<double>(Clock::now() - begin).count());
      return;
    }
    // It was the first one's, or everybody's: nothing is computed.
    draft_rows_.forget();
    if (stepped.error().code == ErrorCode::cancelled) return;
    ScheduledJob& first = *shares_.front().job;
    const bool is_full = stepped.error().code == ErrorCode::memory_full;
    if (is_full &&
        (preempt_yielding(first, tenants_.spares_shares(first)) || preempt_junior(first))) {
      continue;
    }
    if (is_full && others_have_memory(first)) {
      preempt(first);
      continue;
    }
    if (is_full && does_memory_come_back()) {
      waits_for_disk_ = true;
      shares_.erase(shares_.begin());
      continue;
    }
    if (is_full && forget_cached(first)) continue;
    Status borne = first.job->take_step(std::move(stepped).error());
    if (!borne || first.job->is_done()) end(first, std::move(borne));
    shares_.erase(shares_.begin());
  }
}

void Scheduler::count_step(const StepReport& report, double seconds) {
  ++stats_.steps;
  stats_.replayed_rows += report.replayed_rows;
  const bool is_whole = report.item_count == shares_.size();
  const bool is_plain = report.replayed_rows == 0 && draft_rows_.draft_count() == 0;
  if (is_whole && is_plain) step_time_.learn(decode_rows_, prompt_rows_, seconds);
  if (is_whole) draft_rows_.learn(seconds, report.replayed_rows);
  const double replayed = double(report.replayed_rows) / double(report.item_count);
  for (size_t item = 0; item < report.item_count; ++item) {
    ScheduledJob& job = *shares_[item].job;
    const int32_t rows = shares_[item].row_count;
    job.client->computed_tokens += rows + kReplayedRow * replayed;
    int64_t& count = job.terms.is_idle         ? stats_.idle_rows
                     : shares_[item].is_prompt ? stats_.prompt_rows
                                               : stats_.decode_rows;
    const int32_t draft_rows = shares_[item].is_prompt ? 0 : rows - 1;
    count += rows - draft_rows;
    stats_.draft_rows += draft_rows;
  }
  if (is_whole) return;
  // Memory is short. The youngest job gives up its own; or waits, if that is where the step ended.
  ScheduledJob& missed = *shares_[report.item_count].job;
  if (preempt_yielding(missed, tenants_.spares_shares(missed)) || preempt_junior(missed)) return;
  missed.stalled_in = memory_epoch_;
}

// The youngest job that has memory which this one can use, and is younger, gives it up; whether
// there is one.
bool Scheduler::preempt_junior(const ScheduledJob& than) {
  const bool spares = tenants_.spares_shares(than);
  for (size_t index = jobs_.size(); index-- > 0;) {
    ScheduledJob& job = *jobs_[index];
    if (&job == &than) return false;
    if (!job.has_memory() && job.read_stored() == nullptr) continue;
    if (spares && !tenants_.may_use(than, job)) continue;
    if (give_up_reading(job)) return true;
    if (!job.has_memory()) continue;
    preempt(job);
    return true;
  }
  return false;
}

// The youngest job that nobody receives anything from, or that is idle where this one is not, gives
// up its place and its memory; whether there is one. An idle job without a lane cannot go on later.
bool Scheduler::preempt_yielding(const ScheduledJob& to, bool spares, bool only_kin) {
  for (size_t index = jobs_.size(); index-- > 0;) {
    ScheduledJob& job = *jobs_[index];
    if (&job == &to || !job.is_running()) continue;
    const bool is_idle = job.terms.is_idle && !to.terms.is_idle;
    if (job.lane() == nullptr) {
      if (!is_idle) continue;
      end(job, fail(ErrorCode::memory_full, "others need the memory"));
      return true;
    }
    if (!job.job->is_blocked() && !is_idle) continue;
    if (only_kin && !is_idle && job.client != to.client) continue;
    if (spares && !is_idle && !tenants_.may_use(to, job)) continue;
    preempt(job);
    return true;
  }
  return false;
}

bool Scheduler::others_have_memory(const ScheduledJob& than) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& job) {
    return job.get() != &than && (job->has_memory() || job->read_stored() != nullptr);
  });
}

// A page that an entry of the cache shares has to be copied before it can be written: without the
// entry there may be room; and pins must not make a request fail. Whether there was one of them.
bool Scheduler::forget_cached(const ScheduledJob& job) {
  const size_t before = engine_->cache().entry_count();
  const bool had_pins = engine_->cache().pinned_bytes() > 0;
  engine_->cache().unpin_all();
  engine_->cache().clear(job.tenant());
  return had_pins || engine_->cache().entry_count() < before;
}

void Scheduler::preempt(ScheduledJob& job) {
  std::erase_if(shares_, [&](const Share& share) { return share.job == &job; });
  put_back(job);
  ++stats_.preemptions;
  ++memory_epoch_;
}

void Scheduler::put_back(ScheduledJob& job) {
  job.lane()->preempt();
  job.stage = ScheduledJob::Stage::waiting;
  trace_phase(job, Phase::queued);
}

// The next tokens of all rows, side by side where that is worth it.
void Scheduler::choose_tokens(std::span<const size_t> items) {
  choosing_.clear();
  for (const size_t item : items) {
    ScheduledJob* const job = shares_[item].job;
    if (job->lane()->wants_rows()) continue;
    job->job->chooses_alone() ? job->job->choose() : choosing_.push_back(job);
  }
  if (choosing_.size() < 2 || engine_->size().vocabulary_count < kVocabularyToShare) {
    for (ScheduledJob* job : choosing_) job->job->choose();
    return;
  }
  TaskCounter counter;
  engine_->threads().run_skipping_busy_workers([&](int) {
    for (;;) {
      const size_t index = size_t(counter.claim(1));
      if (index >= choosing_.size()) return;
      choosing_[index]->job->choose();
    }
  });
}

bool Scheduler::settle() {
  for (size_t index = 0; index < computed_count_; ++index) {
    ScheduledJob& job = *shares_[index].job;
    Status settled = job.lane()->settle();
    if (!settled) end(job, std::move(settled));
  }
  const bool is_busy = std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
    return !job->has_ended && !job->terms.is_idle && !job->job->is_blocked();
  });
  bool has_gone_on = false;
  for (const auto& job : jobs_) {
    if (!job->is_running()) continue;
    // The steps that it makes itself would come between those of others.
    const bool waits = is_busy && job->terms.is_idle && job->lane() == nullptr;
    if (!waits) has_gone_on |= go_on(*job);
  }
  return has_gone_on;
}

// Until its lane wants rows again, or it is done.
bool Scheduler::go_on(ScheduledJob& job) {
  const bool waits = job.job->is_blocked() || (job.lane() != nullptr && job.lane()->wants_rows());
  if (waits && !job.job->is_done()) return false;
  const int64_t tokens_before = job.job->own_tokens();
  Status advanced = job.job->is_done() ? Status(Ok{}) : job.job->advance();
  const int64_t own_tokens = job.job->own_tokens() - tokens_before;
  job.client->computed_tokens += double(own_tokens);
  (job.terms.is_idle ? stats_.idle_rows : stats_.own_tokens) += own_tokens;
  if (!advanced || job.job->is_done()) end(job, std::move(advanced));
  return true;
}

void Scheduler::end(ScheduledJob& job, Status status) {
  if (job.has_ended) return;
  job.has_ended = true;
  trace_phase(job, Phase::none);
  ++memory_epoch_;
  --job.client->job_count;
  job.job->end(std::move(status));
  job.job.reset();
}

// A request is queued, reads its prompt and writes its answer; while it has given up its memory it
// is queued again.
void Scheduler::trace_begin(ScheduledJob& job) {
  Trace* const trace = engine_->options().trace;
  if (trace == nullptr || job.terms.is_idle) return;
  job.task = trace->new_task();
  trace->begin(job.task, "request", {}, job.terms.request_id, job.terms.asked_at);
  trace->begin(job.task, "queued", {}, {}, job.terms.asked_at);
  job.phase = Phase::queued;
}

void Scheduler::trace_phase(ScheduledJob& job, Phase phase) {
  constexpr std::string_view kPhaseNames[] = {"request", "queued", "reading", "writing"};
  if (job.phase == Phase::none || job.phase == phase) return;
  Trace& trace = *engine_->options().trace;
  trace.end(job.task, kPhaseNames[size_t(job.phase)]);
  job.phase = phase;
  if (phase == Phase::none) {
    trace.end(job.task, kPhaseNames[0]);
    return;
  }
  const Trace::Figure prompt = {"prompt_tokens", int64_t(job.job->prompt().size())};
  const Trace::Figure resumed = {"reused_tokens", job.plan.resume};
  const Trace::Figure figures[] = {prompt, resumed};
  trace.begin(job.task, kPhaseNames[size_t(phase)],
              phase == Phase::reading ? std::span(figures) : std::span<const Trace::Figure>());
}

void Scheduler::forget_ended() {
  std::erase_if(jobs_, [](const auto& job) { return job->has_ended; });
}

std::vector<Scheduler::Running> Scheduler::running() const {
  std::vector<Running> running;
  for (const auto& job : jobs_) {
    if (!job->has_memory()) continue;
    running.push_back({.id = job->id,
                       .is_reading = job->lane()->is_reading(),
                       .sequence = &job->lane()->sequence()});
  }
  return running;
}

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = stats_;
  for (const auto& job : jobs_) {
    if (!job->has_ended)
      ++(job->stage == ScheduledJob::Stage::running ? stats.running : stats.waiting);
  }
  return stats;
}

}  // namespace cairn
