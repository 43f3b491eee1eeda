// What a draft model gains and costs: answers of one model, with the drafts of another one and
// without, by turns; the tokens must be the same.
//   draft_model_bench TARGET DRAFT [ACCEPTED [TOKENS [ROUNDS [THREADS]]]]
//   draft_model_bench TARGET mtp
// Without ACCEPTED (or with 0) the answers are real, sampled at temperature 0 and 0.8. With it,
// each token is given, and is what the draft model is going to say so often; all is computed as
// ever, so models with random weights show what real ones of their shapes would take. "mtp": what a
// token takes by the target's own predicting layer.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/figures.h"
#include "draft/speculator.h"
#include "engine/drafted_answer.h"
#include "engine/drafts/draft_model.h"
#include "engine/drafts/text_drafter.h"
#include "engine/generator.h"
#include "engine/lane_batch.h"
#include "sample/candidates.h"

namespace {

using namespace cairn;
using Tokens = std::vector<Token>;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Answer final : public DraftedAnswer {
 public:
  // `script`: the tokens that it is made of; empty: those that are sampled.
  Answer(Lane* lane, const sample::SamplingParams& sampling, Tokens script, size_t count)
      : lane_(lane), sampler_(sampling), script_(std::move(script)), count_(count) {}
  void draft_by(DraftModel* model, draft::Calibrations* calibrations) {
    std::vector<std::unique_ptr<draft::Drafter>> drafters;
    drafters.push_back(make_model_drafter(model, &sampler_));
    speculator_ =
        std::make_unique<draft::Speculator>(std::move(drafters), int32_t(lane_->logits().size()),
                                            draft::SpeculatorOptions{.calibrations = calibrations});
  }

  bool is_done() const { return tokens_.size() == count_ || has_ended_; }
  const Tokens& tokens() const { return tokens_; }
  const draft::Speculator* speculator() const { return speculator_.get(); }
  Status advance(const tokenize::Tokenizer* tokenizer) {
    tokenizer_ = tokenizer;
    if (!chosen_) choose();
    const Token token = *std::exchange(chosen_, std::nullopt);
    add(token);
    return is_done() ? Status(Ok{}) : lane_->push(token);
  }

  std::span<const float> propose(int32_t count_max) override {
    verdict_ = {};
    count_max =
        std::min({count_max, lane_->draft_count_max(), int32_t(count_ - tokens_.size()) - 1});
    proposal_ = {};
    if (speculator_ == nullptr || count_max <= 0) return {};
    proposal_ = speculator_->propose({.text = lane_->whole_text(), .count_max = count_max});
    return proposal_.reach;
  }
  void check(int32_t count) override { lane_->draft(proposal_.tokens.first(size_t(count))); }
  int32_t take(const StepOutputs& outputs) override {
    lane_->begin_walk(outputs);
    for (;;) {
      choose();
      const std::optional<Token> draft = lane_->next_draft();
      if (!draft || *draft != *chosen_) break;
      chosen_.reset();
      add(*draft);
      if (is_done()) break;
      lane_->confirm_draft();
      ++verdict_.accepted;
    }
    verdict_.checked = outputs.count() - 1;
    return lane_->end_walk();
  }
  void learn(double step_seconds, double plain_seconds) override {
    if (speculator_ == nullptr || is_done()) return;
    speculator_->take(verdict_, step_seconds, plain_seconds, lane_->whole_text());
  }

 private:
  void choose() {
    Result<Token> sampled = lane_->sample(sampler_);
    CHECK(sampled);
    chosen_ = script_.empty() ? *sampled : script_[tokens_.size()];
  }
  void add(Token token) {
    tokens_.push_back(token);
    has_ended_ =
        script_.empty() && tokenizer_ != nullptr && tokenizer_->is_end_of_generation(token);
  }

  Lane* lane_;
  sample::Sampler sampler_;
  Tokens script_;
  size_t count_;
  const tokenize::Tokenizer* tokenizer_ = nullptr;
  std::unique_ptr<draft::Speculator> speculator_;
  draft::Speculator::Proposal proposal_;
  draft::Verdict verdict_;
  std::optional<Token> chosen_;
  Tokens tokens_;
  bool has_ended_ = false;
};

struct Case {
  std::string name;
  Tokens prompt;
  sample::SamplingParams sampling;
  Tokens script;
};

struct Figures {
  std::vector<double> plain, drafted;  // Seconds, round by round.
  size_t tokens = 0;
  int64_t steps = 0, checked = 0, accepted = 0;
  std::string off_reason;
};

class Bench {
 public:
  Bench(Engine* engine, DraftModel* draft, size_t token_count)
      : engine_(engine), draft_(draft), token_count_(token_count) {}

