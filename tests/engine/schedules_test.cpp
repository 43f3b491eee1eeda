// Requests of all sorts under random schedules, on models of every kind of memory: each one's
// tokens and logits are those of a request that is alone, bit for bit, whatever the order, the
// sizes of steps, threads, the memory that there is, and whether there is a store. That no prompt
// here is what somebody was answered lets fast-1 promise the same.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <thread>

#include "draft/adversary.h"
#include "draft/lookup_drafter.h"
#include "draft/prediction_drafter.h"
#include "draft/recycle_drafter.h"
#include "engine/schedule/scheduler.h"
#include "tests/engine/random_adapter.h"
#include "tests/engine/sampled_job.h"
#include "tests/fast_here.h"
#include "tests/grammar/toy_vocabulary.h"
#include "tests/models/golden_model.h"
#include "tests/sanitized.h"
#include "tests/scratch_folder.h"
#include "tests/small_pages.h"
#include "tests/twin_vocabulary.h"

namespace cairn::test::schedules_test {
namespace {

using Tokens = std::vector<Token>;
using Clock = std::chrono::steady_clock;

// Of the golden models, and of the vocabulary that forms are written in.
constexpr int32_t kVocabulary = 384;

Tokens random_tokens(std::mt19937& random, int32_t count) {
  Tokens tokens;
  for (int32_t index = 0; index < count; ++index) {
    tokens.push_back(Token(int32_t(random() % kVocabulary)));
  }
  return tokens;
}

// One for each way in which tokens are chosen.
std::vector<sample::SamplingParams> samplers() {
  return {{.temperature = 0},
          {.temperature = 1},
          {.top_k = 5, .top_p = 0.7f, .min_p = 0.1f},
          {.temperature = 1, .top_k = 0, .typical_p = 0.6f, .top_n_sigma = 1.5f},
          {.temperature = 1, .dynatemp_range = 0.5f, .dynatemp_exponent = 1.3f},
          {.temperature = 1, .top_k = 0, .xtc_probability = 0.5f, .xtc_threshold = 0.02f},
          {.temperature = 0.5f,
           .repeat_penalty = 1.2f,
           .presence_penalty = 0.3f,
           .frequency_penalty = 0.2f},
          {.temperature = 0.7f, .dry_multiplier = 0.8f, .dry_last_count = -1, .dry_breakers = {}},
          {.temperature = 1, .mirostat = 1},
          {.temperature = 1, .mirostat = 2},
          {.temperature = 1,
           .adaptive_target = 0.3f,
           .samplers = {"top_k", "min_p", "temperature", "adaptive_p"}},
          {.temperature = 1, .logit_bias = {{.token = Token(7), .bias = 4}}}};
}

// Null: the answer is free.
std::vector<std::optional<SampledForm>> forms() {
  std::vector<std::string> words;
  while (words.size() + 256 + 3 < size_t(kVocabulary)) {
    words.push_back("word" + std::to_string(words.size()));
  }
  const auto tokens = grammar::TokenTrie::build(*grammar::toy_tokenizer(words));
  EXPECT_EQ(tokens->token_count(), size_t(kVocabulary));
  return {
      std::nullopt,
      SampledForm{grammar::compile_schema(R"({"type":"object","properties":{
              "a":{"type":"string"},"b":{"type":"array","items":{"type":"integer"}}}})")
                      .value(),
                  tokens},
      SampledForm{grammar::compile_regex("(word[0-9]{1,3}[ ,]){2,30}").value(), tokens},
      SampledForm{
          grammar::compile_gbnf("root ::= \"x\" | \"(\" root \")\" | \"[\" root* \"]\"").value(),
          tokens}};
}

const std::vector<std::vector<AdapterUse>>& adapter_choices() {
  static const std::vector<std::vector<AdapterUse>> choices = {
      {}, {}, {}, {{"first", 1}}, {{"second", -0.5f}}, {{"first", 0.25f}, {"second", 1}}};
  return choices;
}

