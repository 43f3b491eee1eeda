// Receipts and adapters by cairn.h: an answer is computed again from its receipt by the library's
// own replay, to the bit, with the adapters that it was made with.
#include <cairn.h>
#include <gtest/gtest.h>

#include "engine/generator.h"
#include "session/receipt_text.h"
#include "session/replay.h"
#include "tests/capi/opened.h"
#include "tests/engine/random_adapter.h"
#include "tests/scratch_folder.h"

namespace cairn::receipts_test {
namespace {

using test::Opened;
using test::sized;

std::string receipt_of(cairn_conversation* c) {
  cairn_error error = sized<cairn_error>();
  size_t bytes = 0;
  EXPECT_EQ(cairn_receipt(c, nullptr, 0, &bytes, &error), CAIRN_E_NO_ROOM) << error.message;
  std::string text(bytes, ' ');
  EXPECT_EQ(cairn_receipt(c, text.data(), text.size(), &bytes, &error), CAIRN_OK) << error.message;
  EXPECT_EQ(bytes, text.size());
  return text;
}

std::unique_ptr<Engine> engine_of(const session::Receipt& receipt, EngineOptions options) {
  auto file = gguf::File::open(test::nano_path());
  EXPECT_TRUE(file);
  options.memory_budget = size_t(64) << 20;
  session::take_options(receipt, options);
  auto engine = Engine::load(std::move(*file), options);
  EXPECT_TRUE(engine);
  return engine ? std::move(*engine) : nullptr;
}

void expect_equal(const std::string& text, EngineOptions options) {
  auto receipt = session::read_receipt("receipt", text);
  ASSERT_TRUE(receipt) << receipt.error().message;
  const auto engine = engine_of(*receipt, std::move(options));
  auto computed = session::replay(*engine, *receipt);
  ASSERT_TRUE(computed) << computed.error().message;
  const auto difference = difference_of(*receipt, *computed);
  EXPECT_FALSE(difference) << difference->field << " at " << difference->token << ": expected "
                           << difference->expected << ", found " << difference->found;
  EXPECT_GT(receipt->choices.size(), 3u);
}

cairn_sampling lively(cairn_model* model) {
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_sampling_init(model, &sampling, sizeof sampling);
  sampling.flags = CAIRN_SAMPLING_SEED | CAIRN_SAMPLING_RECEIPT;
  sampling.seed = 7;
  sampling.temperature = 1.2f;
  sampling.repeat_penalty = 1.1f;
  sampling.max_tokens = 20;
  return sampling;
}

TEST(Receipts, AnswersAreComputedAgain) {
  Opened opened(test::nano_path());
  cairn_conversation* c = opened.conversation();
  cairn_sampling sampling = lively(opened.model);
  const auto prompt = opened.chat("What is the capital of Norway?");
  size_t bytes = 1;
  EXPECT_EQ(cairn_receipt(c, nullptr, 0, &bytes, &opened.error), CAIRN_E_INVALID);
  EXPECT_EQ(bytes, 0u);
  for (const char* grammar : {static_cast<const char*>(nullptr), "root ::= [a-z]{6} [0-9]+"}) {
    sampling.grammar = grammar;
    ASSERT_EQ(cairn_set_sampling(c, &sampling, &opened.error), CAIRN_OK) << opened.error.message;
    ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, &opened.error), CAIRN_OK);
    // Cancelled in its midst, and gone on with.
    cairn_event event = sized<cairn_event>();
    ASSERT_EQ(cairn_next(c, &event, &opened.error), CAIRN_OK) << opened.error.message;
    cairn_cancel(c);
    ASSERT_EQ(cairn_next(c, &event, nullptr), CAIRN_CANCELLED);
    (void)test::answer_of(c);
    expect_equal(receipt_of(c), {.thread_count = 2});
  }
  // Of an answer that is made behind another one, whose sampler goes on.
  ASSERT_EQ(cairn_prefill(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
  sampling.grammar = nullptr;
  ASSERT_EQ(cairn_set_sampling(c, &sampling, nullptr), CAIRN_OK);
  (void)test::answer_of(c);
  expect_equal(receipt_of(c), {.thread_count = 1, .row_count_max = 7});
  // Without the flag there is none, and after a reset there is none.
  ASSERT_EQ(cairn_reset(c, nullptr), CAIRN_OK);
  EXPECT_EQ(cairn_receipt(c, nullptr, 0, &bytes, nullptr), CAIRN_E_INVALID);
  sampling.flags = 0;
  ASSERT_EQ(cairn_set_sampling(c, &sampling, nullptr), CAIRN_OK);
  ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
  (void)test::answer_of(c);
  EXPECT_EQ(cairn_receipt(c, nullptr, 0, &bytes, nullptr), CAIRN_E_INVALID);
  cairn_conversation_close(c);
}

TEST(Receipts, AdaptersAreTheEnginesAndTheReceipts) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("adapter.gguf");
  test::write_random_adapter(test::nano_path(), path, 3);
  const std::string options = R"({"adapters": [{"path": ")" + path + R"(", "scale": 0.25}]})";
  cairn_engine_params params = sized<cairn_engine_params>();
  params.options_json = options.c_str();
  Opened opened(test::nano_path(), params);
  cairn_conversation* c = opened.conversation();
  const auto prompt = opened.chat("Hello");
  ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, &opened.error), CAIRN_OK);

  auto file = gguf::File::open(test::nano_path());
  auto engine = Engine::load(std::move(*file), {.thread_count = 1,
                                                .memory_budget = size_t(64) << 20,
                                                .adapters = {{.path = path, .scale = 0.25f}}});
  ASSERT_TRUE(engine);
  Generator generator(engine->get());
  std::vector<Token> tokens;
  for (const cairn_token id : prompt) tokens.push_back(Token(id));
  ASSERT_TRUE(generator.read(tokens));
  EXPECT_TRUE(test::same_bits(test::logits_of(c), generator.logits()));
  Opened plain(test::nano_path());
  cairn_conversation* without = plain.conversation();
  ASSERT_EQ(cairn_sync(without, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
  EXPECT_FALSE(test::same_bits(test::logits_of(without), generator.logits()));
  cairn_conversation_close(without);

  const cairn_sampling sampling = lively(opened.model);
  ASSERT_EQ(cairn_set_sampling(c, &sampling, nullptr), CAIRN_OK);
  (void)test::answer_of(c);
  expect_equal(receipt_of(c), {.adapters = {{.path = path}}});
  cairn_conversation_close(c);
}

TEST(Receipts, WrongAdaptersAreNamed) {
  const auto message_with = [](const std::string& options) -> std::string {
    cairn_error error = sized<cairn_error>();
    cairn_model* model = nullptr;
    EXPECT_EQ(cairn_model_open(test::nano_path().c_str(), &model, nullptr), CAIRN_OK);
    cairn_engine_params params = sized<cairn_engine_params>();
    params.options_json = options.c_str();
    cairn_engine* engine = nullptr;
    EXPECT_LT(cairn_engine_open(model, &params, &engine, &error), 0);
    cairn_model_close(model);
    return error.message;
  };
  EXPECT_EQ(message_with(R"({"adapters": "one.gguf"})"),
            "options_json: adapters: expected a list, found \"one.gguf\"");
  for (const char* item : {"7", "\"\"", "{}", R"({"path": 1})", R"({"path": "a", "scale": "b"})",
                           R"({"path": "a", "weight": 1})"}) {
    const std::string message = message_with(std::string(R"({"adapters": [)") + item + "]}");
    EXPECT_TRUE(message.starts_with("options_json: adapters: expected paths or objects of path"))
        << message;
  }
  const std::string missing = message_with(R"({"adapters": ["/nowhere/one.gguf"]})");
  EXPECT_NE(missing.find("/nowhere/one.gguf"), std::string::npos) << missing;
}

}  // namespace
}  // namespace cairn::receipts_test