  // Behind the prompt, what the draft model says is likeliest, or so often not.
  Result<Tokens> script(const Tokens& prompt, double accepted) {
    std::mt19937 random(1);
    std::bernoulli_distribution is_right(accepted);
    Generator generator(&draft_->engine());
    CAIRN_TRY(generator.read(prompt));
    Tokens tokens;
    const int32_t vocabulary = engine_->size().vocabulary_count;
    while (tokens.size() < token_count_) {
      Token token = sample::likeliest(generator.logits());
      if (!is_right(random)) token = Token(int32_t(random() % uint32_t(vocabulary)));
      tokens.push_back(token);
      CAIRN_TRY(generator.advance(token));
    }
    return tokens;
  }

  Result<Tokens> run(const Case& made, bool has_drafts, Figures& figures) {
    engine_->cache().clear();
    draft_->engine().cache().clear();
    Lane lane(engine_);
    LaneBatch batch(engine_);
    CAIRN_TRY(lane.start(made.prompt));
    while (lane.wants_rows()) CAIRN_TRY(batch.step(lane));
    Answer answer(&lane, made.sampling, made.script, token_count_);
    if (has_drafts) answer.draft_by(draft_, &calibrations_);
    const Clock::time_point begin = Clock::now();
    int64_t steps = 0;
    while (!answer.is_done()) {
      if (lane.wants_rows()) {
        CAIRN_TRY(batch.step(lane, answer));
        ++steps;
      } else {
        CAIRN_TRY(answer.advance(engine_->tokenizer()));
      }
    }
    const double seconds = seconds_since(begin);
    (has_drafts ? figures.drafted : figures.plain).push_back(seconds);
    figures.tokens = answer.tokens().size();
    if (has_drafts) {
      const draft::Report& report = answer.speculator()->report();
      figures.steps = steps;
      figures.checked = report.drafted();
      figures.accepted = report.accepted();
      figures.off_reason = report.off_reason;
    }
    return answer.tokens();
  }

