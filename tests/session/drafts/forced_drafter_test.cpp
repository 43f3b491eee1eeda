// What forms leave no choice of, as tokens: keys, punctuation and single choices; with spaces where
// the answer has had them so far.
#include "session/drafts/forced_drafter.h"

#include <gtest/gtest.h>

#include <string>

#include "chat/output_parser.h"
#include "tests/grammar/toy_vocabulary.h"

namespace cairn::session::forced_drafter_test {
namespace {

constexpr char kSchema[] = R"({"type": "object", "properties": {
    "city": {"type": "string"}, "unit": {"enum": ["celsius"]}},
    "required": ["city", "unit"], "additionalProperties": false})";

class ForcedDrafts : public ::testing::Test {
 protected:
  void form(Result<grammar::Grammar> grammar) {
    matcher_ = grammar::matcher_of(std::move(grammar), words_);
    tokenizer_ = grammar::toy_tokenizer(words_);
    constraint_.emplace(matcher_.get(), false, &parser_);
    drafter_.emplace(&*constraint_, tokenizer_.get());
  }
  void write(std::string_view text) {
    for (const Token token : tokenizer_->encode(text, {.goes_on = true})) {
      constraint_->prepare();
      ASSERT_TRUE(constraint_->accept(token));
      text_.push_back(token);
    }
  }
  std::string drafted(int32_t count_max = 64) {
    draft::Draft draft;
    drafter_->propose({.text = text_, .count_max = count_max}, draft);
    EXPECT_EQ(draft.tokens.size(), draft.chances.size());
    EXPECT_LE(int32_t(draft.tokens.size()), count_max);
    std::string text;
    for (const Token token : draft.tokens) text += tokenizer_->piece(token);
    return text;
  }

  std::vector<std::string> words_ = {"city", "unit", "celsius"};
  chat::OutputParser parser_{chat::ChatFormat(), {}};
  std::unique_ptr<grammar::Matcher> matcher_;
  std::unique_ptr<tokenize::Tokenizer> tokenizer_;
  std::optional<ConstraintState> constraint_;
  std::optional<ForcedDrafter> drafter_;
  std::vector<Token> text_;
};

TEST_F(ForcedDrafts, AreKeysAndTheirPunctuation) {
  form(grammar::compile_schema(kSchema));
  EXPECT_EQ(drafted(), "{\"city\": \"");
  EXPECT_EQ(drafted(2), "{\"");
  write("{\"city\": \"Oslo");
  EXPECT_EQ(drafted(), "");
  write("\"");
  EXPECT_EQ(drafted(), ", \"unit\": \"celsius\"}");
  write(", \"unit\": \"celsius\"}");
  EXPECT_EQ(drafted(), "");
}

TEST_F(ForcedDrafts, HaveSpacesWhereTheAnswerHasThem) {
  form(grammar::compile_schema(kSchema));
  write("{\n  \"city\":\"Oslo\"");
  EXPECT_EQ(drafted(), ", \"unit\":\"celsius\"}");
}

TEST_F(ForcedDrafts, AreTheOnlyChoice) {
  form(grammar::compile_gbnf("root ::= \"yes\" \", \" (\"sir\" | \"madam\")"));
  EXPECT_EQ(drafted(), "yes, ");
  write("yes, s");
  EXPECT_EQ(drafted(), "ir");
}

TEST_F(ForcedDrafts, AreNoneWithoutAForm) {
  tokenizer_ = grammar::toy_tokenizer();
  constraint_.emplace(nullptr, false, &parser_);
  drafter_.emplace(&*constraint_, tokenizer_.get());
  EXPECT_EQ(drafted(), "");
}

}  // namespace
}  // namespace cairn::session::forced_drafter_test
