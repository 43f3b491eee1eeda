// The JSON that a chat template renders: what each member becomes, and what is wrong by its name.
#include "chat/chat_input.h"

#include <gtest/gtest.h>

namespace cairn::chat::chat_input_test {
namespace {

TEST(ChatInput, AListIsMessages) {
  const ChatInput input =
      parse_chat_input(R"([{"role": "user", "content": "Hi"}])", "<s>", "</s>").value();
  EXPECT_TRUE(input.messages.is(jinja::Kind::list));
  EXPECT_EQ(input.bos_token, "<s>");
  EXPECT_EQ(input.eos_token, "</s>");
  EXPECT_TRUE(input.add_generation_prompt);
  EXPECT_TRUE(input.clock.has_value());
  EXPECT_TRUE(input.variables.empty());
}

TEST(ChatInput, AnObjectHasMore) {
  const ChatInput input =
      parse_chat_input(R"({"messages": [], "tools": [], "add_generation_prompt": false,
                           "eos_token": "<e>", "now": "2026-03-14T09:26:53", "extra": 1})",
                       "<s>", "</s>")
          .value();
  EXPECT_TRUE(input.tools.is(jinja::Kind::list));
  EXPECT_FALSE(input.add_generation_prompt);
  EXPECT_EQ(input.bos_token, "<s>");
  EXPECT_EQ(input.eos_token, "<e>");
  ASSERT_EQ(input.variables.size(), 1u);
  EXPECT_EQ(input.variables[0].first, "extra");
}

TEST(ChatInput, MistakesAreNamed) {
  const auto message_of = [](std::string_view json) {
    const auto input = parse_chat_input(json, "", "");
    return input ? std::string("fine") : input.error().message;
  };
  EXPECT_EQ(message_of("5"), "messages: expected a list or an object, found int");
  EXPECT_EQ(message_of(R"({"messages": 5})"), "messages: expected a list, found int");
  EXPECT_EQ(message_of(R"({"messages": [], "now": "noon"})"),
            "now: expected a time such as 2026-03-14T09:26:53, found str");
  EXPECT_EQ(message_of(R"({"messages": [], "bos_token": 1})"),
            "bos_token: expected a string, found int");
  EXPECT_EQ(message_of(R"({"messages": [], "add_generation_prompt": 1})"),
            "add_generation_prompt: expected true or false, found int");
}

}  // namespace
}  // namespace cairn::chat::chat_input_test
