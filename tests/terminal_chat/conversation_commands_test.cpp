// What people do to conversations, below the command line: taking back, changing, answering again,
// going on, branches, files. What comes out is what a fresh conversation says; what is reused is
// counted; whatever is refused changes nothing. Covers chat_session.cpp and conversation.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands/load.h"
#include "session/chat_session.h"
#include "tests/cli/run_program.h"
#include "tests/session/answered.h"
#include "tests/terminal_chat/tool_model.h"
#include "tokenize/detokenizer.h"
#include "unicode/unicode.h"

namespace cairn::terminal_chat::conversation_commands_test {
namespace {

using cli::load_engine;
using cli::run_program;
using test::contents_of;
using test::ScratchFolder;
using test::write_to;

std::unique_ptr<Engine> open_engine(const std::string& path = "",
                                    const EngineOptions& options = {}) {
  auto engine = load_engine(path, options);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(engine).value() : nullptr;
}

class ConversationCommands : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(engine_ = open_engine(), nullptr); }

  session::ChatSession new_session(session::ChatOptions options = {}) {
    return session::ChatSession::start(engine_.get(), std::move(options)).value();
  }
  session::ChatSession greedy(std::string system = {}) {
    return new_session({.system = std::move(system), .sampling = {.temperature = 0}});
  }
  static session::Answer say(session::ChatSession& session, std::string_view text) {
    Result<session::Answer> answer = session::answered(session, session.say(text));
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : session::Answer{};
  }
  static std::vector<std::string> texts(const session::ChatSession& session) {
    std::vector<std::string> all;
    for (const session::Message& message : session.messages()) {
      all.push_back(message.role + ": " + message.content);
    }
    return all;
  }
  template <class T>
  static void expect_refused(const Result<T>& result, std::string_view message) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(result.error().message, message);
  }

  std::unique_ptr<Engine> engine_;
};

// A model whose random weights say all bytes.
std::string random_model(const ScratchFolder& folder) {
  const std::string path = folder.file("model.gguf");
  EXPECT_EQ(run_program({"synth", "--like", "llama", "--layers", "1", "--vocab", "300", "-o", path})
                .exit_code,
            0);
  return path;
}

TEST_F(ConversationCommands, TurnsAreTakenBackWithoutReading) {
  session::ChatSession session = greedy();
  say(session, "My cat is called Mimi.");
  const std::vector<std::string> after_first = texts(session);
  say(session, "What is 17 + 5?");
  const session::Answer third = say(session, "What is my cat called?");
  EXPECT_EQ(third.text, "Your cat is called Mimi.");
  auto plan = session.rewind(1);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->forward_tokens, 0);
  EXPECT_GT(plan->resume, 0);
  EXPECT_EQ(session.turn_count(), 2);
  const session::Answer again = say(session, "What is my cat called?");
  EXPECT_EQ(again.tokens, third.tokens);
  EXPECT_EQ(again.prompt.computed_tokens, 0) << "the whole prompt is still known";
  ASSERT_TRUE(session.rewind(2));
  EXPECT_EQ(texts(session), after_first);
  // Other words from here on: only they are read, and the answer is a fresh conversation's.
  const session::Answer other = say(session, "What is the opposite of early?");
  EXPECT_GE(other.prompt.reused_tokens, session.lane().sequence().length() / 3);
  const auto fresh_engine = open_engine();
  session::ChatSession fresh =
      session::ChatSession::start(fresh_engine.get(), {.sampling = {.temperature = 0}}).value();
  say(fresh, "My cat is called Mimi.");
  EXPECT_EQ(say(fresh, "What is the opposite of early?").tokens, other.tokens);
}

TEST_F(ConversationCommands, TakingBackAllLeavesAnEmptyConversation) {
  session::ChatSession session = greedy();
  say(session, "Hello");
  auto plan = session.rewind(1);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->target, 0);
  EXPECT_TRUE(session.messages().empty());
  expect_refused(session.rewind(1), "expected a turn to take back, found none");
  EXPECT_EQ(say(session, "What is my name?").text, "You have not told me your name.");
}

