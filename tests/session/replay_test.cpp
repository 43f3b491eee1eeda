// Answers of every kind, computed again from their receipts: equal on any instruction set, with any
// number of threads, in steps of any size; and what was changed in a receipt is found where it was.
#include "session/replay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/cpu_levels.h"
#include "cli/commands/load.h"
#include "session/receipt_text.h"
#include "tests/engine/random_adapter.h"
#include "tests/session/answered.h"
#include "tests/terminal_chat/tool_model.h"

namespace cairn::session::replay_test {
namespace {

constexpr char kNano[] = CAIRN_SOURCE "/assets/nano.gguf";

std::unique_ptr<Engine> engine_of(const EngineOptions& options, const std::string& path = "") {
  auto engine = cli::load_engine(path, options);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return engine ? std::move(engine).value() : nullptr;
}

ChatOptions lively(int32_t token_count = 12) {
  ChatOptions options{.sampling = {.temperature = 1.5f, .seed = 5}};
  options.token_count_max = token_count;
  options.keeps_receipts = true;
  return options;
}

// The receipt of the session's last answer, as another program would read it.
Receipt receipt_of(const ChatSession& session) {
  EXPECT_TRUE(session.receipt());
  auto text = receipt_text(session.receipt().value_or(Receipt{}));
  EXPECT_TRUE(text) << text.error().message;
  auto read = read_receipt("receipt", *text);
  EXPECT_TRUE(read) << read.error().message;
  return std::move(read).value();
}

Receipt answered_receipt(ChatSession& session, Status begun) {
  const auto answer = answered(session, std::move(begun));
  EXPECT_TRUE(answer) << answer.error().message;
  return receipt_of(session);
}

std::optional<ReceiptDifference> replayed(Engine& engine, const Receipt& receipt) {
  auto computed = replay(engine, receipt);
  EXPECT_TRUE(computed) << (computed ? "" : computed.error().message);
  return computed ? difference_of(receipt, *computed) : ReceiptDifference{};
}

void expect_equal(Engine& engine, const Receipt& receipt) {
  const auto difference = replayed(engine, receipt);
  EXPECT_FALSE(difference) << difference->field << " at " << difference->token << ": "
                           << difference->expected << " is " << difference->found;
}

// In an engine of its own, made for the receipt.
void expect_equal(EngineOptions options, const Receipt& receipt, const std::string& path = "") {
  take_options(receipt, options);
  const auto engine = engine_of(options, path);
  ASSERT_NE(engine, nullptr);
  expect_equal(*engine, receipt);
}

TEST(Replay, AnInstructionSetThreadsAndStepsChangeNothing) {
  const auto engine = engine_of({});
  ChatSession session = ChatSession::start(engine.get(), lively()).value();
  answered_receipt(session, session.say("Please count from 1 to 5, and then tell me a story."));
  // The second turn resumed from the first, which the replay does not.
  const Receipt receipt = answered_receipt(session, session.say("What is the capital of Norway?"));
  ASSERT_GT(session.lane().sequence().length(), 40);
  EXPECT_GT(receipt.choices.size(), 4u);
  for (const IsaLevel level : levels_of(detect_cpu_features())) {
    expect_equal({.isa = std::string(name(level))}, receipt);
  }
  for (const int32_t rows : {1, 7, 64}) {
    expect_equal({.thread_count = 1, .row_count_max = rows}, receipt);
    expect_equal({.thread_count = 3, .row_count_max = rows}, receipt);
  }
  expect_equal({.backend = "reference"}, receipt);
  expect_equal({.is_unpacked = true}, receipt);
}

TEST(Replay, EveryTypeOfTheCacheIsTheReceipts) {
  for (const KvType type : {KvType::f32, KvType::bf16, KvType::q8_0, KvType::q4_0}) {
    const auto engine = engine_of({.key_type = type, .value_type = KvType::f16});
    ChatSession session = ChatSession::start(engine.get(), lively(6)).value();
    expect_equal(EngineOptions{}, answered_receipt(session, session.say("Hello")));
  }
}

TEST(Replay, TheProgramIsTheReceipts) {
  const auto whole = engine_of({});
  const auto engine = engine_of({.program = {.skipped_layers = {1}}});
  ChatSession session = ChatSession::start(engine.get(), lively(6)).value();
  const Receipt receipt = answered_receipt(session, session.say("Hello"));
  EXPECT_EQ(receipt.sources.program.text(), "all but layer 1");
  expect_equal(EngineOptions{}, receipt);
  const auto difference = replayed(*whole, receipt);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->field, "fingerprint.program");
  EXPECT_EQ(difference->expected, "all but layer 1");
  EXPECT_EQ(difference->found, "all layers");
}

TEST(Replay, TheEndOfAnAnswerIsAChoiceToo) {
  const auto engine = engine_of({});
  ChatOptions options = lively(-1);
  options.sampling.temperature = 0;
  ChatSession session = ChatSession::start(engine.get(), options).value();
  const Receipt receipt = answered_receipt(session, session.say("What is the capital of France?"));
  EXPECT_EQ(receipt.finish, FinishReason::stop);
  EXPECT_TRUE(engine->tokenizer()->is_end_of_generation(receipt.choices.back().token));
  expect_equal(*engine, receipt);
}

TEST(Replay, AdaptersAreFoundByWhatTheyHold) {
  const test::ScratchFolder folder;
  const std::string first = folder.file("first.gguf"), second = folder.file("second.gguf");
  test::write_random_adapter(kNano, first, 1);
  test::write_random_adapter(kNano, second, 2);
  const auto engine =
      engine_of({.adapters = {{.path = first, .scale = 0.1f}, {.path = second, .scale = 0.05f}}});
  ASSERT_NE(engine, nullptr);
  ChatSession session = ChatSession::start(engine.get(), lively(8)).value();
  const Receipt receipt = answered_receipt(session, session.say("Hello"));
  ASSERT_EQ(receipt.sources.adapters.size(), 2u);
  // Other names and scales: those of the receipt count.
  const std::string moved = folder.file("moved.gguf");
  std::filesystem::copy(first, moved);
  expect_equal({.adapters = {{.path = moved, .scale = 3}, {.path = second, .scale = 0}}}, receipt);
  // One is missing.
  const auto lacking = engine_of({.adapters = {{.path = first}}});
  const auto difference = replayed(*lacking, receipt);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->field, "fingerprint.adapters[1]");
  EXPECT_EQ(difference->found, "none");
}

