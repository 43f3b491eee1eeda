// The engine's thread: mail, a step, mail again.
#include "session/service.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "base/threads/start_thread.h"
#include "engine/schedule/sequence_audit.h"
#include "session/score_job.h"

namespace cairn::session {

namespace {

// Where all jobs are blocked; deadlines are looked at so often.
constexpr std::chrono::milliseconds kLookAgain(20);

// Notes that wait do not wake the engine's thread before they are so many.
constexpr size_t kNotesMax = 64;

}  // namespace

Result<std::unique_ptr<Service>> Service::start(Engine* engine, const SchedulerOptions& options,
                                                std::shared_ptr<Turns> turns) {
  std::unique_ptr<Service> service(new Service(engine, options, std::move(turns)));
  CAIRN_TRY(service->thread_,
            start_thread("the engine's thread", [made = service.get()] { made->run(); }));
  return service;
}

Service::Service(Engine* engine, const SchedulerOptions& options, std::shared_ptr<Turns> turns)
    : engine_(engine),
      running_max_(options.running_max),
      turns_(std::move(turns)),
      pins_(engine),
      drafting_(engine),
      scheduler_(engine, options),
      reporter_(engine, &scheduler_) {
  scheduler_.ask_meanwhile([this](JobId id) {
    if (!has_cancelled_) return false;
    const std::lock_guard lock(mutex_);
    return std::ranges::find(cancelled_, id) != cancelled_.end();
  });
}

Service::~Service() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    mail_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (const auto& weak : watches_) {
    if (const std::shared_ptr<MemoryWatch> watch = weak.lock()) watch->end();
  }
}

JobId Service::submit(std::unique_ptr<Job> job, JobTerms terms) {
  const std::lock_guard lock(mutex_);
  const JobId id{job_count_++};
  submissions_.push_back({id, std::move(job), std::move(terms)});
  mail_.notify_all();
  return id;
}

Service::Ticket Service::answer(AnswerOrder order, JobTerms terms) {
  auto stream = std::make_shared<AnswerStream>([this] { wake(); });
  auto job = std::make_unique<AnswerJob>(engine_, std::move(order), stream, &pins_, &drafting_);
  const JobId id = submit(std::move(job), std::move(terms));
  return {id, std::move(stream)};
}

std::future<Result<std::vector<Embedding>>> Service::embed(std::vector<std::vector<Token>> texts,
                                                           const EmbedderOptions& options,
                                                           JobTerms terms) {
  const auto promise = std::make_shared<std::promise<Result<std::vector<Embedding>>>>();
  embed(std::move(texts), options, std::move(terms),
        [promise](Result<std::vector<Embedding>> made) { promise->set_value(std::move(made)); });
  return promise->get_future();
}

JobId Service::embed(std::vector<std::vector<Token>> texts, const EmbedderOptions& options,
                     JobTerms terms, EmbeddingJob::Done done) {
  auto job = std::make_unique<EmbeddingJob>(engine_, options, std::move(texts), std::move(done));
  return submit(std::move(job), std::move(terms));
}

std::future<Result<PromptProbabilities>> Service::score(std::vector<Token> text, JobTerms terms) {
  const auto promise = std::make_shared<std::promise<Result<PromptProbabilities>>>();
  const auto done = [promise](Result<PromptProbabilities> made) {
    promise->set_value(std::move(made));
  };
  submit(std::make_unique<ScoreJob>(engine_, std::move(text), done), std::move(terms));
  return promise->get_future();
}

// What changes nothing wakes nobody.
void Service::set_tenants(std::shared_ptr<const TenantShares> tenants) {
  const std::lock_guard lock(mutex_);
  if (tenants == tenants_) return;
  tenants_ = std::move(tenants);
  has_new_tenants_ = true;
  const TenantShares shares = tenants_ == nullptr ? TenantShares{} : *tenants_;
  grammars_.set_shares(shares.tenants, shares.part);
}

void Service::cancel(JobId id) {
  const std::lock_guard lock(mutex_);
  cancelled_.push_back(id);
  has_cancelled_ = true;
  mail_.notify_all();
}

void Service::ask(const std::function<void(Engine&)>& question) {
  CHECK(std::this_thread::get_id() != thread_.get_id());
  std::unique_lock lock(mutex_);
  questions_.push_back(&question);
  const int64_t number = ++asked_count_;
  mail_.notify_all();
  answered_.wait(lock, [&] { return answered_count_ >= number; });
}

void Service::post(std::function<void(Engine&)> note) {
  const std::lock_guard lock(mutex_);
  notes_.push_back(std::move(note));
  if (notes_.size() < kNotesMax) return;
  is_woken_ = true;
  mail_.notify_all();
}

SchedulerStats Service::stats() {
  SchedulerStats stats;
  ask([&](Engine&) { stats = scheduler_.stats(); });
  return stats;
}

MemoryReport Service::memory_report(std::optional<uint64_t> tenant) {
  MemoryReport report;
  ask([&](Engine&) { report = reporter_.make(tenant); });
  return report;
}

std::shared_ptr<MemoryWatch> Service::watch_memory(std::optional<uint64_t> tenant) {
  auto watch = std::make_shared<MemoryWatch>(tenant);
  const std::lock_guard lock(mutex_);
  if (is_watched() && watches_.size() == kWatchesMax) return nullptr;
  watches_.push_back(watch);
  is_woken_ = true;
  mail_.notify_all();
  return watch;
}