TEST_F(ConversationCommands, WrongArgumentsChangeNothing) {
  session::ChatSession session = greedy();
  expect_refused(session::answered(session, session.continue_answer()),
                 "expected an answer to continue, found none");
  expect_refused(session::answered(session, session.regenerate()),
                 "expected an answer to make again, found none");
  expect_refused(session::answered(session, session.edit("x")),
                 "expected a message to change, found none");
  expect_refused(session.last_message(), "expected a message to change, found none");
  ASSERT_FALSE(session.fork("a"));
  EXPECT_EQ(session.seed(), sample::SamplingParams().seed);
  EXPECT_EQ(session.branches().size(), 1u);
  say(session, "Hello");
  const std::vector<std::string> before = texts(session);
  const int32_t length = session.lane().sequence().length();
  for (const int32_t turns : {0, -1, 2, INT32_MAX, INT32_MIN}) {
    expect_refused(session.rewind(turns), fmt::format("expected 1 to 1 turns, found {}", turns));
  }
  const Status taken = session.fork("main");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message, "expected a new name, found \"main\" again");
  expect_refused(session.switch_to("nowhere"), "expected one of main, found \"nowhere\"");
  EXPECT_EQ(texts(session), before);
  EXPECT_EQ(session.branches().size(), 1u);
  EXPECT_EQ(session.lane().sequence().length(), length);
}

TEST_F(ConversationCommands, AnEditedMessageGetsTheAnswerOfAFreshConversation) {
  session::ChatSession session = greedy();
  say(session, "My cat is called Mimi.");
  say(session, "Count from 3 to 9.");
  EXPECT_EQ(session.last_message().value(), "Count from 3 to 9.");
  auto edited = session::answered(session, session.edit("What is my cat called?"));
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_EQ(edited->text, "Your cat is called Mimi.");
  EXPECT_GT(edited->prompt.reused_tokens, edited->prompt.computed_tokens);
  EXPECT_EQ(session.messages().size(), 4u);
  EXPECT_EQ(session.messages()[2].content, "What is my cat called?");
  EXPECT_EQ(session.messages()[3].content, edited->text);
}

TEST_F(ConversationCommands, AnEditThatFailsLeavesTheOldTurn) {
  engine_ = open_engine("", {.context_tokens = 48});
  session::ChatSession session = greedy();
  say(session, "What is the capital of France?");
  const std::vector<std::string> before = texts(session);
  std::string long_text;
  for (int word = 0; word < 60; ++word) long_text += "Norway ";
  auto edited = session::answered(session, session.edit(long_text));
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().code, ErrorCode::context_full);
  EXPECT_EQ(texts(session), before);
  EXPECT_EQ(say(session, "What is the capital of Norway?").text, "The capital of Norway is Oslo.");
}

TEST_F(ConversationCommands, AnsweringAnewComputesNoPrompt) {
  session::ChatSession session =
      new_session({.sampling = {.temperature = 4, .top_p = 1, .min_p = 0, .seed = 11}});
  const session::Answer first = say(session, "Tell me a story about Nora and a red lamp in Oslo.");
  bool differs = false;
  for (int round = 0; round < 4; ++round) {
    auto again = session::answered(session, session.regenerate());
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->prompt.computed_tokens, 0);
    EXPECT_EQ(again->prompt.prompt_tokens, first.prompt.prompt_tokens);
    EXPECT_EQ(session.messages().size(), 2u);
    EXPECT_EQ(session.messages().back().content, again->text);
    differs = differs || again->tokens != first.tokens;
  }
  EXPECT_TRUE(differs) << "other seeds";
  // The first seed from the start says the first answer again.
  session::ChatSession other =
      new_session({.sampling = {.temperature = 4, .top_p = 1, .min_p = 0, .seed = 11}});
  EXPECT_EQ(say(other, "Tell me a story about Nora and a red lamp in Oslo.").tokens, first.tokens);
}

