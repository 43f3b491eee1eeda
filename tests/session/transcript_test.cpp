// Conversations as files: what is written is read again, what is no conversation is refused by
// name.
#include "session/transcript.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace cairn::session::transcript_test {
namespace {

TEST(Transcript, WhatIsWrittenIsRead) {
  const cli::ScratchFolder folder;
  const std::vector<Message> messages{{"system", "Be kind."},
                                      {"user", "\"quotes\"\n\\ and \x01 and ünïcödé 🦀"},
                                      {"assistant", "", {Token(1), Token(200000)}},
                                      {"user", "again"}};
  ASSERT_TRUE(write_transcript(folder.file("chat"), {messages, 0x12345678}));
  auto read = read_transcript(folder.file("chat"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->vocabulary, 0x12345678u);
  ASSERT_EQ(read->messages.size(), messages.size());
  for (size_t index = 0; index < messages.size(); ++index) {
    EXPECT_EQ(read->messages[index].role, messages[index].role);
    EXPECT_EQ(read->messages[index].content, messages[index].content);
    EXPECT_EQ(read->messages[index].tokens, messages[index].tokens);
  }
  // The form that chat clients send.
  const auto json = nlohmann::json::parse(cli::contents_of(folder.file("chat")));
  EXPECT_EQ(json["messages"][0], (nlohmann::json{{"role", "system"}, {"content", "Be kind."}}));
}

TEST(Transcript, TheSamplersStateIsKept) {
  const cli::ScratchFolder folder;
  const Transcript written{
      .messages = {{"user", "Hi"}, {"assistant", "So.", {Token(4)}}},
      .vocabulary = 1,
      .seed = 18446744073709551615u,
      .sampler = sample::SamplerState({{.position = 3, .token = Token(4), .memory = {0.1f, 2}}})};
  ASSERT_TRUE(write_transcript(folder.file("chat"), written));
  auto read = read_transcript(folder.file("chat"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->seed, written.seed);
  ASSERT_EQ(read->sampler.size(), 1u);
  EXPECT_EQ(read->sampler.steps()[0].memory.first, 0.1f);
  for (const char* sampling :
       {"7", "{}", "{\"seed\": \"x\"}", "{\"seed\": 5}", "{\"seed\": \"5\", \"state\": \"1 2\"}"}) {
    std::ofstream(folder.file("bad"), std::ios::trunc)
        << "{\"messages\": [], \"sampling\": " << sampling << "}";
    EXPECT_EQ(read_transcript(folder.file("bad")).error().code, ErrorCode::invalid_data)
        << sampling;
  }
}

TEST(Transcript, CallsAndResultsAreKept) {
  const cli::ScratchFolder folder;
  Message call{"assistant", "I look."};
  call.reasoning = "Hm.";
  call.calls = {{"call_1", "f", "{\"a\": 1}"}, {"call_2", "g", "{}"}};
  Message result{"tool", "21"};
  result.call_id = "call_1";
  result.name = "f";
  Message second{"tool", "22"};
  const std::vector<Message> messages{{"user", "Hi"}, call, result, second, {"assistant", "So."}};
  ASSERT_TRUE(write_transcript(folder.file("chat"), {messages}));
  const auto read = read_transcript(folder.file("chat")).value().messages;
  ASSERT_EQ(read.size(), messages.size());
  EXPECT_EQ(read[1].reasoning, "Hm.");
  EXPECT_EQ(read[1].calls, call.calls);
  EXPECT_EQ(read[2].call_id, "call_1");
  EXPECT_EQ(read[2].name, "f");
  cli::write_to(
      folder.file("chat"),
      R"({"messages": [{"role": "user", "content": "x"}, {"role": "tool", "content": "y"}]})");
  EXPECT_FALSE(read_transcript(folder.file("chat"))) << "a result of no call";
}

TEST(Transcript, BytesThatAreNoTextAreReplaced) {
  const cli::ScratchFolder folder;
  const std::vector<Message> broken{{"user",
                                     "a\xff"
                                     "b"}};
  ASSERT_TRUE(write_transcript(folder.file("chat"), {broken}));
  EXPECT_EQ(read_transcript(folder.file("chat")).value().messages[0].content,
            "a\xef\xbf\xbd"
            "b");
}

TEST(Transcript, AnEmptyConversationIsOne) {
  const cli::ScratchFolder folder;
  ASSERT_TRUE(write_transcript(folder.file("chat"), {}));
  EXPECT_TRUE(read_transcript(folder.file("chat")).value().messages.empty());
}

TEST(Transcript, WhatIsNoConversationIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "line 1, column 1: expected a JSON value, found the end"},
      {"hello", "line 1, column 1: expected a JSON value, found \"h\""},
      {R"({"messages": [)", "line 1, column 15: expected a JSON value, found the end"},
      {R"({"messages": [], "messages": []})", "the key \"messages\" comes twice"},
      {"[]", "expected an object with a list \"messages\", found array"},
      {"{}", "expected an object with a list \"messages\", found object"},
      {R"({"messages": {}})", "expected an object with a list \"messages\""},
      {R"({"messages": [7]})", "messages[0]: expected an object, found number"},
      {R"({"messages": [{"content": "x"}]})", "messages[0].role: expected a string, found none"},
      {R"({"messages": [{"role": "user", "content": 1}]})",
       "messages[0].content: expected a string, found number"},
      {R"({"messages": [{"role": "assistant", "content": ""}]})",
       "messages[0].role: expected \"user\", found \"assistant\""},
      {R"({"messages": [{"role": "user", "content": ""}, {"role": "user", "content": ""}]})",
       "messages[1].role: expected \"assistant\", found \"user\""},
      {R"({"messages": [{"role": "user", "content": ""}, {"role": "system", "content": ""}]})",
       "messages[1].role: expected \"assistant\", found \"system\""},
      {R"({"messages": [{"role": "tool", "content": ""}]})", "found \"tool\""},
      {R"({"messages": [], "vocabulary": "12"})",
       ": vocabulary: expected 16 hexadecimal digits, found \"12\""},
      {R"({"messages": [], "vocabulary": "-123456789abcdef"})", ": vocabulary: expected 16"},
      {R"({"messages": [], "vocabulary": 7})",
       ": vocabulary: expected 16 hexadecimal digits, found 7"},
      {R"({"messages": [{"role": "user", "content": ""},
                        {"role": "assistant", "content": "x", "token_ids": "1 -2"}]})",
       "messages[1].token_ids: expected numbers with blanks between them, found \"-2\""},
      {R"({"messages": [{"role": "user", "content": ""},
                        {"role": "assistant", "content": "x", "token_ids": "99999999999"}]})",
       "messages[1].token_ids: expected numbers"},
      {R"({"messages": [{"role": "user", "content": ""},
                        {"role": "assistant", "content": "x", "token_ids": [1]}]})",
       "messages[1].token_ids: expected a string, found array"},
  };
  const cli::ScratchFolder folder;
  for (const auto& [text, message] : cases) {
    cli::write_to(folder.file("chat"), text);
    auto read = read_transcript(folder.file("chat"));
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_data) << text;
    EXPECT_TRUE(read.error().message.starts_with(folder.file("chat") + ": ")) << text;
    EXPECT_NE(read.error().message.find(message), std::string::npos) << read.error().message;
  }
}

