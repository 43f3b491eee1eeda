// Adapters that requests choose, of one engine that has loaded several: as peft computes each
// choice, as an engine computes that has only what was chosen, and apart from each other wherever
// the memory keeps something.
#include "engine/adapters.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <filesystem>
#include <numeric>

#include "engine/generator.h"
#include "engine/schedule/scheduler.h"
#include "engine/verifier.h"
#include "tests/engine/random_adapter.h"
#include "tests/models/folder_case.h"
#include "tests/sanitized.h"
#include "tests/scratch_folder.h"

namespace cairn::test::adapters_test {
namespace {

using Uses = std::vector<AdapterUse>;

const std::string kModel = "Tiny-Llama-3.1-8B-Instruct";

std::string adapter_path(const std::string& name) {
  return std::string(CAIRN_FIXTURES) + "/adapters/" + name;
}

EngineOptions with(const Uses& uses) {
  EngineOptions options = golden_options(KvType::f32);
  for (const AdapterUse& use : uses) {
    options.adapters.push_back({.path = adapter_path(use.name + ".gguf"), .scale = use.scale});
  }
  return options;
}

std::unique_ptr<Engine> engine_with(const Uses& uses) {
  return load_engine(folder_path(kModel + ".gguf"), with(uses));
}

// A choice, and the logits that peft has for it.
struct Choice {
  Uses uses;
  std::string logits;
};

std::vector<Choice> choices() {
  return {{{}, folder_path(kModel + ".f32")},
          {{{"tone", 1}}, adapter_path("tone.f32")},
          {{{"facts", 1}}, adapter_path("facts.f32")},
          {{{"tone", 0.5f}, {"facts", -1.25f}}, adapter_path("tone-mix.f32")}};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The logits of all tokens, read in steps of `step`.
std::vector<float> logits_of(Engine& engine, const Selection& selection, size_t step = 24) {
  memory::Sequence sequence = engine.memory().new_sequence(selection.variant());
  const std::vector<Token> all = folder_tokens();
  std::vector<float> logits;
  for (size_t begin = 0; begin < all.size(); begin += step) {
    const auto part = std::span(all).subspan(begin, std::min(step, all.size() - begin));
    const std::vector<float> rows = append(engine, sequence, part);
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  return logits;
}

TEST(Adapters, EachChoiceIsPeftsAndThatOfAnEngineWithNothingElse) {
  const auto engine = engine_with({{"tone", 1}, {"facts", 0}});
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->default_selection().uses().size(), 1u);
  for (const Choice& choice : choices()) {
    SCOPED_TRACE(choice.logits);
    const Selection selection = engine->select(choice.uses).value();
    const std::vector<float> logits = logits_of(*engine, selection);
    EXPECT_LE(error_against(logits, choice.logits), 2e-4);
    const auto alone = engine_with(choice.uses);
    ASSERT_NE(alone, nullptr);
    EXPECT_TRUE(same_bits(logits, logits_of(*alone, alone->default_selection())));
    EXPECT_EQ(alone->default_selection().variant(), selection.variant());
    for (const size_t step : {1, 5}) {
      EXPECT_TRUE(same_bits(logits, logits_of(*engine, selection, step))) << step;
    }
  }
}

// Token by token in turns; what the others compute between changes nothing.
TEST(Adapters, RequestsInterleave) {
  const auto engine = engine_with({{"tone", 1}, {"facts", 1}});
  ASSERT_NE(engine, nullptr);
  std::vector<Selection> selections;
  std::vector<memory::Sequence> sequences;
  std::vector<std::vector<float>> expected, found;
  for (const Choice& choice : choices()) {
    selections.push_back(engine->select(choice.uses).value());
    sequences.push_back(engine->memory().new_sequence(selections.back().variant()));
    expected.push_back(logits_of(*engine, selections.back()));
    found.emplace_back();
  }
  for (const Token token : folder_tokens()) {
    for (size_t index = 0; index < sequences.size(); ++index) {
      const std::vector<float> row = append(*engine, sequences[index], {&token, 1});
      found[index].insert(found[index].end(), row.begin(), row.end());
    }
  }
  for (size_t index = 0; index < expected.size(); ++index) {
    EXPECT_TRUE(same_bits(found[index], expected[index])) << index;
    for (size_t other = 0; other < index; ++other) {
      EXPECT_FALSE(same_bits(found[index], found[other]));
    }
  }
}

// All of them in the same steps.
TEST(Adapters, RequestsShareSteps) {
  const auto engine = engine_with({{"tone", 1}, {"facts", 1}});
  ASSERT_NE(engine, nullptr);
  const std::vector<Token> tokens = folder_tokens();
  std::vector<std::vector<float>> expected, found;
  std::deque<memory::Sequence> sequences;
  for (const Choice& choice : choices()) {
    const Selection selection = engine->select(choice.uses).value();
    expected.push_back(logits_of(*engine, selection));
    // Twice each, so that items of a variant do not stand side by side.
    for (int copy = 0; copy < 2; ++copy) {
      sequences.push_back(engine->memory().new_sequence(selection.variant()));
    }
  }
  found.resize(sequences.size());
  for (size_t begin = 0; begin < tokens.size(); begin += 3) {
    const auto piece = std::span(tokens).subspan(begin, std::min<size_t>(3, tokens.size() - begin));
    std::vector<int32_t> outputs(piece.size());
    std::iota(outputs.begin(), outputs.end(), 0);
    std::vector<StepItem> items;
    std::vector<size_t> owners;
    for (size_t i = 0; i < sequences.size(); ++i) {
      owners.push_back((i * 2) % sequences.size() + (i * 2) / sequences.size());
      items.push_back({.sequence = &sequences[owners[i]], .tokens = piece, .outputs = outputs});
    }
    const auto keep = [&](size_t item, const StepOutputs& rows) {
      std::vector<float>& kept = found[owners[item]];
      for (int32_t row = 0; row < rows.count(); ++row) {
        kept.insert(kept.end(), rows.logits(row).begin(), rows.logits(row).end());
      }
      return int32_t(piece.size());
    };
    Result<StepReport> report = engine->step(items, keep);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->item_count, items.size());
  }
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(same_bits(found[i], expected[i / 2])) << i;
}

std::vector<float> after(Engine& engine, Generator& generator, std::span<const Token> prompt,
                         PromptReport* report = nullptr) {
  Result<PromptReport> read = generator.read(prompt);
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  if (report != nullptr && read) *report = *read;
  EXPECT_EQ(generator.sequence().variant(), generator.selection().variant());
  const std::span<const float> logits = generator.logits();
  EXPECT_EQ(logits.size(), size_t(engine.size().vocabulary_count));
  return {logits.begin(), logits.end()};
}

TEST(Adapters, ASequenceServesItsOwnSelectionOnly) {
  const auto engine = engine_with({{"tone", 0}, {"facts", 0}});
  ASSERT_NE(engine, nullptr);
  const std::vector<Token> prompt = folder_tokens();
  std::vector<std::vector<float>> fresh;
  for (const Choice& choice : choices()) {
    const auto alone = engine_with(choice.uses);
    Generator generator(alone.get());
    fresh.push_back(after(*alone, generator, prompt));
  }
  Generator generator(engine.get());
  for (int round = 0; round < 2; ++round) {
    for (size_t index = 0; index < fresh.size(); ++index) {
      generator.select(engine->select(choices()[index].uses).value());
      PromptReport report;
      EXPECT_TRUE(same_bits(after(*engine, generator, prompt, &report), fresh[index])) << index;
      EXPECT_EQ(report.reused_tokens, round == 0 ? 0 : 24);
      EXPECT_EQ(report.plan.limited_by, round == 0 && index > 0 ? "adapters" : "");
      // What follows is of the same selection, and so is what is gone back to.
      ASSERT_TRUE(generator.advance(Token(9)));
      EXPECT_TRUE(same_bits(after(*engine, generator, prompt), fresh[index])) << index;
      ASSERT_TRUE(generator.finish_turn());
    }
  }
}

// A generator's logits come back from its hidden row, by its own output matrix.
TEST(Adapters, LogitsComeBackBehindOthers) {
  const auto engine = engine_with({{"tone", 0}, {"facts", 0}});
  ASSERT_NE(engine, nullptr);
  std::vector<std::unique_ptr<Generator>> generators;
  std::vector<std::vector<float>> logits;
  for (const Choice& choice : choices()) {
    generators.push_back(std::make_unique<Generator>(engine.get()));
    generators.back()->select(engine->select(choice.uses).value());
    logits.push_back(after(*engine, *generators.back(), folder_tokens()));
  }
  for (size_t index = 0; index < logits.size(); ++index) {
    const std::span<const float> again = generators[index]->logits();
    EXPECT_TRUE(same_bits({again.begin(), again.end()}, logits[index])) << index;
  }
}

TEST(Adapters, EqualChoicesAreOne) {
  const auto engine = engine_with({{"tone", 1}, {"facts", 1}});
  ASSERT_NE(engine, nullptr);
  const auto variant = [&](const Uses& uses) { return engine->select(uses).value().variant(); };
  const memory::Variant both = engine->default_selection().variant();
  EXPECT_EQ(variant({{"facts", 1}, {"tone", 1}}), both);
  EXPECT_EQ(variant({{"facts", 0.5f}, {"tone", 1}, {"facts", 0.5f}}), both);
  EXPECT_EQ(variant({{"tone", 0}, {"facts", -0.0f}}), memory::Variant::plain);
  EXPECT_EQ(variant({{"tone", 1}, {"tone", -1}}), memory::Variant::plain);
  EXPECT_EQ(variant({{"tone", 1}, {"facts", 0}}), variant({{"tone", 1}}));
  EXPECT_NE(variant({{"tone", 1}}), variant({{"facts", 1}}));
  EXPECT_NE(variant({{"tone", 1}}), variant({{"tone", 0.5f}}));
  EXPECT_NE(variant({{"tone", 1}}), both);
  // The number is that of the weights and scales, wherever they lie and whatever they are called.
  const test::ScratchFolder scratch;
  std::filesystem::copy_file(adapter_path("tone.gguf"), scratch.file("moved.gguf"));
  EngineOptions options = golden_options(KvType::f32);
  options.adapters = {{.path = scratch.file("moved.gguf"), .scale = 1, .name = "other"}};
  const auto other = load_engine(folder_path(kModel + ".gguf"), options);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->adapters()[0].name, "other");
  EXPECT_EQ(other->default_selection().variant(), variant({{"tone", 1}}));
}

TEST(Adapters, NamesAndScalesAreChecked) {
  const auto engine = engine_with({{"tone", 1}, {"facts", 1}, {"tone", 0}});
  ASSERT_NE(engine, nullptr);
  ASSERT_EQ(engine->adapters().size(), 3u);
  EXPECT_EQ(engine->adapters()[2], (AdapterUse{"tone-2", 0}));
  const auto refusal = [](Engine& of, const Uses& uses) {
    const Result<Selection> selection = of.select(uses);
    return selection ? "none" : selection.error().message;
  };
  EXPECT_EQ(refusal(*engine, {{"ton", 1}}),
            "adapter: expected one of tone, facts, tone-2, found ton");
  for (const float scale : {NAN, INFINITY, -INFINITY}) {
    EXPECT_NE(refusal(*engine, {{"tone", scale}}).find("adapter tone: expected a finite scale"),
              std::string::npos);
  }
  // alpha / rank is 1.5.
  EXPECT_NE(refusal(*engine, {{"tone", 3e38f}}), "none");
  const auto none = engine_with({});
  EXPECT_EQ(refusal(*none, {{"tone", 1}}), "adapter: expected none, as none is loaded, found tone");
  EXPECT_EQ(refusal(*none, {}), "none");
}

// Names stand in lists, between blanks.
TEST(Adapters, NamesOfFilesHaveNoBlanks) {
  const test::ScratchFolder scratch;
  std::filesystem::copy_file(adapter_path("tone.gguf"), scratch.file("my tone.gguf"));
  EngineOptions options = golden_options(KvType::f32);
  options.adapters = {{.path = scratch.file("my tone.gguf")}};
  const auto engine = load_engine(folder_path(kModel + ".gguf"), options);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->adapters()[0].name, "my-tone");
}

