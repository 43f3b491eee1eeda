// A million operations on the scheduler in seeded programs: jobs come, are cancelled, run out of
// time, are not read for a while, have prompts that begin alike, and share too little memory; in
// half of the programs their clients are tenants, with shares of it. After each operation every
// block that is held is counted from outside, and nobody waits longer than the rules allow, nor
// takes what another tenant holds within its share. The jobs choose their tokens themselves; the
// models are as small as models get, one of each kind of memory. A failure names its seed.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/machine/machine_memory.h"
#include "engine/schedule/scheduler.h"
#include "tests/memory/inspector.h"
#include "tests/models/golden_model.h"
#include "tests/sanitized.h"

namespace cairn::test::scheduler_simulation_test {
namespace {

using Tokens = std::vector<Token>;

constexpr size_t kLiveMax = 20;
constexpr int32_t kPromptMax = 48, kAnswerMax = 32;
constexpr int32_t kWaitingMax = 12;
constexpr int32_t kRowsMin = 16;  // Of a prompt, in a step that has no time to spare.
// Steps of one job that has the engine for itself; one more starts it.
constexpr int32_t kStepsOfOne = (kPromptMax + kRowsMin - 1) / kRowsMin + kAnswerMax + 1;
// Who may run waits at most as long as if all that are there were computed one after the other.
// Each time, somebody older has grown by a page.
constexpr int32_t kPreemptionsMax = int32_t(kLiveMax) * (kPromptMax + kAnswerMax) / kPageTokens;
constexpr int64_t kWaitMax = int64_t(kLiveMax) * kStepsOfOne;

class ToyJob;

// What is known of a job from outside.
struct Known {
  JobTerms terms;
  Tokens prompt;
  int32_t token_count = 0;
  uint64_t seed = 0;
  ToyJob* job = nullptr;  // Null once it has ended.
  std::optional<Error> error;
  bool is_blocked = false, is_doomed = false, has_memory = false;
  int32_t progress = 0;      // Before the last step.
  int64_t waited_steps = 0;  // In which nobody of a higher rank could have gone first.
  int32_t preemptions = 0;   // But for those of idle jobs, and of those that nobody read.
};

// Says tokens that do not depend on what is computed.
class ToyJob final : public Job {
 public:
  ToyJob(Engine* engine, Known* known, uint64_t tenant) : lane_(engine), known_(known) {
    lane_.select(engine->default_selection().for_tenant(tenant));
    known_->job = this;
  }

  Lane* lane() override { return &lane_; }
  memory::Variant variant() const override { return lane_.selection().variant(); }
  std::span<const Token> prompt() const override { return known_->prompt; }
  memory::ResumePlan plan() override { return lane_.plan_reading(known_->prompt); }
  Status start() override {
    has_started_ = true;
    CAIRN_TRY(lane_.start(known_->prompt));
    return Ok{};
  }
  Status advance() override {
    ++said_count_;
    const uint64_t number = known_->seed * 1000003 + uint64_t(said_count_) * 7919;
    return is_done() ? Status(Ok{}) : lane_.push(Token(int32_t(number % 384)));
  }
  bool is_done() const override { return said_count_ == known_->token_count; }
  bool is_blocked() const override { return known_->is_blocked; }
  void end(Status status) override {
    if (!status) known_->error = std::move(status).error();
    if (lane_.sequence().length() > 0) lane_.publish();
    known_->job = nullptr;
  }

  const Lane& lane() const { return lane_; }
  bool is_waiting() const { return !has_started_ || lane_.is_preempted(); }
  // Changes when it gets on.
  int32_t progress() const { return 1000 * said_count_ + lane_.sequence().length(); }

 private:
  Lane lane_;
  Known* known_;
  int32_t said_count_ = 0;
  bool has_started_ = false;
};

class Simulation {
 public:
  Simulation(const std::string& model, uint32_t seed) : random_(seed) {
    EngineOptions options = golden_options(KvType::f16);
    options.thread_count = 1;
    options.row_count_max = std::array{17, 32, 64}[random_() % 3];
    options.context_tokens = 256;
    options.memory_budget = tight_budget(model, options);
    engine_ = load_engine(golden_path(model, ".gguf"), options);
    // Times that are never reached, or always: no step depends on how fast the machine is.
    const bool is_hurried = random_() % 2 == 0;
    scheduler_.emplace(engine_.get(),
                       SchedulerOptions{.step_seconds = is_hurried ? 1e-9 : 1e9,
                                        .quiet_step_seconds = is_hurried ? 1e-9 : 1e9,
                                        .running_max = std::array{2, 5, 64}[random_() % 3],
                                        .waiting_max = kWaitingMax,
                                        .shared_tokens_min = 8});
    if (seed / 4 % 2 == 0) set_tenants();
    for (Tokens& text : beginnings_) text = random_tokens(12 + int32_t(random_() % 20));
    refs_.resize(engine_->memory().layout().groups.size());
  }