TEST_F(ConversationCommands, GoingOnSaysWhatTheUninterruptedAnswerSays) {
  const session::ChatOptions options{.sampling = {.temperature = 1, .seed = 3}};
  constexpr std::string_view kAsked = "What is cairn?";
  session::ChatSession whole = new_session(options);
  const session::Answer expected = say(whole, kAsked);
  ASSERT_GT(expected.tokens.size(), 12u);
  for (const size_t stop_after : {size_t(0), size_t(1), size_t(5), size_t(12)}) {
    session::ChatSession session = new_session(options);
    size_t asked_count = 0;
    const session::AnswerHooks stops{
        .on_text = {}, .on_prompt = {}, .wants_stop = [&] { return asked_count++ > stop_after; }};
    auto part = session::answered(session, session.say(kAsked), stops);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->finish, session::FinishReason::interrupted);
    EXPECT_LT(part->tokens.size(), expected.tokens.size());
    auto rest = session::answered(session, session.continue_answer());
    ASSERT_TRUE(rest) << rest.error().message;
    if (!part->tokens.empty()) {
      EXPECT_EQ(rest->prompt.computed_tokens, 0) << "stopped after " << stop_after;
    }
    EXPECT_EQ(session.messages().back().content, expected.text);
    EXPECT_EQ(session.messages().back().tokens, expected.tokens);
    EXPECT_EQ(part->text + rest->text, expected.text);
  }
}

TEST_F(ConversationCommands, AnswersOfThreeTokensAtATimeAddUp) {
  session::ChatSession whole = greedy();
  const session::Answer expected = say(whole, "Count from 3 to 9.");
  session::ChatSession session =
      new_session({.sampling = {.temperature = 0}, .token_count_max = 3});
  session::Answer part = say(session, "Count from 3 to 9.");
  for (int round = 0; round < 30 && part.finish == session::FinishReason::length; ++round) {
    part = session::answered(session, session.continue_answer()).value();
    EXPECT_LE(part.prompt.computed_tokens, 1) << "but for the last token, that nobody read yet";
  }
  EXPECT_EQ(part.finish, session::FinishReason::stop);
  EXPECT_EQ(session.messages().back().content, expected.text);
  EXPECT_EQ(session.messages().back().tokens, expected.tokens);
}

// What stages with a memory learned belongs to the answer: also where another branch spoke since.
TEST_F(ConversationCommands, GoingOnKeepsWhatTheSamplerLearned) {
  session::ChatOptions options{
      .sampling = {.temperature = 3, .mirostat = 2, .ignore_eos = true, .seed = 7}};
  options.sampling.mirostat_tau = 3;
  options.sampling.mirostat_eta = 0.5f;
  constexpr std::string_view kAsked = "What is cairn?";
  constexpr size_t kTokenCount = 24;
  options.token_count_max = kTokenCount;
  session::ChatSession whole = new_session(options);
  const session::Answer expected = say(whole, kAsked);
  ASSERT_EQ(expected.tokens.size(), kTokenCount);
  options.token_count_max = 4;
  session::ChatSession session = new_session(options), saved = new_session(options);
  session::ChatSession forgetful = new_session(options);
  for (session::ChatSession* each : {&session, &saved, &forgetful}) say(*each, kAsked);
  ASSERT_TRUE(session.fork("other"));
  const ScratchFolder folder;
  const std::string path = folder.file("chat.json");
  for (size_t count = 4; count < kTokenCount; count += 4) {
    ASSERT_TRUE(session.switch_to("other"));
    ASSERT_TRUE(session::answered(session, session.regenerate()));
    session.sampling().seed = options.sampling.seed;
    ASSERT_TRUE(session.switch_to("main"));
    ASSERT_TRUE(saved.save(path));
    ASSERT_TRUE(saved.load(path));
    ASSERT_TRUE(forgetful.save(path));
    auto transcript = nlohmann::json::parse(contents_of(path));
    ASSERT_EQ(transcript["sampling"].erase("state"), 1u);
    write_to(path, transcript.dump());
    ASSERT_TRUE(forgetful.load(path));
    for (session::ChatSession* each : {&session, &saved, &forgetful}) {
      ASSERT_TRUE(session::answered(*each, each->continue_answer()));
    }
  }
  EXPECT_EQ(session.messages().back().tokens, expected.tokens);
  EXPECT_EQ(saved.messages().back().tokens, expected.tokens);
  EXPECT_NE(forgetful.messages().back().tokens, expected.tokens) << "it never mattered";
}