// Behind a few shared prefixes, or of their own; what one asks another may ask too.
std::vector<SampledRequest> mixed_requests(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  const std::vector<Tokens> systems = {random_tokens(random, 130), random_tokens(random, 70), {}};
  const auto all_samplers = samplers();
  const auto all_forms = forms();
  std::vector<SampledRequest> requests;
  for (size_t index = 0; index < count; ++index) {
    SampledRequest request{.prompt = systems[random() % systems.size()],
                           .token_count = 1 + int32_t(random() % 12)};
    const Tokens own = random_tokens(random, 1 + int32_t(random() % 40));
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    if (index > 0 && random() % 4 == 0) request.prompt = requests[random() % index].prompt;
    request.sampling = all_samplers[index % all_samplers.size()];
    request.sampling.seed = random();
    request.adapters = adapter_choices()[random() % adapter_choices().size()];
    if (random() % 4 == 0) request.form = all_forms[random() % all_forms.size()];
    // Room is made for prompts when they are admitted; answers find out later.
    if (index % 3 == 0) request.token_count = 90;
    if (random() % 3 == 0) request.message_starts = {int32_t(request.prompt.size() / 2)};
    requests.push_back(std::move(request));
  }
  return requests;
}

// Who drafts a request's answer.
enum class Drafts : uint8_t {
  made_up,  // Right, wrong or both.
  model,
  text,  // A model with other tokens.
  self,  // The model itself, run thinner where it can be.
  lookup,
  recycle,
  prediction,
  lookahead,
  adversary,
  none,
};
constexpr std::array kDrafts = {Drafts::model,      Drafts::made_up,   Drafts::text,
                                Drafts::lookup,     Drafts::made_up,   Drafts::self,
                                Drafts::recycle,    Drafts::adversary, Drafts::lookahead,
                                Drafts::prediction, Drafts::adversary, Drafts::none};

// Behind the prompt, with a token here and there that is another one.
Tokens with_changes(Tokens tokens) {
  for (size_t i = 5; i < tokens.size(); i += 6) tokens[i] = Token(int32_t(i));
  return tokens;
}

// One of each kind of memory.
constexpr std::array kModels = {"llama",    "gemma3", "gemma4",        "gemma3n", "llama4",
                                "qwen3moe", "mamba",  "granitehybrid", "lfm2",    "qwen3next"};

class Schedules : public test::SmallPagesTest<const char*> {
 protected:
  void SetUp() override {
    for (const char* name : {"first", "second"}) {
      const std::string path = folder_.file(std::string(name) + ".gguf");
      write_random_adapter(model(), path, uint32_t(adapters_.size()));
      adapters_.push_back({.path = path, .scale = 0});
    }
    twin_ = folder_.file("twin.gguf");
    write_twin(model(), twin_, 0.2);
  }

  static std::string model() { return golden_path(GetParam(), ".gguf"); }
  EngineOptions options() const {
    EngineOptions options = golden_options(KvType::f16);
    options.adapters = adapters_;
    options.numerics = numerics_;
    return options;
  }

  std::vector<Sampled> alone(const std::vector<SampledRequest>& requests) {
    std::vector<Sampled> results;
    for (const SampledRequest& request : requests) {
      const auto engine = load_engine(model(), options());
      results.push_back(sampled_alone(*engine, request));
    }
    return results;
  }

  EngineOptions options_of(uint32_t schedule, const std::vector<SampledRequest>& requests);
  size_t tight_budget(const std::vector<SampledRequest>& requests, bool is_tightest);
  void run_schedule(uint32_t schedule, const std::vector<SampledRequest>& requests,
                    const std::vector<Sampled>& expected);
  // What drafts the answers of a schedule.
  struct Drafting {
    std::unique_ptr<DraftModel> model, twin, self;
    std::shared_ptr<draft::Knowledge> said = std::make_shared<draft::Knowledge>(size_t(1) << 20);
  };
  Drafting load_drafts(Engine& engine, uint32_t schedule);
  static Drafts drafts_of(uint32_t schedule, size_t index) {
    return kDrafts[(schedule + index) % kDrafts.size()];
  }
  SampledRequest with_drafts(SampledRequest request, Drafts drafts, uint32_t seed,
                             const Sampled& expected, const Drafting& drafting);
  void compare(uint32_t schedule, const std::vector<Sampled>& results,
               const std::vector<Sampled>& cancelled, const std::vector<Sampled>& expected);
  void expect_same_bits();

