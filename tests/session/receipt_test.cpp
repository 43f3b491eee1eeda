// Choices and their digests; where two receipts part.
#include "session/receipt.h"

#include <gtest/gtest.h>

#include <limits>

namespace cairn::session::receipt_test {
namespace {

// The definition, written out: SHA-256 over the rows as they follow each other.
TEST(ChoiceLog, DigestsTheBitsOfAllRowsSoFar) {
  const std::vector<float> first = {1.0f, -2.5f, 0.0f}, second = {0.5f, 3.0f, 1e-40f};
  ChoiceLog log;
  log.add(first, Token(7), false);
  log.add(second, Token(8), true);
  Sha256 one, both;
  one.add(std::as_bytes(std::span(first)));
  both.add(std::as_bytes(std::span(first))).add(std::as_bytes(std::span(second)));
  const std::string one_text = hex_of(one.finish()), both_text = hex_of(both.finish());
  ASSERT_EQ(log.choices().size(), 2u);
  EXPECT_EQ(fmt::format("{:016x}", log.choices()[0].rows), one_text.substr(0, 16));
  EXPECT_EQ(fmt::format("{:016x}", log.choices()[1].rows), both_text.substr(0, 16));
  EXPECT_EQ(hex_of(log.rows()), both_text);
  EXPECT_EQ(log.choices()[0].token, Token(7));
  EXPECT_FALSE(log.choices()[0].is_forced);
  EXPECT_TRUE(log.choices()[1].is_forced);
}

TEST(ChoiceLog, TakesItsLastChoiceBack) {
  const std::vector<float> first = {1.0f, -2.5f}, second = {0.5f, 3.0f}, third = {4.0f, 0.0f};
  ChoiceLog log, plain;
  for (ChoiceLog* each : {&log, &plain}) each->add(first, Token(7), false);
  log.add(second, Token(8), false);
  log.take_back();
  EXPECT_EQ(log.choices(), plain.choices());
  EXPECT_EQ(log.rows(), plain.rows());
  for (ChoiceLog* each : {&log, &plain}) each->add(third, Token(9), false);
  EXPECT_EQ(log.choices(), plain.choices());
}

// 0 and -0 are equal numbers, and so are no two NaNs: bits are what counts.
TEST(ChoiceLog, BitsCountNotValues) {
  const auto digest_of = [](float value) {
    ChoiceLog log;
    log.add(std::vector<float>{value}, Token(0), false);
    return log.rows();
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(digest_of(0.0f), digest_of(-0.0f));
  EXPECT_EQ(digest_of(nan), digest_of(nan));
}

Receipt some_receipt() {
  Receipt receipt;
  receipt.sources.adapters = {{.adapter = {1}, .scale = 0.5f}, {.adapter = {2}, .scale = 1.0f}};
  receipt.choices = {{.token = Token(3), .rows = 30},
                     {.token = Token(4), .is_forced = true, .rows = 40},
                     {.token = Token(5), .rows = 50}};
  return receipt;
}

TEST(Receipt, EqualOnesHaveNoDifference) {
  EXPECT_FALSE(difference_of(some_receipt(), some_receipt()));
  Receipt other = some_receipt();
  other.program = "another program";
  other.finish = FinishReason::interrupted;
  EXPECT_FALSE(difference_of(some_receipt(), other));
}

TEST(Receipt, EachFieldOfTheSourcesIsNamed) {
  const Receipt receipt = some_receipt();
  const auto field_of = [&](const auto& change) {
    Receipt other = some_receipt();
    change(other.sources);
    const auto difference = difference_of(receipt, other);
    EXPECT_TRUE(difference);
    if (!difference) return std::string();
    EXPECT_EQ(difference->token, -1);
    EXPECT_NE(difference->expected, difference->found);
    return difference->field;
  };
  EXPECT_EQ(field_of([](auto& s) { s.model[31] ^= 1; }), "fingerprint.model");
  EXPECT_EQ(field_of([](auto& s) { s.numerics = Numerics::fast_1; }), "fingerprint.numerics");
  EXPECT_EQ(field_of([](auto& s) { s.isa = "avx2"; }), "fingerprint.isa");
  EXPECT_EQ(field_of([](auto& s) { s.key_type = KvType::q8_0; }), "fingerprint.keys");
  EXPECT_EQ(field_of([](auto& s) { s.value_type = KvType::q8_0; }), "fingerprint.values");
  EXPECT_EQ(field_of([](auto& s) { s.adapters[1].scale = 1.5f; }), "fingerprint.adapters[1]");
  EXPECT_EQ(field_of([](auto& s) { s.adapters[0].adapter[5] = 9; }), "fingerprint.adapters[0]");
  EXPECT_EQ(field_of([](auto& s) { s.adapters.pop_back(); }), "fingerprint.adapters[1]");
  EXPECT_EQ(field_of([](auto& s) { s.adapters.push_back({}); }), "fingerprint.adapters[2]");
}

TEST(Receipt, TheFirstTokenThatDiffersIsNamed) {
  const auto difference_with = [](const auto& change) {
    Receipt other = some_receipt();
    change(other);
    const auto difference = difference_of(some_receipt(), other);
    EXPECT_TRUE(difference);
    return difference.value_or(ReceiptDifference{});
  };
  const auto token = difference_with([](Receipt& r) { r.choices[1].token = Token(9); });
  EXPECT_EQ(token.field, "answer.token");
  EXPECT_EQ(token.token, 1);
  EXPECT_EQ(token.expected, "4, forced");
  EXPECT_EQ(token.found, "9, forced");
  const auto forced = difference_with([](Receipt& r) { r.choices[2].is_forced = true; });
  EXPECT_EQ(forced.field, "answer.token");
  EXPECT_EQ(forced.token, 2);
  const auto logits = difference_with([](Receipt& r) {
    r.choices[1].rows = 41;
    r.choices[1].token = Token(9);
  });
  EXPECT_EQ(logits.field, "answer.logits") << "they come before the token that they give";
  EXPECT_EQ(logits.token, 1);
  EXPECT_EQ(logits.expected, "0000000000000028");
  const auto shorter = difference_with([](Receipt& r) { r.choices.pop_back(); });
  EXPECT_EQ(shorter.field, "answer.token");
  EXPECT_EQ(shorter.token, 2);
  EXPECT_EQ(shorter.found, "no token");
  const auto longer = difference_with([](Receipt& r) { r.choices.push_back({}); });
  EXPECT_EQ(longer.token, 3);
  EXPECT_EQ(longer.expected, "no token");
  const auto digest = difference_with([](Receipt& r) { r.rows[0] ^= 1; });
  EXPECT_EQ(digest.field, "answer.digest");
}

}  // namespace
}  // namespace cairn::session::receipt_test