// Random weights say all bytes, also those of half a character, where an answer may be cut.
TEST_F(ConversationCommands, AnswersCutInACharacterKeepTheirBytes) {
  const ScratchFolder folder;
  const auto engine = open_engine(random_model(folder));
  ASSERT_NE(engine, nullptr);
  int32_t cut_count = 0;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    session::ChatOptions options{.sampling = {.temperature = 2, .seed = seed},
                                 .token_count_max = 1};
    options.sampling.top_p = 1;
    options.sampling.min_p = 0;
    session::ChatSession session = session::ChatSession::start(engine.get(), options).value();
    session::Answer part = say(session, "talk");
    for (int round = 0; round < 200 && part.finish == session::FinishReason::length; ++round) {
      const session::Message& said = session.messages().back();
      ASSERT_EQ(said.content, tokenize::decode(*engine->tokenizer(), said.tokens))
          << "seed " << seed;
      cut_count += int32_t(!said.content.empty() && uint8_t(said.content.back()) >= 0xC2);
      part = session::answered(session, session.continue_answer()).value();
    }
  }
  EXPECT_GT(cut_count, 20) << "none was cut in a character: this tests nothing";
}

TEST_F(ConversationCommands, BranchesAreConversationsOfTheirOwn) {
  session::ChatSession session = greedy();
  say(session, "I have 12 apples.");
  ASSERT_TRUE(session.fork("other"));
  EXPECT_EQ(session.active_branch(), 1u);
  const session::Answer in_other = say(session, "Repeat: kilo tera mano");
  EXPECT_GT(in_other.prompt.reused_tokens, 0) << "a branch shares what was said before it";
  auto back = session.switch_to("main");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->forward_tokens, 0);
  EXPECT_EQ(session.messages().size(), 2u);
  EXPECT_EQ(say(session, "How many apples do I have?").text, "You have 12 apples.");
  auto there = session.switch_to("other");
  ASSERT_TRUE(there);
  EXPECT_EQ(there->forward_tokens, 0) << "what was computed of the branch was kept";
  EXPECT_EQ(session.messages()[2].content, "Repeat: kilo tera mano");
  const session::Answer onwards = say(session, "How many apples do I have?");
  EXPECT_TRUE(onwards.prompt.from_cache);
  EXPECT_EQ(onwards.text, "You have 12 apples.");
  ASSERT_EQ(session.branches().size(), 2u);
  EXPECT_EQ(session.branches()[0].messages.size(), 4u);
  EXPECT_EQ(session.branches()[1].messages.size(), 6u);
  // What happens to a branch leaves the others alone.
  ASSERT_TRUE(session.rewind(3));
  EXPECT_EQ(session.branches()[0].messages.size(), 4u);
}

