// One step: who is admitted, which rows, what becomes of them.
#include "engine/scheduler.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/trace/trace.h"

namespace cairn {

namespace {

using Stored = StoredPrefix::Stage;

// Fewer rows of a prompt are not worth reading the weights for.
constexpr int32_t kPromptRowsMin = 16;
// Of clients without a job, as many are remembered.
constexpr size_t kIdleClientsMax = 256;
// A replayed row reads no weights: it counts for a client as so much of a computed one.
constexpr double kReplayedRow = 0.1;
// So long a step without anything else to do waits for the disk, unless that is done before.
constexpr std::chrono::milliseconds kDiskWait(5);
// Of smaller vocabularies a token is chosen sooner than threads are woken.
constexpr int32_t kVocabularyToShare = 16384;
// However many tenants there are, so many jobs of each may wait.
constexpr int32_t kWaitingOfTenant = 4;

}  // namespace

struct Scheduler::Scheduled {
  JobId id;
  JobTerms terms;
  std::unique_ptr<Job> job;
  Client* client = nullptr;
  Stage stage = Stage::waiting;
  bool has_started = false;
  bool has_ended = false;  // Then there is no job any more.
  // Memory has no room for its next rows, until the epoch changes.
  int64_t stalled_in = -1;
  // Another job has, or is computing, the beginning of its prompt up to this position.
  JobId source{-1};
  int32_t source_position = 0;
  bool has_source_published = false;
  int32_t lent_priority = std::numeric_limits<int32_t>::min();
  // Of waiting jobs: what starting costs, as it was found in an epoch of the memory; and the bytes
  // that have to be free or evictable for it.
  memory::ResumePlan plan;
  size_t wanted_bytes = 0;
  int64_t planned_in = -1;
  // In the trace, if there is one.
  int64_t task = 0;
  Phase phase = Phase::none;

  Lane* lane() const { return job->lane(); }
  uint64_t tenant() const { return job->variant().tenant; }
  bool is_running() const { return stage == Stage::running && !has_ended; }
  bool has_memory() const {
    return is_running() && lane() != nullptr && lane()->sequence().length() > 0;
  }
  // While blocks that it has taken are filled from the store.
  const StoredPrefix* read_stored() const {
    return stage == Stage::waiting && !has_ended && lane() != nullptr ? lane()->read_stored()
                                                                      : nullptr;
  }
  // While jobs of a higher priority wait for its prefix, it is as urgent as they are.
  int32_t step_priority() const { return std::max(terms.priority, lent_priority); }
};

Scheduler::Scheduler(Engine* engine, const SchedulerOptions& options)
    : engine_(engine), options_(options) {
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
  const size_t count = shares.tenants.size();
  tenant_count_ = count < 2 ? 0 : int32_t(count);
  const double budget = double(engine_->memory().options().budget_bytes);
  const double share_bytes = count < 2 ? 0 : budget * shares.part / double(count);
  engine_->cache().set_shares(shares.tenants, size_t(share_bytes));
  if (SequenceStore* const store = engine_->sequence_store()) {
    store->set_shares(shares.tenants, shares.part);
  }
  ++memory_epoch_;
}

// Where there are tenants, a client's part of the queue is kept for it, whatever others ask.
Status Scheduler::check_queue(const Client& client) const {
  int32_t waiting_max = options_.waiting_max;
  if (tenant_count_ > 0) waiting_max = std::max(waiting_max / tenant_count_, kWaitingOfTenant);
  const auto waiting = std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& job) {
    const bool is_counted = tenant_count_ == 0 || job->client == &client;
    return is_counted && job->stage == Stage::waiting && !job->has_ended;
  });
  if (waiting < waiting_max) return Ok{};
  return fail(ErrorCode::no_room, "queue: expected at most {} waiting requests, found {}",
              waiting_max, waiting);
}