TEST(Adapters, AnAdapterIsNoModel) {
  const std::string path = adapter_path("tone.gguf");
  auto loaded = Engine::load(gguf::File::open(path).value(), golden_options(KvType::f32));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message, path + ": expected a model, found an adapter of one");
}

// Many scales come and go; those that somebody holds stay ready.
TEST(Adapters, PlansAreBounded) {
  const auto engine = engine_with({{"tone", 0}});
  ASSERT_NE(engine, nullptr);
  const Selection held = engine->select(Uses{{"tone", 1}}).value();
  const std::vector<float> expected = logits_of(*engine, held);
  const size_t two_bytes = engine->runner().plan_bytes();
  for (int32_t round = 1; round <= 40; ++round) {
    ASSERT_TRUE(engine->select(Uses{{"tone", 1 + 0.1f * float(round)}}));
    ASSERT_LE(engine->runner().variant_count(), 9);
    ASSERT_LE(engine->runner().plan_bytes(), 8 * two_bytes);
  }
  EXPECT_TRUE(same_bits(logits_of(*engine, held), expected));
  std::vector<Selection> all;
  for (int32_t round = 1; round <= 12; ++round) {
    all.push_back(engine->select(Uses{{"tone", 0.1f * float(round)}}).value());
  }
  EXPECT_GE(engine->runner().variant_count(), 13);
  for (const Selection& selection : all) {
    const bool is_held = selection.variant() == held.variant();
    EXPECT_EQ(same_bits(logits_of(*engine, selection), expected), is_held);
  }
  all.clear();
  ASSERT_TRUE(engine->select(Uses{{"tone", 9}}));
  EXPECT_EQ(engine->runner().variant_count(), 9) << "the model's own, and eight";
}

