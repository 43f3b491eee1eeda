// What drafts gain and cost: answers with given tokens, made without drafts and with them by turns.
// All is computed and sampled as ever; only the choice is scripted, so that a model with random
// weights shows what a real one of its shape would take.
//   draft_replay_bench MODEL VOCABULARY TRANSCRIPT [DRAFTS [SCENARIO [ROUNDS [THREADS]]]]
// VOCABULARY: a GGUF file whose tokenizer cuts the text; its ids are below the model's. TRANSCRIPT:
// make_agent_transcript.py's, or tool_calls.json, where schemas hold the answers. DRAFTS: as
// --draft. SCENARIO: agent (the transcript), copy, edit, prose, useless or all; or rows[:TOKENS]:
// what steps of so many rows take behind a prompt, and so what drafts could gain at most.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/machine/machine_memory.h"
#include "bench/figures.h"
#include "bench/transcript.h"
#include "engine/drafted_answer.h"
#include "engine/engine.h"
#include "engine/lane_batch.h"
#include "engine/model_text.h"
#include "sample/sampler.h"
#include "session/drafts/drafting.h"

namespace {

using namespace cairn;
using bench::Turn;
using Tokens = std::vector<Token>;
using Clock = std::chrono::steady_clock;

using Turns = std::vector<Turn>;

// Of all answers of a scenario.
struct Figures {
  double seconds = 0;
  int64_t tokens = 0, steps = 0, drafted = 0, accepted = 0;
};

// Always wrong, and sure of itself.
class WrongDrafter final : public draft::Drafter {
 public:
  std::string_view name() const override { return "wrong"; }
  void propose(const draft::View& view, draft::Draft& draft) override {
    for (int32_t i = 0; i < std::min(view.count_max, 8); ++i) draft.add(Token(1), 0.99f);
  }
};

// Always right: it knows what is given, and proposes so many tokens of it.
class RightDrafter final : public draft::Drafter {
 public:
  RightDrafter(const Tokens* script, size_t script_begin, int32_t count)
      : script_(script), script_begin_(script_begin), count_(count) {}
  std::string_view name() const override { return "right"; }
  void propose(const draft::View& view, draft::Draft& draft) override {
    const size_t next = view.text.size() - script_begin_;
    const size_t end = std::min(script_->size(), next + size_t(std::min(view.count_max, count_)));
    for (size_t i = next; i < end; ++i) draft.add(script_->at(i), 0.99f);
  }

 private:
  const Tokens* script_;
  size_t script_begin_;
  int32_t count_;
};

// An answer whose tokens are given.
class ScriptedAnswer final : public DraftedAnswer {
 public:
  // `form`: what the script keeps to.
  ScriptedAnswer(Lane* lane, const Tokens* script, session::ConstraintState* form,
                 std::unique_ptr<draft::Speculator> speculator)
      : lane_(lane),
        script_(script),
        form_(form),
        sampler_({.seed = 1}),
        speculator_(std::move(speculator)) {}

  bool is_done() const { return done_ == script_->size(); }
  int32_t rest() const { return int32_t(script_->size() - done_); }
  // The token behind the prompt.
  Status begin() { return lane_->push(choose()); }
  Status go_on() { return is_done() ? Status(Ok{}) : lane_->push(script_->at(done_ - 1)); }

  std::span<const float> propose(int32_t count_max) override {
    proposal_ = {};
    verdict_ = {};
    count_max = std::min({count_max, lane_->draft_count_max(), rest() - 1});
    if (speculator_ == nullptr || count_max <= 0) return {};
    proposal_ = speculator_->propose({.text = lane_->whole_text(), .count_max = count_max});
    return proposal_.reach;
  }
  void check(int32_t count) override { lane_->draft(proposal_.tokens.first(size_t(count))); }
  int32_t take(const StepOutputs& outputs) override {
    lane_->begin_walk(outputs);
    for (;;) {
      const Token token = choose();
      const std::optional<Token> draft = lane_->next_draft();
      if (!draft || *draft != token || is_done()) break;
      lane_->confirm_draft();
      ++verdict_.accepted;
    }
    verdict_.checked = outputs.count() - 1;
    return lane_->end_walk();
  }
  void learn(double step_seconds, double plain_seconds) override {
    if (speculator_ != nullptr) {
      speculator_->take(verdict_, step_seconds, plain_seconds, lane_->whole_text());
    }
  }
  const draft::Speculator* speculator() const { return speculator_.get(); }