TEST_F(ConversationCommands, SavedConversationsGoOn) {
  const ScratchFolder folder;
  session::ChatSession session = greedy("The code is 4711.");
  say(session, "My cat is called Mimi.");
  ASSERT_TRUE(session.save(folder.file("chat.json")));
  const session::Answer expected = say(session, "What is my cat called?");
  const auto fresh_engine = open_engine();
  session::ChatSession other =
      session::ChatSession::start(fresh_engine.get(), {.sampling = {.temperature = 0}}).value();
  ASSERT_TRUE(other.load(folder.file("chat.json")));
  EXPECT_EQ(other.turn_count(), 1);
  const session::Answer got = say(other, "What is my cat called?");
  EXPECT_EQ(got.text, expected.text);
  EXPECT_EQ(got.prompt.prompt_tokens, expected.prompt.prompt_tokens) << "the system message too";
  // Files that cannot be read change nothing, nor does a folder that is not there.
  const std::vector<std::string> before = texts(other);
  write_to(folder.file("bad"), R"({"messages": [{"role": "system", "content": "Other."}, 7]})");
  EXPECT_FALSE(other.load(folder.file("bad")));
  EXPECT_FALSE(other.load(folder.file("none")));
  EXPECT_FALSE(other.save(folder.file("no/such/folder")));
  EXPECT_EQ(texts(other), before);
  ASSERT_TRUE(other.rewind(1));
  EXPECT_EQ(say(other, "What is my cat called?").prompt.prompt_tokens,
            expected.prompt.prompt_tokens);
}

// The ids of answers are kept in the file, so that what is read again is what was said.
TEST_F(ConversationCommands, SavedConversationsKeepTheirTokens) {
  const ScratchFolder folder;
  session::ChatOptions options{.sampling = {.temperature = 3, .seed = 5}, .token_count_max = 12};
  session::ChatSession session = new_session(options);
  say(session, "Hello");
  ASSERT_TRUE(session.save(folder.file("chat.json")));
  session::ChatSession loaded = new_session(options);
  ASSERT_TRUE(loaded.load(folder.file("chat.json")));
  ASSERT_FALSE(session.messages().back().tokens.empty());
  EXPECT_EQ(loaded.messages().back().tokens, session.messages().back().tokens);
  // Ids of another vocabulary mean other texts: only the text counts.
  const std::string path = folder.file("model.gguf");
  ASSERT_EQ(run_program({"synth", "--like", "llama", "--layers", "1", "--vocab", "300", "-o", path})
                .exit_code,
            0);
  const auto other_engine = open_engine(path);
  session::ChatSession other = session::ChatSession::start(other_engine.get(), {}).value();
  ASSERT_TRUE(other.load(folder.file("chat.json")));
  EXPECT_TRUE(other.messages().back().tokens.empty());
  EXPECT_EQ(other.messages().back().content, loaded.messages().back().content);
  // Who claims this vocabulary has to have ids of it.
  std::string text = contents_of(folder.file("chat.json"));
  const std::string key = "\"token_ids\": \"";
  text.insert(text.find(key) + key.size(), "999999999 ");
  write_to(folder.file("bad.json"), text);
  const Status refused = loaded.load(folder.file("bad.json"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("messages[1].token_ids: expected ids below "),
            std::string::npos)
      << refused.error().message;
}

// Without a template too: what was computed of an answer is not computed again.
TEST_F(ConversationCommands, RawConversationsReuseAnswersWhole) {
  const ScratchFolder folder;
  const auto engine = open_engine(random_model(folder));
  int32_t odd_count = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    session::ChatOptions options{
        .sampling = {.temperature = 3, .seed = seed}, .token_count_max = 40, .raw = true};
    session::ChatSession session = session::ChatSession::start(engine.get(), options).value();
    const session::Answer first = say(session, "Once upon a time");
    odd_count += int32_t(engine->tokenizer()->encode(first.text) != first.tokens);
    const int32_t held = session.lane().sequence().length();
    const session::Answer second = say(session, " there was");
    EXPECT_EQ(second.prompt.reused_tokens, held) << seed;
    auto plan = session.rewind(1);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->forward_tokens, 0);
  }
  EXPECT_GT(odd_count, 0) << "no answer was spelled oddly: this tests nothing";
}