  // What is wrong; nothing, if nothing is.
  std::optional<std::string> run(int32_t operation_count) {
    for (int32_t index = 0; index < operation_count && !failure_; ++index) {
      operate();
      check();
      if (failure_) return fmt::format("operation {}: {}", index, *failure_);
    }
    drain();
    return failure_;
  }

  int64_t preemptions() const { return scheduler_->stats().preemptions; }
  int64_t shared_waits() const { return scheduler_->stats().shared_waits; }
  int64_t idle_rows() const { return scheduler_->stats().idle_rows; }
  // Evictions for another tenant: of what is above a share, and of what is within one.
  int64_t taken_above() const { return taken_above_; }
  int64_t taken_within() const { return taken_within_; }
  int64_t waited_max() const { return waited_max_; }
  int32_t preempted_max() const { return preempted_max_; }

 private:
  // Bytes for about three of the longest jobs, or just enough for one of them.
  size_t tight_budget(const std::string& model, const EngineOptions& options) {
    const auto engine = load_engine(golden_path(model, ".gguf"), options);
    const memory::Sequence empty = engine->memory().new_sequence();
    const size_t one = engine->memory().plan(empty, kPromptMax + kAnswerMax).new_bytes;
    const bool is_recurrent = engine->memory().layout().recurrent_group >= 0;
    const size_t least = (is_recurrent ? 5 : 1) * one;
    return least + one * (random_() % 3) + one / 8;
  }

  // Each client is one; at times there is one more, who asks for nothing.
  void set_tenants() {
    tenants_ = {1, 2, 3, 4};
    if (random_() % 2 == 0) tenants_.push_back(5);
    const double part = std::array{1.0, 1.0, 0.5}[random_() % 3];
    scheduler_->set_tenants({.tenants = tenants_, .part = part});
    const size_t budget = engine_->memory().options().budget_bytes;
    share_bytes_ = size_t(double(budget) / double(tenants_.size()) * part);
    engine_->cache().on_evict([this](const memory::Sequence& sequence) { check_share(sequence); });
  }

  // What is evicted for another tenant is above a share, unless that one has nothing else in memory
  // than the job whose step needs room, whose sequence is not its own at the moment.
  void check_share(const memory::Sequence& evicted) {
    const uint64_t owner = evicted.variant().tenant;
    const uint64_t asking = memory::Inspector::asking_tenant(engine_->cache());
    const memory::Ledger& ledger = engine_->memory().ledger();
    const size_t used = ledger.used_bytes()[size_t(ledger.account_of(owner))];
    if (owner == asking) return;
    ++(used > share_bytes_ ? taken_above_ : taken_within_);
    if (used > share_bytes_) return;
    for (const auto& [id, known] : live_) {
      const bool asks = known->job != nullptr && known->job->variant().tenant == asking;
      if (!asks) continue;
      const memory::Sequence& sequence = std::as_const(*known->job).lane().sequence();
      if (sequence.length() > 0) fail_with("somebody takes what another has within its share");
    }
  }

  uint64_t tenant_of(const std::string& client) const {
    return tenants_.empty() ? 0 : tenants_[size_t(client[0] - 'a')];
  }

  bool is_queue_full(const std::string& client) const {
    if (tenants_.empty()) return scheduler_->stats().waiting >= kWaitingMax;
    const auto waiting = std::ranges::count_if(live_, [&](const auto& each) {
      const Known& known = *each.second;
      return known.terms.client == client && known.job != nullptr && known.job->is_waiting();
    });
    return waiting >= 4;
  }

  void fail_with(std::string what) {
    if (!failure_) failure_ = std::move(what);
  }

  Tokens random_tokens(int32_t count) {
    Tokens tokens;
    for (int32_t at = 0; at < count; ++at) tokens.push_back(Token(int32_t(random_() % 384)));
    return tokens;
  }

  Tokens choose_prompt() {
    Tokens prompt;
    const uint32_t kind = random_() % 8;
    if (kind < 3) prompt = beginnings_[random_() % beginnings_.size()];
    if (kind == 3 && !live_.empty()) prompt = any().prompt;
    if (kind != 3 || prompt.empty()) {
      const Tokens own = random_tokens(1 + int32_t(random_() % 16));
      prompt.insert(prompt.end(), own.begin(), own.end());
    }
    return prompt;
  }