// The plans of one selection, of an engine with one adapter.
size_t bytes_of_plans(Engine& engine) {
  const size_t before = engine.runner().plan_bytes();
  EXPECT_TRUE(engine.select(Uses{{"tone", 0.125f}}));
  return engine.runner().plan_bytes() - before;
}

std::unique_ptr<Engine> engine_with_room(size_t budget) {
  EngineOptions options = with({{"tone", 0}});
  options.memory_budget = budget;
  return load_engine(folder_path(kModel + ".gguf"), options);
}

constexpr size_t kCounted = 8;  // Selections whose plans are counted at load.

// So that what is counted when an engine is loaded is what it takes.
TEST(Adapters, AFewPlansAreCountedAtLoad) {
  const auto with_one = engine_with({{"tone", 0}}), without = engine_with({});
  const size_t bytes = bytes_of_plans(*with_one);
  const FixedBytes more = with_one->fixed_bytes(), plain = without->fixed_bytes();
  EXPECT_EQ(more.plans, plain.plans + kCounted * bytes);
  EXPECT_GT(more.weights, plain.weights) << "those of the adapter";
  EXPECT_GE(more.workspace, plain.workspace);
  if (test::kIsSanitized) return;  // Which have heaps of their own.
  const size_t before = ::mallinfo2().uordblks;
  const Selection selection = with_one->select(Uses{{"tone", 0.25f}}).value();
  const size_t taken = ::mallinfo2().uordblks - before;
  EXPECT_LE(taken, bytes) << "what is counted is not less than what is allocated";
  EXPECT_GE(2 * taken, bytes);
}