TEST(Replay, FormsOfAnswersAreFollowedAgain) {
  const auto engine = engine_of({});
  const ConstraintChoice forms[] = {
      {.json_schema =
           R"({"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]})"},
      {.grammar = "root ::= [a-z]{3} \" \" [0-9]+"},
      {.regex = "[ab]{4}c?"},
      {.choices = {"yes", "no", "perhaps"}}};
  for (const ConstraintChoice& form : forms) {
    const auto matcher = make_matcher(form, engine->text()).value();
    ChatOptions options = lively(40);
    options.matcher = matcher.get();
    options.constraint = form;
    ChatSession session = ChatSession::start(engine.get(), options).value();
    const Receipt receipt = answered_receipt(session, session.say("Hello"));
    EXPECT_GT(receipt.choices.size(), 0u);
    expect_equal(*engine, receipt);
    // Without the form other tokens are chosen, from the same logits.
    Receipt free = receipt;
    free.form = {};
    const auto difference = replayed(*engine, free);
    ASSERT_TRUE(difference);
    EXPECT_EQ(difference->field, "answer.token");
  }
}

// The end of reasoning is forced after three tokens, and the receipt says which tokens these are.
TEST(Replay, ForcedTokensAreMarked) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  terminal_chat::write_model(path, terminal_chat::kToolTemplate);
  const auto engine = engine_of({}, path);
  ASSERT_NE(engine, nullptr);
  ChatOptions options = lively(30);
  options.reasoning = chat::ReasoningMode::on;
  options.reasoning_tokens_max = 3;
  ChatSession session = ChatSession::start(engine.get(), options).value();
  const Receipt receipt = answered_receipt(session, session.say("Hello"));
  std::vector<size_t> forced;
  for (size_t i = 0; i < receipt.choices.size(); ++i) {
    if (receipt.choices[i].is_forced) forced.push_back(i);
  }
  ASSERT_FALSE(forced.empty());
  EXPECT_EQ(forced.front(), 3u);
  EXPECT_EQ(forced.back() - forced.front() + 1, forced.size());
  EXPECT_LT(forced.back() + 1, receipt.choices.size());
  expect_equal(EngineOptions{}, receipt, path);
  Receipt changed = receipt;
  changed.choices[forced.front()].is_forced = false;
  const auto difference = replayed(*engine, changed);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->token, int32_t(forced.front()));
}