void Service::lock() {
  std::unique_lock lock(mutex_);
  answered_.wait(lock, [this] { return !is_wanted_; });
  is_wanted_ = true;
  mail_.notify_all();
  answered_.wait(lock, [this] { return is_lent_; });
}

void Service::unlock() {
  const std::lock_guard lock(mutex_);
  is_wanted_ = is_lent_ = false;
  mail_.notify_all();
  answered_.notify_all();
}

void Service::wake() {
  const std::lock_guard lock(mutex_);
  is_woken_ = true;
  mail_.notify_all();
}

void Service::run() {
  bool has_done_something = true;
  for (;;) {
    auto recall = Drafting::Recall::done;
    if (!scheduler_.has_work()) {
      recall = drafting_.recall();
      audit();
    }
    {
      std::unique_lock lock(mutex_);
      const auto has_mail = [this] {
        return is_stopping_ || is_woken_ || is_wanted_ || !submissions_.empty() ||
               !cancelled_.empty() || !questions_.empty();
      };
      if (!scheduler_.has_work() && recall != Drafting::Recall::done) {
        if (recall == Drafting::Recall::later) mail_.wait_for(lock, kLookAgain, has_mail);
      } else if (!scheduler_.has_work() && has_changed_ && is_watched()) {
        mail_.wait_until(lock, next_report_, has_mail);
      } else if (!scheduler_.has_work()) {
        mail_.wait(lock, has_mail);
      } else if (!has_done_something) {
        mail_.wait_for(lock, kLookAgain, has_mail);
      }
    }
    if (!take_mail()) return;
    lend();
    has_done_something = scheduler_.has_work() && step();
    has_changed_ = has_changed_ || has_done_something;
    tell_watches();
  }
}

bool Service::step() {
  pins_.release_old();
  if (turns_ == nullptr) return scheduler_.step();
  const std::lock_guard turn(*turns_);
  return scheduler_.step();
}

// REQUIRES: the mutex is held.
bool Service::is_watched() {
  std::erase_if(watches_, [](const auto& watch) { return watch.expired(); });
  return !watches_.empty();
}

void Service::tell_watches() {
  const auto now = std::chrono::steady_clock::now();
  if (!has_changed_ || now < next_report_) return;
  std::vector<std::shared_ptr<MemoryWatch>> watches;
  {
    const std::lock_guard lock(mutex_);
    if (!is_watched()) return;
    for (const auto& watch : watches_) watches.push_back(watch.lock());
  }
  // What is on the disk changes without a step.
  SequenceStore* const store = engine_->sequence_store();
  const bool is_writing = store != nullptr && store->holds_memory();
  std::map<std::optional<uint64_t>, std::shared_ptr<const MemoryReport>> reports;
  for (const auto& watch : watches) {
    if (watch == nullptr) continue;
    std::shared_ptr<const MemoryReport>& report = reports[watch->tenant()];
    if (report == nullptr) {
      report = std::make_shared<const MemoryReport>(reporter_.make(watch->tenant()));
    }
    watch->add(report);
  }
  has_changed_ = is_writing;
  next_report_ = now + kWatchInterval;
}

// Where there is nothing to do, what was loaded from the store may be looked at again.
void Service::audit() {
  std::unique_ptr<Job> job = SequenceAudit::next(engine_);
  if (job == nullptr) return;
  JobId id{0};
  {
    const std::lock_guard lock(mutex_);
    id = JobId{job_count_++};
  }
  scheduler_.submit(id, std::move(job), {.is_idle = true});
}

// What was cancelled has ended by now.
void Service::lend() {
  std::unique_lock lock(mutex_);
  if (!is_wanted_) return;
  is_lent_ = true;
  answered_.notify_all();
  mail_.wait(lock, [this] { return !is_lent_; });
}

// False where the service stops: questions are answered, submissions are not taken any more.
bool Service::take_mail() {
  std::vector<Submission> submissions;
  std::vector<JobId> cancelled;
  std::vector<const std::function<void(Engine&)>*> questions;
  std::vector<std::function<void(Engine&)>> notes;
  std::optional<std::shared_ptr<const TenantShares>> tenants;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_new_tenants_, false)) tenants = tenants_;
    submissions.swap(submissions_);
    cancelled.swap(cancelled_);
    has_cancelled_ = false;
    questions.swap(questions_);
    notes.swap(notes_);
    // What came may have changed memory, or be a new watch.
    has_changed_ = has_changed_ || is_woken_ || !submissions.empty() || !cancelled.empty() ||
                   !questions.empty() || !notes.empty();
    is_woken_ = false;
  }
  for (const auto& note : notes) note(*engine_);
  if (tenants) scheduler_.set_tenants(*tenants == nullptr ? TenantShares{} : **tenants);
  for (Submission& each : submissions) {
    scheduler_.submit(each.id, std::move(each.job), std::move(each.terms));
  }
  for (const JobId id : cancelled) {
    scheduler_.cancel(id, fail(ErrorCode::cancelled, "the request was cancelled"));
  }
  for (const auto* question : questions) (*question)(*engine_);
  const std::lock_guard lock(mutex_);
  answered_count_ += int64_t(questions.size());
  answered_.notify_all();
  return !is_stopping_;
}

}  // namespace cairn::session