  Known& any() {
    return *std::next(live_.begin(), std::ptrdiff_t(random_() % live_.size()))->second;
  }

  void submit() {
    auto known = std::make_unique<Known>();
    const bool is_long = random_() % 4 == 0;
    known->prompt = choose_prompt();
    known->token_count = 1 + int32_t(random_() % (is_long ? kAnswerMax : 6));
    known->seed = random_() % 4;
    known->is_blocked = random_() % 16 == 0;
    known->is_doomed = random_() % 32 == 0;
    known->terms = {.client = std::string(1, char('a' + random_() % 4)),
                    .priority = std::array{-1, 0, 0, 0, 0, 1}[random_() % 6],
                    .is_idle = random_() % 8 == 0};
    if (known->is_doomed) known->terms.deadline = JobTerms::Clock::now();
    const JobId id{job_count_++};
    Known* const place = known.get();
    live_.emplace(id, std::move(known));
    const bool is_full = is_queue_full(place->terms.client);
    const uint64_t tenant = tenant_of(place->terms.client);
    scheduler_->submit(id, std::make_unique<ToyJob>(engine_.get(), place, tenant), place->terms);
    if (is_full != (place->job == nullptr)) fail_with("the queue is not bounded as it says");
  }

  void operate() {
    const uint32_t kind = random_() % 64;
    if (kind < 12 && live_.size() < kLiveMax) {
      submit();
    } else if (kind < 15) {
      const JobId id{int64_t(random_() % uint64_t(job_count_ + 1))};
      const bool is_there = live_.contains(id);
      if (scheduler_->cancel(id, fail(ErrorCode::cancelled, "by the test")) != is_there) {
        fail_with("cancel() does not know who is there");
      }
    } else if (kind < 42 && !live_.empty()) {
      Known& known = any();
      known.is_blocked = !known.is_blocked && random_() % 3 == 0;
    } else {
      step();
    }
    forget_ended();
  }

  static bool outranks(const Known& a, const Known& b) {
    if (a.terms.is_idle != b.terms.is_idle) return b.terms.is_idle;
    return a.terms.priority > b.terms.priority;
  }

  void step() {
    std::vector<Known*> ready;
    for (const auto& [id, known] : live_) {
      if (known->is_blocked || known->is_doomed) continue;
      ready.push_back(known.get());
      known->progress = known->job->progress();
    }
    const int64_t idle_before = scheduler_->stats().idle_rows;
    const bool has_done_something = scheduler_->step();
    if (!ready.empty() && !has_done_something) fail_with("nobody goes on");
    const bool is_idle_step = scheduler_->stats().idle_rows > idle_before;
    for (Known* known : ready) {
      const bool stays = known->job != nullptr && known->job->progress() == known->progress;
      if (stays && is_idle_step && !known->terms.is_idle) {
        fail_with("idle work is computed while somebody waits");
      }
      const bool is_held_up = std::any_of(
          ready.begin(), ready.end(), [&](const Known* other) { return outranks(*other, *known); });
      known->waited_steps += int64_t(!is_held_up);
      waited_max_ = std::max(waited_max_, known->waited_steps);
      if (known->waited_steps > kWaitMax) fail_with("somebody starves");
    }
    count_preemptions();
  }

  void count_preemptions() {
    for (const auto& [id, known] : live_) {
      if (known->job == nullptr) continue;
      const Lane& lane = std::as_const(*known->job).lane();
      const bool yields = known->is_blocked || known->terms.is_idle;
      known->preemptions += int32_t(known->has_memory && lane.is_preempted() && !yields);
      known->has_memory = lane.sequence().length() > 0;
      preempted_max_ = std::max(preempted_max_, known->preemptions);
      if (known->preemptions > kPreemptionsMax) fail_with("somebody is preempted again and again");
    }
  }

  void forget_ended() {
    std::erase_if(live_, [this](const auto& each) {
      const Known& known = *each.second;
      if (known.job != nullptr) return false;
      const bool may_fail = known.error && (known.error->code == ErrorCode::cancelled ||
                                            known.error->code == ErrorCode::no_room);
      if (known.error && !may_fail) fail_with(known.error->message);
      return true;
    });
  }