TEST(Replay, CallsOfToolsAreConstrainedAgain) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  terminal_chat::write_model(path, terminal_chat::kToolTemplate);
  const auto engine = engine_of({}, path);
  ASSERT_NE(engine, nullptr);
  ChatOptions options = lively(200);
  options.tools = R"([{"type":"function","function":{"name":"look","parameters":{"type":"object",
      "properties":{"at":{"enum":["left","right"]}},"required":["at"]}}}])";
  options.tool_choice = "required";
  options.sampling.logit_bias.push_back({.token = Token(1), .bias = 8});  // A turn's end.
  ChatSession session = ChatSession::start(engine.get(), options).value();
  const Receipt receipt = answered_receipt(session, session.say("Hello"));
  ASSERT_EQ(receipt.finish, FinishReason::tool_calls);
  expect_equal(EngineOptions{}, receipt, path);
  const std::string result = "a tree";
  const Receipt behind = answered_receipt(session, session.give_results(std::span(&result, 1)));
  EXPECT_TRUE(behind.form.is_to_results);
  expect_equal(EngineOptions{}, behind, path);
}

TEST(Replay, AShiftedContextIsShiftedAgain) {
  const EngineOptions small{.context_tokens = 48, .context_policy = ContextPolicy::shift};
  const auto engine = engine_of(small);
  ChatOptions options = lively(70);
  options.sampling.ignore_eos = true;
  ChatSession session = ChatSession::start(engine.get(), options).value();
  answered_receipt(session, session.say("What is cairn?"));
  const Receipt receipt = answered_receipt(session, session.say("And what is the sea?"));
  EXPECT_EQ(receipt.choices.size(), 70u);
  expect_equal(EngineOptions{}, receipt);
}

// The beginning of an answer, and what mirostat has learned of it.
TEST(Replay, AnAnswerThatWasContinued) {
  const auto engine = engine_of({});
  ChatOptions options = lively(6);
  options.sampling.mirostat = 2;
  options.sampling.ignore_eos = true;
  ChatSession session = ChatSession::start(engine.get(), options).value();
  answered_receipt(session, session.say("Hello"));
  const Receipt receipt = answered_receipt(session, session.continue_answer());
  EXPECT_EQ(receipt.answer_prefix, 6);
  EXPECT_EQ(receipt.sampler.size(), 6u);
  expect_equal(EngineOptions{}, receipt);
}

TEST(Replay, AnAnswerThatAPersonStopped) {
  const auto engine = engine_of({});
  ChatSession session = ChatSession::start(engine.get(), lively(40)).value();
  int pieces = 0;
  ASSERT_TRUE(answered(session, session.say("Please count from 1 to 5."),
                       {.on_text = [&](std::string_view) { ++pieces; },
                        .on_other = {},
                        .on_prompt = {},
                        .wants_stop = [&] { return pieces == 3; }}));
  const Receipt receipt = receipt_of(session);
  EXPECT_EQ(receipt.finish, FinishReason::interrupted);
  EXPECT_GE(receipt.choices.size(), 3u);
  expect_equal(*engine, receipt);
}