  Numerics numerics_ = Numerics::exact_1;
  test::ScratchFolder folder_;
  std::string twin_;
  std::vector<AdapterChoice> adapters_;
  // Of all schedules.
  int64_t preemptions_ = 0, found_on_disk_ = 0, cut_short_ = 0;
  struct Counts {
    int64_t checked = 0, accepted = 0;
  };
  std::map<Drafts, Counts> drafts_;
};

// Bytes for one or two of the longest requests; on models with recurrence a job alone holds two
// states, and pages of the log.
size_t Schedules::tight_budget(const std::vector<SampledRequest>& requests, bool is_tightest) {
  size_t longest = 0;
  for (const SampledRequest& request : requests) {
    longest = std::max(longest, request.prompt.size() + size_t(request.token_count));
  }
  const auto engine = load_engine(model(), options());
  const memory::Sequence empty = engine->memory().new_sequence();
  const size_t one = engine->memory().plan(empty, int32_t(longest)).new_bytes;
  const bool is_recurrent = engine->memory().layout().recurrent_group >= 0;
  return (is_tightest ? one / 4 : one) + (is_recurrent ? 5 * one : one);
}

// So many rows a step and so much memory as the number says; schedules with a store find there what
// those before have left.
EngineOptions Schedules::options_of(uint32_t schedule,
                                    const std::vector<SampledRequest>& requests) {
  EngineOptions chosen = options();
  chosen.row_count_max = std::array{17, 48, 128}[schedule % 3];
  chosen.thread_count = 1 + int32_t(schedule % 2);
  // Half of the schedules have so little memory that jobs have to make room for each other.
  if (schedule % 6 >= 3) chosen.memory_budget = tight_budget(requests, schedule % 6 == 5);
  if (schedule / 2 % 2 == 1) {
    chosen.cache_dir = folder_.file("store");
    chosen.cache_disk_budget = uint64_t(64) << 20;
  }
  return chosen;
}

void Schedules::compare(uint32_t schedule, const std::vector<Sampled>& results,
                        const std::vector<Sampled>& cancelled,
                        const std::vector<Sampled>& expected) {
  for (size_t index = 0; index < results.size(); ++index) {
    const Sampled& result = results[index];
    ASSERT_TRUE(result.has_ended && cancelled[index].has_ended);
    ASSERT_FALSE(result.error) << result.error->message;
    EXPECT_EQ(result.tokens, expected[index].tokens) << schedule << " " << index;
    EXPECT_EQ(result.digest, expected[index].digest) << schedule << " " << index;
    Counts& counts = drafts_[drafts_of(schedule, index)];
    counts.checked += result.checked;
    counts.accepted += result.accepted;
    found_on_disk_ += int64_t(result.prompt.from_store);
    cut_short_ += int64_t(cancelled[index].error.has_value());
  }
}

// The same model without adapters, by turns with so little memory that drafts end; the same with
// other tokens; and the model itself.
Schedules::Drafting Schedules::load_drafts(Engine& engine, uint32_t schedule) {
  Drafting drafting;
  const DraftModelOptions options{.memory_budget = size_t(schedule % 4 == 3 ? 1 : 64) << 20};
  drafting.model = DraftModel::load(gguf::File::open(model()).value(), engine, options).value();
  drafting.twin = DraftModel::load(gguf::File::open(twin_).value(), engine, options).value();
  DraftModelOptions thin = options;
  thin.choice.program.exit_layer = engine.size().layer_count - 1;
  auto self = DraftModel::load_self(engine, thin);
  // Some layers cannot do without those behind them.
  if (!self) self = DraftModel::load_self(engine, options);
  drafting.self = std::move(self).value();
  return drafting;
}