  // Every block that somebody holds, counted once, is what the ledger says; the queue is known.
  void check() {
    memory::Memory& memory = engine_->memory();
    for (std::vector<int32_t>& counts : refs_) std::fill(counts.begin(), counts.end(), 0);
    for (const auto& [id, known] : live_) {
      memory::Inspector::count_refs(std::as_const(*known->job).lane().sequence(), refs_);
    }
    for (const memory::Sequence* kept : engine_->cache().sequences()) {
      memory::Inspector::count_refs(*kept, refs_);
    }
    size_t held_bytes = 0;
    for (size_t group = 0; group < refs_.size(); ++group) {
      const auto count = std::count_if(refs_[group].begin(), refs_[group].end(),
                                       [](int32_t references) { return references > 0; });
      held_bytes += size_t(count) * memory.layout().groups[group].block_bytes;
    }
    const memory::Usage usage = memory.usage();
    if (held_bytes != usage.used_bytes()) {
      fail_with(fmt::format("{} bytes are held, and {} counted", held_bytes, usage.used_bytes()));
    }
    if (usage.used_bytes() + usage.warm_bytes > usage.budget_bytes) fail_with("over the budget");
    constexpr size_t kHugePage = size_t(2) << 20;
    const size_t resident = memory::Inspector::store(memory).resident_bytes();
    if (resident > usage.budget_bytes + refs_.size() * kHugePage) {
      fail_with(fmt::format("{} bytes are resident", resident));
    }
    const SchedulerStats stats = scheduler_->stats();
    if (size_t(stats.running + stats.waiting) != live_.size()) fail_with("a job is lost");
  }

  // All are read again: everybody ends, and nothing stays but what is cached.
  void drain() {
    for (const auto& [id, known] : live_) known->is_blocked = false;
    for (int64_t steps = 0; !live_.empty() && !failure_; ++steps) {
      step();
      forget_ended();
      check();
      if (steps > 3 * kWaitMax) fail_with("some never end");
    }
    engine_->cache().clear();
    if (engine_->memory().usage().used_bytes() != 0) fail_with("blocks leak");
  }

  std::mt19937 random_;
  std::unique_ptr<Engine> engine_;
  std::array<Tokens, 3> beginnings_;
  // Those that have not ended; their places do not change. Outlives the scheduler.
  std::map<JobId, std::unique_ptr<Known>> live_;
  std::optional<Scheduler> scheduler_;
  std::vector<std::vector<int32_t>> refs_;  // [group][block]
  std::vector<uint64_t> tenants_;           // Of clients, as these are named.
  size_t share_bytes_ = 0;
  int64_t taken_above_ = 0, taken_within_ = 0;
  int64_t job_count_ = 0, waited_max_ = 0;
  int32_t preempted_max_ = 0;
  std::optional<std::string> failure_;
};

TEST(SchedulerSimulation, AMillionOperationsStarveNobodyAndLeakNothing) {
  constexpr int32_t kOperations = test::kIsSanitized ? 300 : 13'900;
  constexpr std::array kModels = {"llama", "gemma3", "mamba", "granitehybrid"};
  int64_t preemptions = 0, shared_waits = 0, idle_rows = 0, waited_max = 0;
  int64_t taken_above = 0, taken_within = 0;
  int32_t preempted_max = 0;
  size_t resident_before = 0;
  for (uint32_t seed = 0; seed < 72; ++seed) {
    if (seed == kModels.size()) resident_before = resident_bytes();
    Simulation simulation(kModels[seed % kModels.size()], seed);
    const std::optional<std::string> failure = simulation.run(kOperations);
    ASSERT_FALSE(failure) << "seed " << seed << ": " << *failure;
    preemptions += simulation.preemptions();
    shared_waits += simulation.shared_waits();
    idle_rows += simulation.idle_rows();
    taken_above += simulation.taken_above();
    taken_within += simulation.taken_within();
    waited_max = std::max(waited_max, simulation.waited_max());
    preempted_max = std::max(preempted_max, simulation.preempted_max());
  }
  fmt::print(
      "{} preemptions, {} waits for prefixes, {} idle rows; the longest wait: {} of at most "
      "{} steps; the most preemptions of a job: {} of at most {}; evicted for other tenants: {} "
      "above their shares, {} within\n",
      preemptions, shared_waits, idle_rows, waited_max, kWaitMax, preempted_max, kPreemptionsMax,
      taken_above, taken_within);
  // Engines that have gone leave nothing; what allocators keep is little.
  if (!test::kIsSanitized) {
    EXPECT_LE(resident_bytes(), resident_before + (size_t(16) << 20));
  }
  EXPECT_GT(preemptions, 0);
  EXPECT_GT(shared_waits, 0);
  EXPECT_GT(idle_rows, 0);
  EXPECT_GT(taken_above, 0);
  EXPECT_GT(taken_within, 0);
}

}  // namespace
}  // namespace cairn::test::scheduler_simulation_test