// What clients hold beyond these takes of the memory's budget, and there is an end of it.
TEST(Adapters, MorePlansAreWithinTheBudget) {
  const size_t bytes = bytes_of_plans(*engine_with({{"tone", 0}}));
  const size_t budget = 4 * bytes + (size_t(1) << 20);
  const auto engine = engine_with_room(budget);
  ASSERT_NE(engine, nullptr);
  std::vector<Selection> held;
  std::optional<Error> refusal;
  while (!refusal && held.size() < 10000) {
    Result<Selection> selection = engine->select(Uses{{"tone", 1 + 0.01f * float(held.size())}});
    if (selection) {
      held.push_back(std::move(selection).value());
    } else {
      refusal = std::move(selection).error();
    }
    const memory::Usage usage = engine->memory().usage();
    const size_t beyond = std::max(held.size(), kCounted) - kCounted;
    ASSERT_EQ(usage.other_bytes, beyond * bytes);
    ASSERT_LE(usage.used_bytes() + usage.warm_bytes, budget);
  }
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, ErrorCode::memory_full);
  EXPECT_NE(refusal->message.find("the plans of these adapters need"), std::string::npos)
      << refusal->message;
  EXPECT_EQ(held.size(), kCounted + budget / bytes);
  // Nobody holds them, and a conversation needs the room.
  held.clear();
  EXPECT_GT(engine->idle_plan_bytes(), 0u);
  const std::vector<Token> text(128, Token(5));
  std::deque<memory::Sequence> sequences;
  Status stepped = Ok{};
  while (stepped && sequences.size() < 10000) {
    sequences.push_back(engine->memory().new_sequence());
    const StepItem item{.sequence = &sequences.back(), .tokens = text};
    Result<StepReport> report = engine->step(std::span(&item, 1));
    if (!report) stepped = std::move(report).error();
  }
  ASSERT_FALSE(stepped);
  EXPECT_EQ(stepped.error().code, ErrorCode::memory_full);
  EXPECT_EQ(engine->memory().usage().other_bytes, 0u) << "plans that nobody uses give way";
  EXPECT_EQ(engine->idle_plan_bytes(), 0u);
}