TEST(Transcript, DeepNestingIsNoDanger) {
  const cli::ScratchFolder folder;
  cli::write_to(folder.file("chat"), std::string(200000, '['));
  EXPECT_FALSE(read_transcript(folder.file("chat")));
  cli::write_to(folder.file("chat"), std::string(200000, '[') + std::string(200000, ']'));
  EXPECT_FALSE(read_transcript(folder.file("chat")));
}

// Their values would take many times their bytes.
TEST(Transcript, LargeFilesAreRefused) {
  const cli::ScratchFolder folder;
  const std::string path = folder.file("chat.json");
  cli::write_to(path, "");
  std::filesystem::resize_file(path, (size_t(64) << 20) + 1);
  const auto bytes = read_transcript(path);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().message, path + ": expected at most 67108864 bytes, found 67108865");
  std::string many = "{\"messages\":[";
  for (int i = 0; i <= 1 << 22; ++i) many += "0,";
  cli::write_to(path, many + "0]}");
  const auto values = read_transcript(path);
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().code, ErrorCode::no_room) << values.error().message;
}

// A file is replaced as a whole or not at all.
TEST(Transcript, AFailedWriteLeavesTheOldFile) {
  const cli::ScratchFolder folder;
  EXPECT_FALSE(write_transcript(folder.file("no/such/chat"), {}));
  std::filesystem::create_directory(folder.file("chat"));
  cli::write_to(folder.file("chat") + "/inside", "kept");
  EXPECT_FALSE(write_transcript(folder.file("chat"), {{{"user", "x"}}}));
  EXPECT_EQ(cli::contents_of(folder.file("chat") + "/inside"), "kept");
  int32_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.file(""))) {
    entries += int32_t(entry.exists());
  }
  EXPECT_EQ(entries, 1) << "no half-written file stays";
}

}  // namespace
}  // namespace cairn::session::transcript_test