SampledRequest Schedules::with_drafts(SampledRequest request, Drafts drafts, uint32_t seed,
                                      const Sampled& expected, const Drafting& drafting) {
  request.known = expected.tokens;
  Tokens whole = request.prompt;
  whole.insert(whole.end(), expected.tokens.begin(), expected.tokens.end());
  const size_t begin = request.prompt.size();
  switch (drafts) {
    case Drafts::made_up:
      request.draft_seed = seed + 1;
      break;
    case Drafts::model:
      request.draft_model = drafting.model.get();
      break;
    case Drafts::text:
      request.draft_model = drafting.twin.get();
      break;
    case Drafts::self:
      request.draft_model = drafting.self.get();
      break;
    case Drafts::lookup:
      // Somebody has said it before.
      drafting.said->said.append(with_changes(whole));
      request.make_drafter = [said = drafting.said] {
        return std::make_unique<draft::LookupDrafter>(
            draft::LookupDrafter::Options{.knowledge = said});
      };
      break;
    case Drafts::recycle:
      request.make_drafter = [said = drafting.said] {
        return std::make_unique<draft::RecycleDrafter>(
            std::shared_ptr<draft::RecycleTable>(said, &said->successors));
      };
      break;
    case Drafts::prediction:
      request.make_drafter = [text = with_changes(expected.tokens), begin] {
        return std::make_unique<draft::PredictionDrafter>(text, begin);
      };
      break;
    case Drafts::lookahead:
      request.looks_ahead = true;
      break;
    case Drafts::adversary:
      request.make_drafter = [whole, seed] {
        const draft::Habit habit = draft::kHabits[seed % draft::kHabits.size()];
        return std::make_unique<draft::Adversary>(habit, whole, kVocabulary, seed);
      };
      break;
    case Drafts::none:
      break;
  }
  return request;
}

void Schedules::run_schedule(uint32_t schedule, const std::vector<SampledRequest>& requests,
                             const std::vector<Sampled>& expected) {
  std::mt19937 random(schedule);
  const auto engine = load_engine(model(), options_of(schedule, requests));
  ASSERT_NE(engine, nullptr);
  const Drafting drafting = load_drafts(*engine, schedule);
  std::vector<Sampled> results(requests.size()), cancelled(requests.size());
  Scheduler scheduler(engine.get(), {.step_seconds = schedule % 2 == 0 ? 1e-4 : 1e-2,
                                     .quiet_step_seconds = schedule % 2 == 0 ? 1e-3 : 1.0,
                                     .running_max = std::array{3, 64}[schedule % 2],
                                     .waiting_max = 1 << 20,
                                     .shared_tokens_min = 16,
                                     .checks_all_drafts = true});
  std::vector<SampledJob*> jobs(requests.size(), nullptr);  // Those that were submitted.
  bool has_blocked = false;
  // What is read from a disk may be waited for, and whoever does not read may be all there are.
  const auto go_on = [&] {
    const bool has_gone_on = scheduler.step();
    ASSERT_TRUE(has_gone_on || has_blocked || engine->sequence_store() != nullptr)
        << "nobody goes on";
    if (!has_gone_on) std::this_thread::yield();
  };
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::shuffle(order.begin(), order.end(), random);
  int64_t next_id = 0;
  for (const size_t index : order) {
    SampledRequest request = with_drafts(requests[index], drafts_of(schedule, index),
                                         schedule + uint32_t(index), expected[index], drafting);
    auto job = std::make_unique<SampledJob>(engine.get(), std::move(request), &results[index]);
    jobs[index] = job.get();
    scheduler.submit(JobId{next_id++}, std::move(job),
                     {.client = random() % 2 == 0 ? "a" : "b", .priority = int32_t(random() % 2)});
    const JobId doomed{next_id++};
    scheduler.submit(doomed,
                     std::make_unique<SampledJob>(engine.get(), requests[index], &cancelled[index]),
                     {.client = "c"});
    // Some are not read for a while.
    const size_t other = random() % requests.size();
    if (jobs[other] != nullptr && !results[other].has_ended) {
      jobs[other]->block(random() % 2 == 0);
      has_blocked = true;
    }
    for (uint32_t steps = random() % 4; steps > 0 && scheduler.has_work(); --steps) {
      ASSERT_NO_FATAL_FAILURE(go_on());
    }
    scheduler.cancel(doomed, fail(ErrorCode::cancelled, "by the test"));
  }
  for (size_t index = 0; index < requests.size(); ++index) {
    if (!results[index].has_ended) jobs[index]->block(false);
  }
  has_blocked = false;
  const Clock::time_point last = Clock::now();
  while (scheduler.has_work()) {
    ASSERT_NO_FATAL_FAILURE(go_on());
    ASSERT_LT(Clock::now() - last, std::chrono::hours(1)) << "jobs that never end";
  }
  preemptions_ += scheduler.stats().preemptions;
  ASSERT_NO_FATAL_FAILURE(compare(schedule, results, cancelled, expected));
  EXPECT_EQ(scheduler.stats().running + scheduler.stats().waiting, 0);
  if (engine->sequence_store() != nullptr) engine->sequence_store()->drain();
  for (Engine* each : {engine.get(), &drafting.model->engine(), &drafting.twin->engine(),
                       &drafting.self->engine()}) {
    each->cache().clear();
    EXPECT_EQ(each->memory().usage().used_bytes(), 0u);
  }
}