// A job that waits has no plans, as answers do.
class ScaledJob final : public Job {
 public:
  ScaledJob(Engine* engine, float scale, std::vector<Status>* ended)
      : engine_(engine), lane_(engine), uses_{{"tone", scale}}, ended_(ended) {
    lane_.select(engine->resolve(uses_).value());
  }
  Lane* lane() override { return &lane_; }
  memory::Variant variant() const override { return lane_.selection().variant(); }
  std::span<const Token> prompt() const override { return prompt_; }
  memory::ResumePlan plan() override { return lane_.plan_reading(prompt_); }
  bool starts_slowly() const override { return !engine_->has_plans(lane_.selection()); }
  Status start() override {
    CAIRN_TRY(Selection selection, engine_->select(uses_));
    lane_.select(std::move(selection));
    CAIRN_TRY(lane_.start(prompt_));
    return Ok{};
  }
  Status advance() override {
    ++said_count_;
    return is_done() ? Status(Ok{}) : lane_.push(Token(7));
  }
  bool is_done() const override { return said_count_ == 20; }
  void end(Status status) override { ended_->push_back(std::move(status)); }

 private:
  Engine* engine_;
  Lane lane_;
  Uses uses_;
  std::vector<Token> prompt_ = std::vector<Token>(20, Token(3));
  std::vector<Status>* ended_;
  int32_t said_count_ = 0;
};

// Where there is no room for the plans of all who ask, some wait for others, and nobody fails.
TEST(Adapters, RequestsWaitForRoomForTheirPlans) {
  const size_t bytes = bytes_of_plans(*engine_with({{"tone", 0}}));
  const auto roomy = engine_with_room(size_t(64) << 20);
  const size_t of_one = roomy->memory().plan(roomy->memory().new_sequence(), 40).new_bytes;
  const auto engine = engine_with_room(2 * bytes + 30 * of_one);
  ASSERT_NE(engine, nullptr);
  Scheduler scheduler(engine.get());
  std::vector<Status> ended;
  for (int32_t index = 0; index < 24; ++index) {
    scheduler.submit(JobId{index},
                     std::make_unique<ScaledJob>(engine.get(), 1 + 0.01f * float(index), &ended),
                     {});
  }
  int32_t most = 0;
  for (int32_t steps = 0; scheduler.has_work(); ++steps) {
    ASSERT_LT(steps, 10000);
    ASSERT_TRUE(scheduler.step());
    most = std::max(most, engine->runner().variant_count());
    const memory::Usage usage = engine->memory().usage();
    ASSERT_LE(usage.used_bytes() + usage.warm_bytes, usage.budget_bytes);
  }
  ASSERT_EQ(ended.size(), 24u);
  for (const Status& status : ended) EXPECT_TRUE(status) << status.error().message;
  EXPECT_GT(most, int32_t(kCounted) + 1);
  EXPECT_LT(most, 24) << "there was room for all of them";
}

