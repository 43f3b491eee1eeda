// What a plan says of a conversation against a conversation that is had, on models of every kind of
// memory; that the weights are not read. Fixed bytes are compared for every architecture in
// tests/cli/every_architecture_test.cpp.
#include "measure/model_plan.h"

#include <gtest/gtest.h>

#include "gguf/hollow.h"
#include "tests/models/golden_model.h"

namespace cairn::measure::model_plan_test {
namespace {

using test::golden_path;

constexpr int32_t kLength = 120, kMessage = 30, kAnswer = 24;

Result<ModelPlan> plan_of(const std::string& path, const PlanQuestion& question) {
  CAIRN_TRY(const gguf::File file, gguf::File::open(path));
  const gguf::File* const parts[] = {&file};
  CAIRN_TRY(gguf::HollowModel hollow, gguf::make_hollow(parts));
  return plan_model(std::move(hollow.file), question);
}

class PlannedConversation : public testing::TestWithParam<std::string> {};

TEST_P(PlannedConversation, HoldsWhatThePlanSays) {
  const std::string path = golden_path(GetParam(), ".gguf");
  EngineOptions options = test::golden_options(KvType::f16);
  options.context_tokens = kLength;
  auto plan = plan_of(path, {.engine = options});
  ASSERT_TRUE(plan) << plan.error().message;
  if (!plan->makes_text) return;
  const auto engine = test::load_engine(path, options);
  ASSERT_NE(engine, nullptr);
  memory::Memory& memory = engine->memory();
  memory::Sequence sequence = memory.new_sequence();
  const auto read_to = [&](int32_t end) {
    while (sequence.length() < end) {
      const int32_t count = std::min(engine->runner().row_count_max(), end - sequence.length());
      const std::vector<Token> tokens(size_t(count), Token(1));
      const int32_t last = count - 1;
      const StepItem item{.sequence = &sequence,
                          .tokens = tokens,
                          .outputs = {&last, 1},
                          .keeps_hidden = true};
      ASSERT_TRUE(engine->step({&item, 1}));
    }
  };
  read_to(kLength - kMessage - kAnswer);
  ASSERT_TRUE(memory.keep_anchor(sequence, memory::AnchorKind::message_start));
  memory.protect_from(sequence, sequence.length());
  read_to(kLength - kAnswer);
  while (sequence.length() + 1 < kLength) read_to(sequence.length() + 1);
  const std::vector<Token> last(1, Token(1));
  const auto transaction = memory.begin(sequence, {.tokens = last, .keeps_hidden = true});
  ASSERT_TRUE(transaction);
  EXPECT_EQ(plan->conversation_bytes, memory.usage().used_bytes());
  EXPECT_GT(plan->conversation_bytes, 0u);
}

INSTANTIATE_TEST_SUITE_P(Golden, PlannedConversation, testing::ValuesIn(test::supported_cases()),
                         [](const auto& each) { return each.param; });

TEST(ModelPlan, CountsStepsOfEachType) {
  EngineOptions options = test::golden_options(KvType::f16);
  options.context_tokens = 64;
  auto plan = plan_of(golden_path("llama", ".gguf"), {.engine = options, .conversations = 3});
  ASSERT_TRUE(plan) << plan.error().message;
  const auto total = [](const std::vector<TypeCosts>& parts) {
    StepCosts costs;
    for (const TypeCosts& part : parts) costs += part.costs;
    return costs;
  };
  const StepCosts one = total(plan->decode_one), all = total(plan->decode_all);
  EXPECT_GT(one.kv_bytes, 0);
  EXPECT_DOUBLE_EQ(all.kv_bytes, 3 * one.kv_bytes);
  EXPECT_DOUBLE_EQ(all.ops(), 3 * one.ops());
  EXPECT_LT(all.weight_bytes, 1.1 * one.weight_bytes);
  EXPECT_EQ(plan->conversations_bytes(3), 3 * plan->conversation_bytes);
  EXPECT_EQ(plan->decode_one.front().type, nullptr);
}

TEST(ModelPlan, SaysWhatIsWrong) {
  EngineOptions options = test::golden_options(KvType::f16);
  options.context_tokens = 1 << 24;
  auto plan = plan_of(golden_path("llama", ".gguf"), {.engine = options});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("context: expected at most the model's"), std::string::npos)
      << plan.error().message;
}

}  // namespace
}  // namespace cairn::measure::model_plan_test