 private:
  // Sampled, for what that takes; and then as the script has it.
  Token choose() {
    const Result<Token> sampled = lane_->sample(sampler_);
    CHECK(sampled);
    const Token token = script_->at(done_++);
    form_->prepare();
    const Status fits = form_->accept(token);
    CHECK(bool(fits));
    return token;
  }

  Lane* lane_;
  const Tokens* script_;
  session::ConstraintState* form_;
  sample::Sampler sampler_;
  std::unique_ptr<draft::Speculator> speculator_;
  draft::Speculator::Proposal proposal_;
  draft::Verdict verdict_;
  size_t done_ = 0;
};

// One conversation, with drafts or without.
class Conversation {
 public:
  // `text`: whose tokens the turns have. `drafts` empty: none; `is_useless`: always wrong ones.
  Conversation(Engine* engine, const ModelText* text, std::string_view drafts, bool is_useless)
      : engine_(engine),
        text_(text),
        drafts_(drafts),
        is_useless_(is_useless),
        drafting_(engine),
        lane_(engine) {}

  // Reads what the turn asks and says what it answers.
  Status take(const Turn& turn, LaneBatch& batch) {
    said_.insert(said_.end(), turn.asked.begin(), turn.asked.end());
    CAIRN_TRY(lane_.start(said_));
    while (lane_.wants_rows()) CAIRN_TRY(batch.step(lane_));
    CAIRN_TRY(const std::unique_ptr<grammar::Matcher> matcher, matcher_of(turn));
    session::ConstraintState form(matcher.get(), false, &parser_);
    CAIRN_TRY(std::unique_ptr<draft::Speculator> speculator, speculator_of(form));
    ScriptedAnswer answer(&lane_, &turn.answered, &form, std::move(speculator));
    const Clock::time_point begin = Clock::now();
    CAIRN_TRY(answer.begin());
    while (!answer.is_done()) {
      CAIRN_TRY(batch.step(lane_, answer));
      CAIRN_TRY(answer.go_on());
      ++figures_.steps;
    }
    figures_.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
    figures_.tokens += int64_t(turn.answered.size());
    if (answer.speculator() != nullptr) {
      figures_.drafted += answer.speculator()->report().drafted();
      figures_.accepted += answer.speculator()->report().accepted();
    }
    CAIRN_TRY(lane_.finish_turn());
    drafting_.remember(0, lane_.whole_text());
    said_.insert(said_.end(), turn.answered.begin(), turn.answered.end());
    return Ok{};
  }
  // Of all its answers.
  const Figures& figures() const { return figures_; }

 private:
  Result<std::unique_ptr<grammar::Matcher>> matcher_of(const Turn& turn) const {
    if (turn.schema.empty()) return std::unique_ptr<grammar::Matcher>();
    return session::make_matcher({.json_schema = turn.schema}, *text_);
  }

  Result<std::unique_ptr<draft::Speculator>> speculator_of(const session::ConstraintState& form) {
    if (drafts_.empty()) return std::unique_ptr<draft::Speculator>();
    if (is_useless_) {
      std::vector<std::unique_ptr<draft::Drafter>> wrong;
      wrong.push_back(std::make_unique<WrongDrafter>());
      return std::make_unique<draft::Speculator>(std::move(wrong),
                                                 engine_->size().vocabulary_count);
    }
    session::DraftOrder order;
    CAIRN_TRY(order.choice, session::parse_draft_choice(drafts_));
    return drafting_
        .drafters(order, {.constraint = &form,
                          .tokenizer = text_->tokenizer(),
                          .prompt = said_,
                          .answer_begin = said_.size()})
        .speculator;
  }