 private:
  Engine* engine_;
  DraftModel* draft_;
  size_t token_count_;
  draft::Calibrations calibrations_;
};

std::vector<Case> real_cases(const Engine& engine) {
  std::vector<Case> cases;
  const tokenize::Tokenizer& tokenizer = *engine.tokenizer();
  for (const char* text :
       {"My name is Ana and I live in Oslo. I have a cat. Please tell me",
        "Count from one to twenty: one, two, three,", "What cairn keeps of a conversation is"}) {
    for (const float temperature : {0.0f, 0.8f}) {
      cases.push_back({fmt::format("\"{:.12}…\", T {}", text, temperature),
                       tokenizer.encode(text, {.add_special = true}),
                       {.temperature = temperature, .seed = 1},
                       {}});
    }
  }
  return cases;
}

// What one row takes in the median, behind some others.
template <class Stepped>
Result<double> row_seconds(Stepped& stepped, memory::Memory& memory, std::span<const float> given) {
  memory::Sequence sequence = memory.new_sequence();
  std::vector<double> seconds;
  const int32_t output = 0;
  for (int32_t i = 0; i < 60; ++i) {
    const Token token = Token(100 + i);
    const StepItem item{.sequence = &sequence,
                        .tokens = std::span(&token, 1),
                        .outputs = std::span(&output, 1),
                        .given = given};
    const Clock::time_point begin = Clock::now();
    CAIRN_TRY(stepped.step(std::span(&item, 1), [](size_t, const StepOutputs&) { return 1; }));
    seconds.push_back(seconds_since(begin));
  }
  return bench::quantile(seconds, 0.5);
}

Status measure_predictor(gguf::File file) {
  CAIRN_TRY(const std::unique_ptr<Engine> engine,
            Engine::load(std::move(file), {.context_tokens = 1024, .loads_predictor = true}));
  Predictor* const predictor = engine->predictor();
  if (predictor == nullptr) {
    return fail(ErrorCode::invalid_argument,
                "mtp: expected a predicting layer in the file, found none");
  }
  const std::vector<float> given(size_t(predictor->width()), 0.5f);
  CAIRN_TRY(const double step, row_seconds(*engine, engine->memory(), {}));
  CAIRN_TRY(const double token, row_seconds(*predictor, predictor->memory(), given));
  fmt::print("a step {:.2f} ms, a drafted token {:.2f} ms: {:.3f} of it\n", 1e3 * step, 1e3 * token,
             token / step);
  return Ok{};
}

Status run(int argc, char** argv) {
  const double accepted = argc > 3 ? std::atof(argv[3]) : 0;
  const size_t token_count = argc > 4 ? size_t(std::atoi(argv[4])) : 128;
  const int rounds = argc > 5 ? std::atoi(argv[5]) : 5;
  CAIRN_TRY(gguf::File file, gguf::File::open(argv[1]));
  if (std::string_view(argv[2]) == "mtp") return measure_predictor(std::move(file));
  EngineOptions options{.thread_count = argc > 6 ? std::atoi(argv[6]) : 0, .context_tokens = 4096};
  options.memory_budget = size_t(2) << 30;
  CAIRN_TRY(const std::unique_ptr<Engine> engine, Engine::load(std::move(file), options));
  CAIRN_TRY(gguf::File draft_file, gguf::File::open(argv[2]));
  CAIRN_TRY(const std::unique_ptr<DraftModel> draft,
            DraftModel::load(std::move(draft_file), *engine));
  Bench bench(engine.get(), draft.get(), token_count);
  std::vector<Case> cases;
  if (accepted > 0) {
    std::mt19937 random(2);
    Case made{.name = fmt::format("given, accepted {:.2f}", accepted),
              .prompt = bench::random_tokens(random, 200, engine->size().vocabulary_count),
              .sampling = {.temperature = 0}};
    CAIRN_TRY(made.script, bench.script(made.prompt, accepted));
    cases.push_back(std::move(made));
  } else {
    cases = real_cases(*engine);
  }
  for (const Case& made : cases) {
    Figures figures;
    bool is_equal = true;
    for (int round = 0; round < rounds; ++round) {
      CAIRN_TRY(const Tokens plain, bench.run(made, false, figures));
      CAIRN_TRY(const Tokens drafted, bench.run(made, true, figures));
      is_equal = is_equal && plain == drafted;
    }
    const double plain = bench::quantile(figures.plain, 0.5);
    const double drafted = bench::quantile(figures.drafted, 0.5);
    fmt::print(
        "{}: {} tokens, plain {:.1f}/s, drafted {:.1f}/s: {:.2f} times; {} steps, {} of {} "
        "drafted tokens accepted{}; the tokens are {}\n",
        made.name, figures.tokens, double(figures.tokens) / plain, double(figures.tokens) / drafted,
        plain / drafted, figures.steps, figures.accepted, figures.checked,
        figures.off_reason.empty() ? "" : ", " + figures.off_reason,
        is_equal ? "the same" : "NOT THE SAME");
    if (!is_equal) return fail(ErrorCode::invalid_data, "{}: the tokens differ", made.name);
  }
  return Ok{};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "draft_model_bench TARGET DRAFT [ACCEPTED [TOKENS [ROUNDS [THREADS]]]]\n");
    return 2;
  }
  const Status status = run(argc, argv);
  if (!status) fmt::print(stderr, "{}\n", status.error().message);
  return status ? 0 : 1;
}