TEST(Adapters, ExpertsAreAdaptedAsPeftDoes) {
  EngineOptions options = golden_options(KvType::f32);
  options.adapters = {{.path = adapter_path("experts.gguf")}};
  const auto engine = load_engine(folder_path("qwen3moe-tiny.gguf"), options);
  ASSERT_NE(engine, nullptr);
  const std::vector<float> logits = logits_of(*engine, engine->default_selection());
  EXPECT_LE(error_against(logits, adapter_path("experts.f32")), 2e-4);
  EXPECT_GT(error_against(logits, folder_path("qwen3moe-tiny.f32")), 0.1);
  for (const size_t step : {1, 5}) {
    EXPECT_TRUE(same_bits(logits, logits_of(*engine, engine->default_selection(), step))) << step;
  }
  const std::vector<float> without = logits_of(*engine, Selection());
  EXPECT_LE(error_against(without, folder_path("qwen3moe-tiny.f32")), 2e-4);
}

// The file of packed weights is the model's alone: with adapters, without, and with others.
TEST(Adapters, PackedWeightsAreKeptWithoutThem) {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.file("packed");
  for (const Uses& uses : {Uses{{"tone", 1}}, Uses{}, Uses{{"facts", 1}}, Uses{{"tone", 1}}}) {
    EngineOptions options = with(uses);
    options.pack_cache = folder;
    const auto engine = load_engine(folder_path(kModel + ".gguf"), options);
    const auto expected = engine_with(uses);
    ASSERT_NE(engine, nullptr);
    EXPECT_TRUE(same_bits(logits_of(*engine, engine->default_selection()),
                          logits_of(*expected, expected->default_selection())));
    const std::filesystem::directory_iterator files(folder);
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
  }
}

// Every kind of state, with all matrices changed: the promise on the memory holds under a selection
// as without.
TEST(Adapters, TheMemoryIsExactUnderASelection) {
  const test::ScratchFolder scratch;
  const std::vector<std::string>& supported = supported_cases();
  int32_t model_count = 0;
  for (const char* name :
       {"llama", "gemma3", "llama4", "qwen3moe", "granitehybrid", "lfm2", "mamba", "falcon_h1",
        "qwen3next", "jamba", "gemma3n", "deepseek2lite", "rwkv7", "kimi_linear", "plamo2"}) {
    if (!std::binary_search(supported.begin(), supported.end(), name)) continue;
    SCOPED_TRACE(name);
    ++model_count;
    const std::string path = scratch.file(std::string(name) + ".gguf");
    write_random_adapter(golden_path(name, ".gguf"), path, 5);
    EngineOptions options = golden_options(KvType::f16);
    options.log_step = 8;
    options.adapters = {{.path = path}};
    const auto engine = load_engine(golden_path(name, ".gguf"), options);
    ASSERT_NE(engine, nullptr);
    ASSERT_NE(engine->default_selection().variant(), memory::Variant::plain);
    EXPECT_FALSE(same_bits(logits_of(*engine, engine->default_selection()),
                           logits_of(*engine, Selection())));
    Result<VerifyReport> report =
        verify(*engine, {.program_count = 1, .operation_count = 16, .sequence_tokens_max = 80});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->differing_bits(), 0) << report->first_difference;
  }
  EXPECT_GE(model_count, 12);
}

}  // namespace
}  // namespace cairn::test::adapters_test