void Schedules::expect_same_bits() {
  const std::vector<SampledRequest> requests = mixed_requests(7, 18);
  const std::vector<Sampled> expected = alone(requests);
  constexpr uint32_t kCount = test::kIsSanitized ? 3 : 6;
  for (uint32_t schedule = 0; schedule < kCount; ++schedule) {
    ASSERT_NO_FATAL_FAILURE(run_schedule(schedule, requests, expected));
  }
  ASSERT_NO_FATAL_FAILURE(run_schedule(7, requests, expected));
  EXPECT_GT(preemptions_, 0) << "the tight schedules were not tight";
  EXPECT_GT(found_on_disk_, 0) << "the store was of no use";
  EXPECT_GT(cut_short_, 0) << "nobody was cancelled in time";
  for (const Drafts kind : kDrafts) {
    const Counts counts = drafts_[kind];
    EXPECT_EQ(counts.checked > 0, kind != Drafts::none) << "drafts " << int(kind);
    EXPECT_LE(counts.accepted, counts.checked) << "drafts " << int(kind);
  }
  for (const Drafts kind : {Drafts::made_up, Drafts::model, Drafts::self, Drafts::prediction}) {
    EXPECT_GT(drafts_[kind].accepted, 0) << "drafts " << int(kind) << ": none was right";
  }
  for (const Drafts kind : {Drafts::made_up, Drafts::adversary}) {
    const Counts counts = drafts_[kind];
    EXPECT_GT(2 * counts.checked, 3 * counts.accepted) << "hardly a draft was wrong";
  }
}

TEST_P(Schedules, PreserveEachBit) {
  expect_same_bits();
}

class FastSchedules : public Schedules {
 protected:
  FastSchedules() { numerics_ = Numerics::fast_1; }
};

TEST_P(FastSchedules, PreserveEachBit) {
  if (!has_fast()) GTEST_SKIP() << "no AVX512_BF16";
  expect_same_bits();
}

// `./dev soak` runs it: a thousand requests, fifty schedules.
TEST_P(Schedules, DISABLED_Soak) {
  const Clock::time_point begin = Clock::now();
  const auto say = [&](const std::string& what) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    std::printf("%s, %.0f s: %s\n", GetParam(), seconds, what.c_str());
    std::fflush(stdout);
  };
  const std::vector<SampledRequest> requests = mixed_requests(11, 1000);
  const std::vector<Sampled> expected = alone(requests);
  say("1,000 requests alone");
  for (uint32_t schedule = 0; schedule < 50; ++schedule) {
    ASSERT_NO_FATAL_FAILURE(run_schedule(schedule, requests, expected));
    ASSERT_FALSE(HasFailure());
    say(
        fmt::format("schedule {} of 50 has the same bits; so far {} preemptions, {} prompts from "
                    "the disk, {} cancelled",
                    schedule + 1, preemptions_, found_on_disk_, cut_short_));
  }
  EXPECT_GT(preemptions_, 0);
  EXPECT_GT(found_on_disk_, 0);
  for (const Drafts kind : kDrafts) {
    say(fmt::format("drafts {}: {} of {} right", int(kind), drafts_[kind].accepted,
                    drafts_[kind].checked));
    EXPECT_EQ(drafts_[kind].checked > 0, kind != Drafts::none);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Schedules, ::testing::ValuesIn(kModels),
                         [](const auto& each) { return std::string(each.param); });
INSTANTIATE_TEST_SUITE_P(Kinds, FastSchedules, ::testing::ValuesIn(kModels),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace cairn::test::schedules_test