  Engine* engine_;
  const ModelText* text_;
  std::string drafts_;
  bool is_useless_;
  session::Drafting drafting_;
  Lane lane_;
  chat::OutputParser parser_{{}, {}};
  Tokens said_;
  Figures figures_;
};

// Where machines are virtual, the first use of a page that was free for some seconds may take a
// hundred times as long as any later one: a state of a recurrent model, a dozen steps. So that many
// states are used beforehand and stay, as far as a part of the machine's memory goes.
constexpr size_t kStatesMost = 200;
constexpr size_t kMemoryPart = 3;

class Bench {
 public:
  // `text`: whose tokens the turns have.
  Bench(Engine* engine, const ModelText* text, std::string drafts)
      : engine_(engine),
        text_(text),
        drafts_(std::move(drafts)),
        batch_(engine),
        plain_batch_(engine) {
    const memory::Layout& layout = engine->memory().layout();
    if (layout.recurrent_group < 0) return;
    const size_t state_bytes = layout.groups[size_t(layout.recurrent_group)].block_bytes;
    const size_t room = read_machine_memory().available_bytes / kMemoryPart;
    engine->memory().keep_states_warm(int32_t(std::min(kStatesMost, room / state_bytes)));
  }

  // Steps of `row_count` rows, all of them right: what one takes; 0 if no step can have so many.
  Result<double> step_seconds(const Turn& turn, int32_t row_count) {
    engine_->cache().clear();
    Lane lane(engine_);
    LaneBatch batch(engine_, true);
    CAIRN_TRY(lane.start(turn.asked));
    while (lane.wants_rows()) CAIRN_TRY(batch.step(lane));
    std::vector<std::unique_ptr<draft::Drafter>> drafters;
    drafters.push_back(
        std::make_unique<RightDrafter>(&turn.answered, turn.asked.size(), row_count - 1));
    const chat::OutputParser parser({}, {});
    session::ConstraintState form(nullptr, false, &parser);
    ScriptedAnswer answer(
        &lane, &turn.answered, &form,
        std::make_unique<draft::Speculator>(std::move(drafters), engine_->size().vocabulary_count,
                                            draft::SpeculatorOptions{.is_free = true}));
    CAIRN_TRY(answer.begin());
    if (row_count - 1 > lane.draft_count_max()) return 0;
    std::vector<double> seconds;
    while (answer.rest() >= row_count) {
      const Clock::time_point begin = Clock::now();
      CAIRN_TRY(batch.step(lane, answer));
      CAIRN_TRY(answer.go_on());
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return bench::quantile(seconds, 0.25);
  }

  Status show_rows(const Turn& turn) {
    double one = 0;
    for (const int32_t rows : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64}) {
      CAIRN_TRY(const double seconds, step_seconds(turn, rows));
      if (seconds == 0) break;
      if (rows == 1) one = seconds;
      fmt::print(
          "{:3} rows {:7.1f} ms, {:6.2f} ms a row: {:5.2f} x one, at most {:5.2f} x as fast\n",
          rows, seconds * 1e3, seconds * 1e3 / rows, seconds / one, rows * one / seconds);
      std::fflush(stdout);
    }
    return Ok{};
  }

  Status compare(std::string_view name, const Turns& turns, int32_t rounds, bool is_useless) {
    std::vector<double> ratios, plain_rates, rates;
    Figures last;
    for (int32_t round = 0; round < rounds; ++round) {
      engine_->cache().clear();
      Conversation without(engine_, text_, {}, false);
      Conversation with(engine_, text_, drafts_, is_useless);
      for (const Turn& turn : turns) {
        CAIRN_TRY(without.take(turn, plain_batch_));
        CAIRN_TRY(with.take(turn, batch_));
      }
      const Figures& plain = without.figures();
      last = with.figures();
      plain_rates.push_back(double(plain.tokens) / plain.seconds);
      rates.push_back(double(last.tokens) / last.seconds);
      ratios.push_back(plain.seconds / last.seconds);
    }
    fmt::print(
        "{:8} {:6} tokens {:8.1f} -> {:8.1f} a second, {:5.2f} x ({:.2f} to {:.2f}); {:.2f} "
        "tokens a step, {} of {} drafted ones right\n",
        name, last.tokens, bench::quantile(plain_rates, 0.5), bench::quantile(rates, 0.5),
        bench::quantile(ratios, 0.5), *std::min_element(ratios.begin(), ratios.end()),
        *std::max_element(ratios.begin(), ratios.end()), double(last.tokens) / double(last.steps),
        last.accepted, last.drafted);
    std::fflush(stdout);
    return Ok{};
  }