TEST(Replay, WhatWasChangedIsFoundWhereItWas) {
  const auto engine = engine_of({});
  ChatOptions options = lively(10);
  options.sampling.temperature = 5;
  options.sampling.samplers = {"temperature"};
  options.sampling.ignore_eos = true;
  ChatSession session = ChatSession::start(engine.get(), options).value();
  const Receipt receipt = answered_receipt(session, session.say("Hello"));
  ASSERT_EQ(receipt.choices.size(), 10u);
  expect_equal(*engine, receipt);
  const auto expect_difference = [&](const char* field, int32_t token, const auto& change) {
    Receipt changed = receipt;
    change(changed);
    const auto difference = replayed(*engine, changed);
    ASSERT_TRUE(difference) << field;
    EXPECT_EQ(difference->field, field);
    EXPECT_EQ(difference->token, token) << field;
  };
  expect_difference("answer.logits", 4, [](Receipt& r) { r.choices[4].rows ^= 1; });
  expect_difference("answer.token", 7, [](Receipt& r) {
    r.choices[7].token = Token(index_of(r.choices[7].token) ^ 1);
  });
  expect_difference("answer.token", 9, [](Receipt& r) { r.choices[9].is_forced = true; });
  expect_difference("answer.digest", -1, [](Receipt& r) { r.rows[31] ^= 1; });
  expect_difference("answer.logits", 0, [](Receipt& r) { r.prompt.back() = Token(7); });
  expect_difference("fingerprint.model", -1, [](Receipt& r) { r.sources.model[0] ^= 1; });
  expect_difference("fingerprint.keys", -1, [](Receipt& r) { r.sources.key_type = KvType::q4_0; });
  // Another choice is made from equal logits, at the first token where it matters.
  const Token third = receipt.choices[3].token;
  const auto first_third = std::find_if(receipt.choices.begin(), receipt.choices.end(),
                                        [&](const Choice& c) { return c.token == third; });
  expect_difference(
      "answer.token", int32_t(first_third - receipt.choices.begin()),
      [&](Receipt& r) { r.sampling.logit_bias = {{.token = third, .text = {}, .bias = -1e9f}}; });
  for (const bool is_seed : {true, false}) {
    Receipt changed = receipt;
    if (is_seed) changed.sampling.seed ^= 1;
    if (!is_seed) changed.sampling.temperature = 0;
    const auto difference = replayed(*engine, changed);
    ASSERT_TRUE(difference);
    EXPECT_EQ(difference->field, "answer.token");
    EXPECT_GE(difference->token, 0);
  }
}

// What a stranger's receipt asks of this model and it cannot take is an error, not a crash.
TEST(Replay, ReceiptsOfStrangersAreChecked) {
  const auto engine = engine_of({});
  ChatSession session = ChatSession::start(engine.get(), lively(2)).value();
  const Receipt receipt = answered_receipt(session, session.say("Hello"));
  const auto error_with = [&](const auto& change) {
    Receipt changed = receipt;
    change(changed);
    const auto refused = replay(*engine, changed);
    EXPECT_FALSE(refused);
    return refused ? "" : refused.error().message;
  };
  EXPECT_EQ(error_with([](Receipt& r) { r.prompt[0] = Token(INT32_MAX); }).find("prompt: "), 0u);
  EXPECT_NE(error_with([](Receipt& r) {
              r.sampling.logit_bias = {{.token = Token(1 << 30), .bias = 1}};
            }).find("logit-bias"),
            std::string::npos);
  EXPECT_NE(error_with([](Receipt& r) { r.form.constraint.regex = "("; }), "");
  EXPECT_NE(error_with([](Receipt& r) { r.form.tools = "{"; }), "");
}

}  // namespace
}  // namespace cairn::session::replay_test
