// Receipts as text: what is written is read back as it was, and what breaks the format is refused
// by name.
#include "session/receipt_text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/scratch_folder.h"

namespace cairn::session::receipt_text_test {
namespace {

using nlohmann::json;

// Every member is unlike its default.
Receipt full_receipt() {
  Receipt receipt;
  receipt.program = "cairn 9.9";
  receipt.sources = {.model = {1, 2, 255},
                     .numerics = Numerics::fast_1,
                     .isa = "avx2",
                     .key_type = KvType::q8_0,
                     .value_type = KvType::bf16,
                     .adapters = {{.adapter = {7}, .scale = 0.1f}},
                     .program = {.skipped_layers = {2, 5}, .expert_used_count = 3}};
  receipt.prompt = {Token(5), Token(0), Token(123456)};
  receipt.answer_prefix = 1;
  receipt.message_starts = {0, 2};
  receipt.is_raw = true;
  receipt.prompt_end = "…<think>";
  receipt.stop = {"\n\n", "end"};
  receipt.reasoning_tokens_max = 12;
  receipt.form = {.constraint = {.json_schema = "{}"},
                  .tools = "[]",
                  .tool_choice = "auto",
                  .calls_end = "x",
                  .calls_once = true,
                  .is_to_results = true};
  receipt.context_tokens = 4096;
  receipt.context_policy = ContextPolicy::shift;
  receipt.shift_keep = 3;
  receipt.sampling.temperature = 1.0f / 3;
  receipt.sampling.top_k = 7;
  receipt.sampling.ignore_eos = true;
  receipt.sampling.seed = UINT64_MAX;
  receipt.sampling.samplers = {"top_k", "temperature"};
  receipt.sampling.dry_breakers = {"\n"};
  receipt.sampling.logit_bias = {
      {.token = Token(4), .bias = -std::numeric_limits<float>::infinity()},
      {.token = Token(-1), .text = "=x", .bias = 0.7f}};
  receipt.sampler = {{1, Token(2), {0.1f, 2.0f}}, {5, Token(3), {0.3f, -1.0f}}};
  receipt.choices = {{.token = Token(9), .is_forced = false, .rows = 0xfedcba9876543210},
                     {.token = Token(2), .is_forced = true, .rows = 1}};
  receipt.rows = {255, 1};
  receipt.finish = FinishReason::length;
  return receipt;
}

std::string text_of(const Receipt& receipt) {
  auto text = receipt_text(receipt);
  EXPECT_TRUE(text) << text.error().message;
  return std::move(text).value();
}

TEST(ReceiptText, WhatIsWrittenIsReadBack) {
  for (const Receipt& receipt : {full_receipt(), [] {
                                   Receipt least;
                                   least.prompt = {Token(1)};
                                   least.context_tokens = 1;
                                   return least;
                                 }()}) {
    const std::string text = text_of(receipt);
    auto read = read_receipt("r.json", text);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(text_of(*read), text);
    EXPECT_FALSE(difference_of(receipt, *read));
    EXPECT_EQ(read->sampling.temperature, receipt.sampling.temperature);
    EXPECT_EQ(read->sampling.seed, receipt.sampling.seed);
    EXPECT_EQ(read->sampling.samplers, receipt.sampling.samplers);
    ASSERT_EQ(read->sampling.logit_bias.size(), receipt.sampling.logit_bias.size());
    for (size_t i = 0; i < receipt.sampling.logit_bias.size(); ++i) {
      EXPECT_EQ(read->sampling.logit_bias[i].bias, receipt.sampling.logit_bias[i].bias);
      EXPECT_EQ(read->sampling.logit_bias[i].text, receipt.sampling.logit_bias[i].text);
    }
    ASSERT_EQ(read->sampler.size(), receipt.sampler.size());
    for (size_t i = 0; i < receipt.sampler.size(); ++i) {
      EXPECT_EQ(read->sampler[i].memory.first, receipt.sampler[i].memory.first);
    }
    EXPECT_EQ(read->message_starts, receipt.message_starts);
    EXPECT_EQ(read->stop, receipt.stop);
    EXPECT_EQ(read->context_policy, receipt.context_policy);
    EXPECT_EQ(read->sources.program, receipt.sources.program);
  }
}

TEST(ReceiptText, FilesAreForTheirOwnerAlone) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("receipt.json");
  ASSERT_TRUE(write_receipt(path, full_receipt()));
  struct stat info = {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  auto read = load_receipt(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(text_of(*read), text_of(full_receipt()));
}

TEST(ReceiptText, TextThatIsNoUtf8IsRefusedWhenItIsWritten) {
  Receipt receipt = full_receipt();
  receipt.stop = {"\xff"};
  const auto refused = receipt_text(receipt);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("--stop"), std::string::npos) << refused.error().message;
}

// Each member of the format, with a value that it cannot have.
TEST(ReceiptText, WhatBreaksTheFormatIsNamed) {
  const json good = json::parse(text_of(full_receipt()));
  const auto error_with = [&](const char* pointer, const json& value) {
    json bad = good;
    bad[json::json_pointer(pointer)] = value;
    const auto read = read_receipt("r.json", bad.dump());
    EXPECT_FALSE(read) << pointer << " = " << value;
    return read ? std::string() : read.error().message;
  };
  const std::string digits(64, '0');
  const struct {
    const char* pointer;
    json value;
    const char* expected;
  } cases[] = {
      {"/receipt", 2, "r.json: receipt: expected the format 1, found 2"},
      {"/program", 1, "r.json: program: expected a text, found 1"},
      {"/fingerprint/model", "abc", "r.json: fingerprint.model: expected 64 hexadecimal digits"},
      {"/fingerprint/model", "zz" + digits.substr(2), "expected 64 hexadecimal digits"},
      {"/fingerprint/model", digits, "fingerprint.digest: expected that of the fields beside it"},
      {"/fingerprint/numerics", "exact-9", "expected exact-1 or fast-1, found \"exact-9\""},
      {"/fingerprint/keys", "f8", "expected one of f32, f16, bf16, q8_0, q4_0, found \"f8\""},
      {"/fingerprint/adapters/0/scale", 1e300, "fingerprint.adapters[0].scale: expected"},
      {"/prompt/tokens", json::array(), "prompt.tokens: expected at least one"},
      {"/prompt/tokens/1", -1, "prompt.tokens[1]: expected a whole number from 0 to"},
      {"/prompt/tokens/1", 1.5, "prompt.tokens[1]: expected a whole number"},
      {"/prompt/answer_prefix", 4, "prompt.answer_prefix: expected a whole number from 0 to 3"},
      {"/prompt/message_starts", {2, 2}, "message_starts[1]: expected a whole number from 3 to 2"},
      {"/prompt/message_starts", {3}, "message_starts[0]: expected a whole number from 0 to 2"},
      {"/context/tokens", 0, "context.tokens: expected a whole number from 1"},
      {"/context/policy", "slide", "context.policy: expected stop or shift, found \"slide\""},
      {"/form/raw", "no", "form.raw: expected true or false, found \"no\""},
      {"/form/stop", {""}, "form.stop: expected a list of texts"},
      {"/form/choices", {1}, "form.choices: expected a list of texts"},
      {"/sampling/seed", 5, "sampling.seed: expected a text, found 5"},
      {"/sampling/seed", "18446744073709551616", "expected a whole number of 64 bits"},
      {"/sampling/top_p", 2, "sampling.top_p: expected a number from 0 to 1, found 2"},
      {"/sampling/top_k", 1.5, "sampling.top_k: expected a number"},
      {"/sampling/samplers", {"luck"}, "sampling.samplers: expected names of stages"},
      {"/sampling/logit_bias/0/token", -2, "logit_bias[0].token: expected a whole number from 0"},
      {"/sampling/logit_bias/0/bias", "much", "logit_bias[0].bias: expected a number"},
      {"/sampler_state/1/first", 1e39, "expected a number within the range of 32 bits"},
      {"/sampler_state/1/position", 1, "sampler_state[1].position: expected a whole number from 2"},
      {"/answer/tokens", {1}, "answer.logits: expected one text for each of 1 tokens"},
      {"/answer/logits/1", "12", "answer.logits: expected 16 hexadecimal digits each, and at 1"},
      {"/answer/forced", {2}, "answer.forced[0]: expected a whole number from 0 to 1, found 2"},
      {"/answer/digest", "", "answer.digest: expected 64 hexadecimal digits"},
      {"/answer/finish", "tired", "answer.finish: expected how an answer ends"},
      {"/answer", 1, "r.json: answer: expected an object, found 1"},
  };
  for (const auto& one : cases) {
    const std::string error = error_with(one.pointer, one.value);
    EXPECT_NE(error.find(one.expected), std::string::npos) << one.pointer << ": " << error;
  }
}

// Every member is needed: a receipt that says less promises less.
TEST(ReceiptText, NoMemberMayBeMissing) {
  const json good = json::parse(text_of(full_receipt()));
  const auto expect_needed = [&](const json& bad, const std::string& what) {
    EXPECT_FALSE(read_receipt("r.json", bad.dump())) << what;
  };
  for (const auto& [key, part] : good.items()) {
    json bad = good;
    bad.erase(key);
    expect_needed(bad, key);
    if (!part.is_object()) continue;
    for (const auto& [inner, value] : part.items()) {
      // What the answer looks like may be anything; with tools their choice stands beside them, and
      // how often they are called where that is limited.
      const bool may_lack =
          key == "form" && (inner == "json_schema" || inner == "tools" || inner == "calls_once");
      if (may_lack) continue;
      bad = good;
      bad[key].erase(inner);
      expect_needed(bad, key + "." + inner);
    }
  }
}

// Whatever bytes are changed, reading ends with a receipt that can be written again, or with an
// error.
TEST(ReceiptText, AnyChangeIsReadOrRefused) {
  const std::string good = text_of(full_receipt());
  std::mt19937 random(1);
  const std::string bytes = "0123456789-+.eE\"{}[],:\\nulltrue \xff";
  int read_count = 0, refused_count = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (size_t change = random() % 3; change < 3; ++change) {
      const size_t at = random() % bad.size();
      const size_t kind = random() % 3;
      if (kind == 0) bad[at] = bytes[random() % bytes.size()];
      if (kind == 1) bad.erase(at, 1 + random() % 4);
      if (kind == 2) bad.insert(at, 1, bytes[random() % bytes.size()]);
    }
    auto read = read_receipt("r.json", bad);
    ++(read ? read_count : refused_count);
    if (!read) continue;
    const std::string written = text_of(*read);
    auto again = read_receipt("r.json", written);
    ASSERT_TRUE(again) << again.error().message << "\n" << bad;
    EXPECT_EQ(text_of(*again), written) << bad;
  }
  EXPECT_GT(read_count, 10);
  EXPECT_GT(refused_count, 1000);
}

TEST(ReceiptText, StrangersTextHasLimits) {
  EXPECT_EQ(read_receipt("r.json", "[1]").error().message,
            "r.json: expected a receipt, an object, found an array of 1");
  EXPECT_FALSE(read_receipt("r.json", ""));
  EXPECT_EQ(read_receipt("r.json", std::string(100, '[')).error().code, ErrorCode::no_room);
  EXPECT_EQ(read_receipt("r.json", std::string((size_t(64) << 20) + 1, ' ')).error().code,
            ErrorCode::no_room);
}

}  // namespace
}  // namespace cairn::session::receipt_text_test