void Scheduler::submit(JobId id, std::unique_ptr<Job> job, JobTerms terms) {
  Client& client = client_of(terms.client);
  if (Status has_room = check_queue(client); !has_room) {
    job->end(std::move(has_room));
    return;
  }
  ++client.job_count;
  ++submit_count_;
  auto entry = std::make_unique<Scheduled>(
      Scheduled{.id = id, .terms = std::move(terms), .job = std::move(job), .client = &client});
  const auto place =
      std::upper_bound(jobs_.begin(), jobs_.end(), entry,
                       [this](const auto& a, const auto& b) { return goes_first(*a, *b); });
  trace_begin(*entry);
  jobs_.insert(place, std::move(entry));
}

// Seniority: it never changes, so that of two jobs only one can take the other's memory.
bool Scheduler::goes_first(const Scheduled& a, const Scheduled& b) const {
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

// What waits for that gives its memory back then.
bool Scheduler::is_being_written() const {
  SequenceStore* const store = engine_->sequence_store();
  return store != nullptr && store->holds_memory();
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
  for (const auto& job : jobs_) {
    if (job->has_ended) continue;
    job->lent_priority = std::numeric_limits<int32_t>::min();
    running_count += int32_t(job->stage == Stage::running);
    if (job->job->is_blocked()) {
      give_up_reading(*job);
      continue;
    }
    reading_count += int32_t(job->read_stored() != nullptr);
    has_others |= !job->terms.is_idle;
    if (job->stage == Stage::waiting) queue_.push_back(job.get());
  }
  const auto tokens_of = [this](const Scheduled& job) {
    return job.has_started ? -1 : clients_.at(job.terms.client).computed_tokens;
  };
  std::stable_sort(queue_.begin(), queue_.end(), [&](const Scheduled* a, const Scheduled* b) {
    if (a->terms.is_idle != b->terms.is_idle) return b->terms.is_idle;
    if (a->terms.priority != b->terms.priority) return a->terms.priority > b->terms.priority;
    return tokens_of(*a) < tokens_of(*b);
  });
  const int32_t running_before = running_count;
  // What those who are held up already read from the store comes in nonetheless.
  for (Scheduled* job : queue_) {
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
    if (!make_room(*job, job->wanted_bytes, running_count, reading_count)) {
      hold_up(*job);
      continue;
    }
    if (stored == Stored::found) {
      read_stored(*job);
      reading_count += int32_t(job->read_stored() != nullptr);
      continue;
    }
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
void Scheduler::hold_up(const Scheduled& job) {
  if (is_alone(job)) {
    are_all_held_up_ = true;
  } else {
    held_up_.push_back(job.client);
  }
}

bool Scheduler::is_held_up(const Scheduled& job) const {
  return are_all_held_up_ ||
         std::find(held_up_.begin(), held_up_.end(), job.client) != held_up_.end();
}

// Nothing else of its tenant runs or is read. Without tenants everybody is.
bool Scheduler::is_alone(const Scheduled& job) const {
  if (tenant_count_ == 0) return true;
  return std::none_of(jobs_.begin(), jobs_.end(), [&](const auto& other) {
    const bool is_kin = other.get() != &job && other->client == job.client && !other->has_ended;
    return is_kin && (other->is_running() || other->read_stored() != nullptr);
  });
}

// What others hold within their shares is for a job whose tenant holds nothing else: so every
// tenant gets on with one at a time.
bool Scheduler::spares_shares(const Scheduled& job) const {
  if (tenant_count_ == 0) return false;
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& other) {
    const bool is_kin = other.get() != &job && other->client == job.client && !other->has_ended;
    return is_kin && (other->has_memory() || other->read_stored() != nullptr);
  });
}

// Somebody of the same tenant takes memory before it in this step.
bool Scheduler::follows_kin(const Share& share) const {
  if (tenant_count_ == 0) return false;
  return std::any_of(shares_.data(), &share,
                     [&](const Share& before) { return before.job->client == share.job->client; });
}

// Whether what one gives up can be evicted for a job that spares shares.
bool Scheduler::may_use(const Scheduled& job, const Scheduled& given_up) const {
  return given_up.client == job.client || engine_->cache().would_give_more(given_up.tenant());
}

// Whether the other waits for what it may not take, and this job may: then nothing is kept for it.
bool Scheduler::is_stalled_beside(const Scheduled& job, const Scheduled& other) const {
  return other.client != job.client && other.stalled_in == memory_epoch_ && spares_shares(other) &&
         is_alone(job);
}

// Half of the places are kept for tenants that run nothing, one for each, so that they need not
// wait until another's answers end.
bool Scheduler::has_place(const Scheduled& job, int32_t running_count) const {
  if (is_alone(job)) return running_count < options_.running_max;
  std::set<const Client*> running;
  for (const auto& other : jobs_) {
    if (other->is_running()) running.insert(other->client);
  }
  const int32_t absent = std::max(tenant_count_ - int32_t(running.size()), 0);
  return running_count + std::min(absent, options_.running_max / 2) < options_.running_max;
}

// Whether there is room for so many bytes more, after those that yield to this job have given up
// theirs. Where nobody runs there is, as soon as the disk holds none.
bool Scheduler::make_room(const Scheduled& job, size_t bytes, int32_t& running_count,
                          int32_t reading_count) {
  for (;;) {
    const bool lacks_place = !has_place(job, running_count);
    if (!lacks_place && has_room(job, bytes)) return true;
    if (running_count == 0) {
      const bool will_have_more = is_being_written();
      waits_for_disk_ |= will_have_more;
      return reading_count == 0 && !will_have_more;
    }
    // A place that another tenant gives up may be kept for that tenant.
    if (!preempt_yielding(job, !is_alone(job), lacks_place && !is_alone(job))) {
      SequenceStore* const store = engine_->sequence_store();
      if (store != nullptr && !has_room(job, bytes)) store->hurry();
      return false;
    }
    --running_count;
  }
}

void Scheduler::plan(Scheduled& job) {
  set_plan(job, job.has_started ? job.lane()->resume_plan() : job.job->plan());
}

void Scheduler::set_plan(Scheduled& job, const memory::ResumePlan& plan) {
  job.plan = plan;
  job.wanted_bytes = plan.new_bytes;
  job.planned_in = memory_epoch_;
}

// What the store has of its prompt, and memory lacks, is brought before it begins; it then costs
// less to compute, and the bytes of what was found.
StoredPrefix::Stage Scheduler::look_in_store(Scheduled& job) {
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
void Scheduler::read_stored(Scheduled& job) {
  job.lane()->read_found(!is_alone(job));
  ++memory_epoch_;
}

// Its blocks are back when the reading thread has left them, which a step that lacks memory waits
// for. It looks in the store again later.
bool Scheduler::give_up_reading(Scheduled& job) {
  if (job.read_stored() == nullptr) return false;
  job.lane()->forget_stored();
  ++stats_.preemptions;
  ++memory_epoch_;
  return true;
}

bool Scheduler::try_start(Scheduled& job) {
  Status started = job.has_started ? job.lane()->resume() : job.job->start();
  job.has_started = true;
  if (!started) {
    end(job, std::move(started));
    return false;
  }
  job.stage = Stage::running;
  trace_phase(job, Phase::reading);
  return true;
}

// What another job has computed of the prompt, or is about to, is not computed again.
bool Scheduler::waits_for_prefix(Scheduled& job) {
  Lane* const lane = job.lane();
  const bool may_wait = lane != nullptr && lane->reuses_prefixes() && !job.has_started;
  if (!may_wait) return false;
  const std::span<const Token> prompt = job.job->prompt();
  Scheduled* best = nullptr;
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
int32_t Scheduler::shared_prefix(const Scheduled& running, const Scheduled& waiting,
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
size_t Scheduler::promised_bytes(const Scheduled& beside) const {
  size_t bytes = 0;
  for (const auto& job : jobs_) {
    if (is_stalled_beside(beside, *job)) continue;
    if (job->is_running() && job->lane() != nullptr) bytes += job->lane()->demand().new_bytes;
    const StoredPrefix* const stored = job->read_stored();
    if (stored != nullptr) bytes += job->lane()->plan_stored(*stored).new_bytes;
  }
  return bytes;
}

// Of what the cache has, that can go for a job that begins.
size_t Scheduler::evictable_bytes(const Scheduled& job) const {
  const memory::PrefixCache& cache = engine_->cache();
  return is_alone(job) ? cache.evictable_bytes() : cache.evictable_bytes_for(job.tenant());
}

// For so many bytes beside those that are promised.
bool Scheduler::has_room(const Scheduled& job, size_t bytes) const {
  const memory::Usage usage = engine_->memory().usage();
  const size_t wanted = bytes + promised_bytes(job);
  const size_t free_bytes = usage.budget_bytes - usage.used_bytes();
  return wanted <= free_bytes || wanted <= free_bytes + evictable_bytes(job);
}

// What is free or can be evicted, and is not promised; negative if more is promised.
int64_t Scheduler::spare_bytes(const Scheduled& job) const {
  const memory::Usage usage = engine_->memory().usage();
  const size_t free_bytes = usage.budget_bytes - usage.used_bytes();
  return int64_t(free_bytes + evictable_bytes(job)) - int64_t(promised_bytes(job));
}

// Rows that continue answers are in every step; those of prompts fill it up, by the clients' turns.
void Scheduler::choose_rows() {
  shares_.clear();
  queue_.clear();
  decode_rows_ = prompt_rows_ = 0;
  int32_t free_rows = engine_->runner().row_count_max();
  bool has_stalled = false;
  for (const auto& job : jobs_) {
    bool may_step = job->is_running() && job->lane() != nullptr && job->lane()->wants_rows() &&
                    !job->job->is_blocked();
    // Somebody with memory may have become one that nobody waits for.
    if (may_step && job->stalled_in == memory_epoch_) {
      may_step = preempt_yielding(*job, spares_shares(*job));
      has_stalled |= !may_step;
    }
    // Seniors come first: idle jobs last.
    const bool has_others = !shares_.empty() || !queue_.empty();
    if (!may_step || (job->terms.is_idle && has_others)) continue;
    if (job->lane()->is_reading()) {
      queue_.push_back(job.get());
    } else if (free_rows > 0) {
      shares_.push_back({.job = job.get(), .row_count = 1, .is_prompt = false});
      trace_phase(*job, Phase::writing);
      --free_rows;
      ++decode_rows_;
    }
  }
  std::stable_sort(queue_.begin(), queue_.end(), [this](const Scheduled* a, const Scheduled* b) {
    if (a->step_priority() != b->step_priority()) return a->step_priority() > b->step_priority();
    return clients_.at(a->terms.client).computed_tokens <
           clients_.at(b->terms.client).computed_tokens;
  });
  const bool is_idle = !queue_.empty() && queue_.front()->terms.is_idle;
  const bool is_quiet = decode_rows_ == 0 && !is_idle;
  const double seconds = is_quiet ? options_.quiet_step_seconds : options_.step_seconds;
  const int32_t least = std::min(kPromptRowsMin, free_rows);
  // Idle work has to end soon when other work comes, even the first of it.
  const int32_t most = is_idle && !step_time_.knows_prompts() ? least : free_rows;
  int32_t rows = step_time_.prompt_rows(decode_rows_, seconds, least, most);
  for (Scheduled* job : queue_) {
    if (rows == 0) break;
    const int32_t taken = std::min(rows, job->lane()->wanted_rows());
    shares_.push_back({.job = job, .row_count = taken, .is_prompt = true});
    rows -= taken;
    prompt_rows_ += taken;
  }
  // What others than these gave up may have gone to a share: they are tried again.
  if (tenant_count_ > 0 && shares_.empty() && has_stalled) ++memory_epoch_;
  // Seniors are computed first, where memory is short.
  std::sort(shares_.begin(), shares_.end(),
            [this](const Share& a, const Share& b) { return goes_first(*a.job, *b.job); });
}

// Computes the shares, as far as there is memory.
void Scheduler::compute() {
  computed_count_ = 0;
  while (!shares_.empty()) {
    items_.clear();
    for (const Share& share : shares_) {
      items_.push_back(share.job->lane()->next(share.row_count));
      items_.back().spares_shares = follows_kin(share) || spares_shares(*share.job);
    }
    const auto begin = Clock::now();
    const auto take = [this](size_t item, const StepOutputs& outputs) {
      return shares_[item].job->lane()->take(outputs);
    };
    const auto choose = [this](std::span<const size_t> items) { choose_tokens(items); };
    Result<StepReport> stepped = engine_->step(items_, take, choose);
    if (stepped) {
      computed_count_ = stepped->item_count;
      count_step(*stepped, std::chrono::duration<double>(Clock::now() - begin).count());
      return;
    }
    // It was the first one's: nothing is computed.
    Scheduled& first = *shares_.front().job;
    const bool is_full = stepped.error().code == ErrorCode::memory_full;
    if (is_full && (preempt_yielding(first, spares_shares(first)) || preempt_junior(first))) {
      continue;
    }
    if (is_full && others_have_memory(first)) {
      preempt(first);
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
  if (is_whole && report.replayed_rows == 0) step_time_.learn(decode_rows_, prompt_rows_, seconds);
  const double replayed = double(report.replayed_rows) / double(report.item_count);
  for (size_t item = 0; item < report.item_count; ++item) {
    Scheduled& job = *shares_[item].job;
    const int32_t rows = shares_[item].row_count;
    clients_.at(job.terms.client).computed_tokens += rows + kReplayedRow * replayed;
    int64_t& count = job.terms.is_idle         ? stats_.idle_rows
                     : shares_[item].is_prompt ? stats_.prompt_rows
                                               : stats_.decode_rows;
    count += rows;
  }
  if (is_whole) return;
  // Memory is short. The youngest job gives up its own; or waits, if that is where the step ended.
  Scheduled& missed = *shares_[report.item_count].job;
  if (preempt_yielding(missed, spares_shares(missed)) || preempt_junior(missed)) return;
  missed.stalled_in = memory_epoch_;
}

// The youngest job that has memory which this one can use, and is younger, gives it up; whether
// there is one.
bool Scheduler::preempt_junior(const Scheduled& than) {
  const bool spares = spares_shares(than);
  for (size_t index = jobs_.size(); index-- > 0;) {
    Scheduled& job = *jobs_[index];
    if (&job == &than) return false;
    if (!job.has_memory() && job.read_stored() == nullptr) continue;
    if (spares && !may_use(than, job)) continue;
    if (give_up_reading(job)) return true;
    if (!job.has_memory()) continue;
    preempt(job);
    return true;
  }
  return false;
}

// The youngest job that nobody receives anything from, or that is idle where this one is not, gives
// up its place and its memory; whether there is one. An idle job without a lane cannot go on later.
bool Scheduler::preempt_yielding(const Scheduled& to, bool spares, bool only_kin) {
  for (size_t index = jobs_.size(); index-- > 0;) {
    Scheduled& job = *jobs_[index];
    if (&job == &to || !job.is_running()) continue;
    const bool is_idle = job.terms.is_idle && !to.terms.is_idle;
    if (job.lane() == nullptr) {
      if (!is_idle) continue;
      end(job, fail(ErrorCode::memory_full, "others need the memory"));
      return true;
    }
    if (!job.job->is_blocked() && !is_idle) continue;
    if (only_kin && !is_idle && job.client != to.client) continue;
    if (spares && !is_idle && !may_use(to, job)) continue;
    preempt(job);
    return true;
  }
  return false;
}

bool Scheduler::others_have_memory(const Scheduled& than) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& job) {
    return job.get() != &than && (job->has_memory() || job->read_stored() != nullptr);
  });
}

// A page that an entry of the cache shares has to be copied before it can be written: without the
// entry there may be room; and pins must not make a request fail. Whether there was one of them.
bool Scheduler::forget_cached(const Scheduled& job) {
  const size_t before = engine_->cache().entry_count();
  const bool had_pins = engine_->cache().pinned_bytes() > 0;
  engine_->cache().unpin_all();
  engine_->cache().clear(job.tenant());
  return had_pins || engine_->cache().entry_count() < before;
}

void Scheduler::preempt(Scheduled& job) {
  std::erase_if(shares_, [&](const Share& share) { return share.job == &job; });
  put_back(job);
  ++stats_.preemptions;
  ++memory_epoch_;
}

void Scheduler::put_back(Scheduled& job) {
  job.lane()->preempt();
  job.stage = Stage::waiting;
  trace_phase(job, Phase::queued);
}

// The next tokens of all rows, side by side where that is worth it.
void Scheduler::choose_tokens(std::span<const size_t> items) {
  choosing_.clear();
  for (const size_t item : items) {
    Scheduled* const job = shares_[item].job;
    if (job->lane()->wants_rows()) continue;
    job->job->chooses_alone() ? job->job->choose() : choosing_.push_back(job);
  }
  if (choosing_.size() < 2 || engine_->size().vocabulary_count < kVocabularyToShare) {
    for (Scheduled* job : choosing_) job->job->choose();
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
    Scheduled& job = *shares_[index].job;
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
bool Scheduler::go_on(Scheduled& job) {
  const bool waits = job.job->is_blocked() || (job.lane() != nullptr && job.lane()->wants_rows());
  if (waits && !job.job->is_done()) return false;
  const int64_t tokens_before = job.job->own_tokens();
  Status advanced = job.job->is_done() ? Status(Ok{}) : job.job->advance();
  const int64_t own_tokens = job.job->own_tokens() - tokens_before;
  clients_.at(job.terms.client).computed_tokens += double(own_tokens);
  (job.terms.is_idle ? stats_.idle_rows : stats_.own_tokens) += own_tokens;
  if (!advanced || job.job->is_done()) end(job, std::move(advanced));
  return true;
}

void Scheduler::end(Scheduled& job, Status status) {
  if (job.has_ended) return;
  job.has_ended = true;
  trace_phase(job, Phase::none);
  ++memory_epoch_;
  --clients_.at(job.terms.client).job_count;
  job.job->end(std::move(status));
  job.job.reset();
}

// A request is queued, reads its prompt and writes its answer; while it has given up its memory it
// is queued again.
void Scheduler::trace_begin(Scheduled& job) {
  Trace* const trace = engine_->options().trace;
  if (trace == nullptr || job.terms.is_idle) return;
  job.task = trace->new_task();
  trace->begin(job.task, "request", {}, job.terms.request_id, job.terms.asked_at);
  trace->begin(job.task, "queued", {}, {}, job.terms.asked_at);
  job.phase = Phase::queued;
}

void Scheduler::trace_phase(Scheduled& job, Phase phase) {
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

// Who comes anew, or again, has had no fewer tokens than any of those that are here.
Scheduler::Client& Scheduler::client_of(const std::string& name) {
  double least = std::numeric_limits<double>::max();
  size_t idle_count = 0;
  auto oldest = clients_.end();
  for (auto entry = clients_.begin(); entry != clients_.end(); ++entry) {
    const Client& client = entry->second;
    if (client.job_count > 0) {
      least = std::min(least, client.computed_tokens);
      continue;
    }
    ++idle_count;
    const bool is_older = oldest == clients_.end() || client.last_use < oldest->second.last_use;
    if (is_older && entry->first != name) oldest = entry;
  }
  if (idle_count > kIdleClientsMax) clients_.erase(oldest);
  Client& client = clients_[name];
  const bool has_others = least != std::numeric_limits<double>::max();
  if (client.job_count == 0 && has_others) {
    client.computed_tokens = std::max(client.computed_tokens, least);
  }
  client.last_use = submit_count_;
  return client;
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
    if (!job->has_ended) ++(job->stage == Stage::running ? stats.running : stats.waiting);
  }
  return stats;
}

}  // namespace cairn
