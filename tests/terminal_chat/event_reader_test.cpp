// Streams of chat completions, in pieces of any size; errors in them, and streams without an end.
#include "terminal_chat/event_reader.h"

#include <gtest/gtest.h>

namespace cairn::terminal_chat::event_reader_test {
namespace {

constexpr char kStream[] =
    ": waiting\n\n"
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm.\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"So \xc3\xa4\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],"
    "\"timings\":{\"prompt_ms\":1500,\"predicted_ms\":250.5},"
    "\"memory\":{\"reused\":7,\"recomputed\":2,\"replayed\":3,\"left_out\":4,\"source\":\"disk\"},"
    "\"cut_by\":\"3 tokens\",\"receipt\":{\"receipt\":1}}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3,"
    "\"completion_tokens_details\":{\"reasoning_tokens\":1}}}\n\n"
    "data: [DONE]\n\n";

TEST(EventReader, ReadsPiecesOfAnySize) {
  const std::string_view whole = kStream;
  for (size_t size = 1; size <= whole.size(); size += size < 40 ? 1 : 97) {
    std::string text, reasoning;
    const session::AnswerHooks hooks{
        .on_text = [&](std::string_view piece) { text += piece; },
        .on_other = [&](const chat::OutputEvent& event) { reasoning += event.text; },
        .on_prompt = {},
        .wants_stop = {}};
    EventReader reader(&hooks);
    for (size_t at = 0; at < whole.size(); at += size) reader.add(whole.substr(at, size));
    EXPECT_TRUE(reader.has_text());
    EXPECT_EQ(json::to_text(reader.take_receipt()), "{\"receipt\":1}");
    Result<session::Answer> answer = std::move(reader).finish();
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(text, "So \xc3\xa4");
    EXPECT_EQ(answer->text, text);
    EXPECT_EQ(reasoning, "Hm.");
    EXPECT_EQ(answer->finish, session::FinishReason::length);
    EXPECT_EQ(answer->cut_by, "3 tokens");
    EXPECT_EQ(answer->tokens.size(), 3u);
    EXPECT_EQ(answer->reasoning_tokens, 1);
    EXPECT_EQ(answer->prompt.prompt_tokens, 9);
    EXPECT_EQ(answer->prompt.reused_tokens, 7);
    EXPECT_EQ(answer->prompt.computed_tokens, 2);
    EXPECT_EQ(answer->prompt.plan.recurrence_steps, 3);
    EXPECT_EQ(answer->left_out_tokens, 4);
    EXPECT_TRUE(answer->prompt.from_store);
    EXPECT_EQ(answer->prompt_seconds, 1.5);
    EXPECT_EQ(answer->generation_seconds, 0.2505);
  }
}

TEST(EventReader, ErrorsAreTheServers) {
  const session::AnswerHooks hooks;
  EventReader failed(&hooks);
  failed.add("data: {\"error\":{\"message\":\"no more memory\"}}\n\n");
  EXPECT_EQ(std::move(failed).finish().error().message, "no more memory (500)");
  EventReader cut(&hooks);
  cut.add("data: {\"choices\":[{\"delta\":{\"content\":\"So\"}}]}\n\ndata: {\"choi");
  EXPECT_EQ(std::move(cut).finish().error().code, ErrorCode::io);
  EXPECT_EQ(server_error(401, "{\"error\":{\"message\":\"Invalid API Key\"}}"),
            "Invalid API Key (401)");
  EXPECT_EQ(server_error(502, "<html>"), "the server answers with status 502");
}

}  // namespace
}  // namespace cairn::terminal_chat::event_reader_test
