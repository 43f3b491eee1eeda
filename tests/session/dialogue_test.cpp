// Who may say what, turns that are taken back, branches; and that lists of messages share them.
#include "session/dialogue.h"

#include <gtest/gtest.h>

namespace cairn::session::dialogue_test {
namespace {

Dialogue two_turns() {
  Dialogue dialogue;
  dialogue.add({"system", "Be brief."});
  for (const char* text : {"one", "two"}) {
    dialogue.add({"user", text});
    dialogue.add_answer({"assistant", std::string(text) + "!"}, false, {}, {});
  }
  return dialogue;
}

std::string texts_of(const MessageList& messages) {
  std::string texts;
  for (const Message& message : messages) texts += message.content + "|";
  return texts;
}

TEST(Dialogue, TurnsAreTakenBack) {
  Dialogue dialogue = two_turns();
  EXPECT_EQ(dialogue.turn_count(), 2);
  EXPECT_EQ(dialogue.last_message().value(), "two");
  EXPECT_FALSE(dialogue.rewind(3));
  EXPECT_FALSE(dialogue.rewind(0));
  ASSERT_TRUE(dialogue.rewind(1));
  EXPECT_EQ(texts_of(dialogue.messages()), "Be brief.|one|one!|");
  ASSERT_TRUE(dialogue.edit("won"));
  EXPECT_EQ(texts_of(dialogue.messages()), "Be brief.|won|");
  EXPECT_FALSE(dialogue.check_continues());
  EXPECT_FALSE(dialogue.keep(3));
  ASSERT_TRUE(dialogue.keep(1));
  EXPECT_FALSE(dialogue.rewind(1)) << "no turn is left";
  EXPECT_FALSE(dialogue.last_message());
  EXPECT_FALSE(dialogue.edit("x"));
  dialogue.replace({});
  EXPECT_FALSE(dialogue.drop_answer());
}

TEST(Dialogue, BranchesShareMessages) {
  Dialogue dialogue = two_turns();
  EXPECT_FALSE(Dialogue().fork("empty"));
  ASSERT_TRUE(dialogue.fork("other"));
  EXPECT_FALSE(dialogue.fork("main"));
  ASSERT_TRUE(dialogue.drop_answer());
  dialogue.add_answer({"assistant", "2"}, false, {}, {});
  EXPECT_EQ(texts_of(dialogue.messages()), "Be brief.|one|one!|two|2|");
  const Branch& before = dialogue.branches()[0];
  EXPECT_EQ(texts_of(before.messages), "Be brief.|one|one!|two|two!|");
  for (size_t index = 0; index < 4; ++index) {
    EXPECT_EQ(before.messages.refs()[index], dialogue.messages().refs()[index]) << index;
  }
  const Status missing = dialogue.switch_to("none");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("main, other"), std::string::npos);
  ASSERT_TRUE(dialogue.switch_to("main"));
  EXPECT_EQ(dialogue.messages().back().content, "two!");
}

// The state of its samplers goes with an answer, and is forgotten with it.
TEST(Dialogue, SamplersStateIsTheLastAnswers) {
  Dialogue dialogue = two_turns();
  const sample::SamplerState state({{.position = 3, .token = Token(4), .memory = {0.1f, 2}}});
  ASSERT_TRUE(dialogue.check_continues());
  dialogue.add_answer({"assistant", "two, too"}, true, {}, state);
  EXPECT_EQ(dialogue.messages().back().content, "two, too");
  EXPECT_EQ(dialogue.messages().size(), 5u) << "the beginning is part of it";
  EXPECT_EQ(dialogue.sampler().size(), 1u);
  ASSERT_TRUE(dialogue.keep(5));
  EXPECT_EQ(dialogue.sampler().size(), 1u);
  ASSERT_TRUE(dialogue.keep(4));
  EXPECT_EQ(dialogue.sampler().size(), 0u);
}

TEST(Dialogue, CallsHaveIdsOfTheirOwn) {
  Dialogue dialogue;
  dialogue.add({"user", "Look."});
  EXPECT_FALSE(dialogue.give_results({}));
  for (int round = 0; round < 2; ++round) {
    Message said{"assistant", ""};
    said.calls = {{"same", "f", "{}"}, {"", "g", "{}"}};
    dialogue.add_answer(std::move(said), false, {}, {});
    ASSERT_EQ(dialogue.open_calls().size(), 2u);
    const std::string first = dialogue.open_calls()[0].id;
    EXPECT_EQ(first == "same", round == 0);
    const std::vector<std::string> one{"1"}, both{"1", "2"};
    EXPECT_FALSE(dialogue.give_results(one));
    ASSERT_TRUE(dialogue.give_results(both));
    EXPECT_EQ(dialogue.messages()[dialogue.messages().size() - 2].call_id, first);
    EXPECT_EQ(dialogue.messages().back().name, "g");
    EXPECT_TRUE(dialogue.open_calls().empty());
  }
}

}  // namespace
}  // namespace cairn::session::dialogue_test