// A template that trims messages still leaves their starts to go back to.
TEST_F(ConversationCommands, BlanksAroundMessagesCostNothing) {
  const ScratchFolder folder;
  std::string trimming = kToolTemplate;
  const std::string content = "{{ m.content }}";
  trimming.replace(trimming.find(content), content.size(), "{{ m.content | trim }}");
  write_model(folder.file("model.gguf"), trimming);
  const auto engine = open_engine(folder.file("model.gguf"));
  ASSERT_NE(engine, nullptr);
  session::ChatSession session =
      session::ChatSession::start(engine.get(), {.sampling = {.temperature = 0}}).value();
  say(session, "My cat is called Mimi.");
  say(session, "  What is the capital of Norway?\n");
  say(session, "\tWhat is my cat called? \u00a0");
  auto plan = session.rewind(2);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->forward_tokens, 0) << "of " << plan->target;
  EXPECT_GT(plan->target, 0);
}

std::vector<Token> one_byte_tokens(const Engine& engine, const std::string& text) {
  std::vector<Token> tokens;
  for (const char c : text) {
    for (const Token token : engine.tokenizer()->encode(std::string(1, c))) tokens.push_back(token);
  }
  return tokens;
}

// A model may spell a word in other tokens than the tokenizer would; what it remembers is of those.
TEST_F(ConversationCommands, AnswersKeepTheirOwnTokens) {
  const std::string text = "Your cat is called Mimi.";
  const std::vector<Token> own = one_byte_tokens(*engine_, text);
  const std::vector<Token> usual = engine_->tokenizer()->encode(text);
  ASSERT_GT(own.size(), usual.size());
  const auto tokens_with = [&](std::vector<Token> said) {
    const std::vector<session::Message> messages{
        {"user", "Hi"}, {"assistant", text, std::move(said)}, {"user", "Hi"}};
    return session::encode_conversation(*engine_, messages).value().tokens;
  };
  const auto contains = [](const std::vector<Token>& all, const std::vector<Token>& part) {
    return std::search(all.begin(), all.end(), part.begin(), part.end()) != all.end();
  };
  const std::vector<Token> plain = tokens_with({}), kept = tokens_with(own);
  EXPECT_TRUE(contains(plain, usual));
  EXPECT_TRUE(contains(kept, own));
  EXPECT_FALSE(contains(kept, usual));
  EXPECT_EQ(kept.size(), plain.size() - usual.size() + own.size());
  // Tokens that spell another text than the message are believed as far as it is the same.
  const auto spelled = [&](const std::vector<Token>& tokens) {
    std::string bytes;
    for (const Token token : tokens) bytes += engine_->tokenizer()->piece(token);
    return bytes;
  };
  const auto partly = tokens_with(one_byte_tokens(*engine_, "Your dog is called Mimi."));
  EXPECT_TRUE(contains(partly, one_byte_tokens(*engine_, "Your ")));
  EXPECT_FALSE(contains(partly, one_byte_tokens(*engine_, "Your d")));
  EXPECT_EQ(spelled(partly), spelled(plain));
}

// The same through whole turns: hot answers are full of odd spellings, and all of it is reused.
TEST_F(ConversationCommands, OddlySpelledAnswersAreReusedWhole) {
  int32_t odd_count = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    session::ChatOptions options{.sampling = {.temperature = 3, .seed = seed},
                                 .token_count_max = 12};
    options.sampling.top_p = 1;
    options.sampling.top_k = 0;
    options.sampling.min_p = 0;
    session::ChatSession session = new_session(options);
    const session::Answer first = say(session, "Hello");
    const bool is_text = unicode::valid_utf8_bytes(first.text) == first.text.size();
    const bool is_odd = engine_->tokenizer()->encode(first.text) != first.tokens;
    const int32_t held = session.lane().sequence().length();
    const session::Answer second = say(session, "Thanks");
    if (!is_text || !is_odd) continue;
    ++odd_count;
    EXPECT_EQ(second.prompt.reused_tokens, held) << first.text;
  }
  EXPECT_GT(odd_count, 0) << "no answer was spelled oddly: this tests nothing";
}

}  // namespace
}  // namespace cairn::terminal_chat::conversation_commands_test