 private:
  Engine* engine_;
  const ModelText* text_;
  std::string drafts_;
  LaneBatch batch_, plain_batch_;  // With drafts, and without; they learn what steps take.
};

struct Arguments {
  std::string model, vocabulary, transcript, drafts = "auto", scenario = "all";
  int32_t rounds = 3, thread_count = 0;
};

// A text that the answer repeats, but for one token of `every`; 0: all of it.
Turns repeating(const Turns& turns, size_t count, uint32_t every) {
  Turn turn;
  for (const Turn& each : turns) {
    if (turn.asked.size() < count) {
      turn.asked.insert(turn.asked.end(), each.asked.begin(), each.asked.end());
    }
  }
  turn.asked.resize(std::min(turn.asked.size(), count));
  turn.answered = turn.asked;
  std::mt19937 random(7);
  for (Token& token : turn.answered) {
    if (every > 0 && random() % every == 0) token = Token(int32_t(random() % 500) + 10);
  }
  return {turn};
}

Status measure(const Arguments& arguments) {
  CAIRN_TRY(gguf::File vocabulary_file, gguf::File::open(arguments.vocabulary));
  CAIRN_TRY(const std::unique_ptr<ModelText> text, ModelText::load(vocabulary_file));
  CAIRN_TRY(const Turns turns, bench::read_turns(arguments.transcript, *text->tokenizer()));
  CAIRN_TRY(gguf::File file, gguf::File::open(arguments.model));
  EngineOptions options{.thread_count = arguments.thread_count};
  CAIRN_TRY(const std::unique_ptr<Engine> engine, Engine::load(std::move(file), options));
  Bench bench(engine.get(), text.get(), arguments.drafts);
  const auto wants = [&](std::string_view name) {
    return arguments.scenario == "all" || arguments.scenario == name;
  };
  const int32_t rounds = arguments.rounds;
  constexpr std::string_view kRowsBehind = "rows:";
  if (arguments.scenario == "rows" || arguments.scenario.starts_with(kRowsBehind)) {
    size_t behind = 400;
    if (arguments.scenario != "rows") {
      behind = std::strtoul(arguments.scenario.c_str() + kRowsBehind.size(), nullptr, 10);
    }
    Turn turn = repeating(turns, behind, 0).front();
    turn.answered.resize(std::min(turn.answered.size(), size_t(400)));
    return bench.show_rows(turn);
  }
  if (wants("copy")) CAIRN_TRY(bench.compare("copy", repeating(turns, 400, 0), rounds, false));
  if (wants("edit")) CAIRN_TRY(bench.compare("edit", repeating(turns, 400, 40), rounds, false));
  // Nothing of it was said before.
  Turns prose = repeating(turns, 300, 0);
  std::reverse(prose.front().answered.begin(), prose.front().answered.end());
  if (wants("prose")) CAIRN_TRY(bench.compare("prose", prose, rounds, false));
  if (wants("useless")) CAIRN_TRY(bench.compare("useless", prose, rounds, true));
  if (wants("agent")) CAIRN_TRY(bench.compare("agent", turns, rounds, false));
  return Ok{};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(
        stderr,
        "draft_replay_bench MODEL VOCABULARY TRANSCRIPT [DRAFTS [SCENARIO [ROUNDS [THREADS]]]]\n");
    return 2;
  }
  Arguments arguments{.model = argv[1], .vocabulary = argv[2], .transcript = argv[3]};
  if (argc > 4) arguments.drafts = argv[4];
  if (argc > 5) arguments.scenario = argv[5];
  if (argc > 6) arguments.rounds = std::atoi(argv[6]);
  if (argc > 7) arguments.thread_count = std::atoi(argv[7]);
  if (const Status measured = measure(arguments); !measured) {
    fmt::print(stderr, "draft_replay_bench: {}\n", measured.error().message);
    return 1;
  }
  return 0;
}
