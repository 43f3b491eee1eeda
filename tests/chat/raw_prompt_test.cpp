// Conversations without a template: what is spliced, what is read as text, what may be special.
#include "chat/raw_prompt.h"

#include <gtest/gtest.h>

#include "tests/tokenize/small_vocabularies.h"

namespace cairn::chat::raw_prompt_test {
namespace {

using Tokens = std::vector<Token>;

class RawPrompt : public testing::Test {
 protected:
  void SetUp() override { build(tokenize::byte_level_vocabulary()); }

  void build(tokenize::SmallVocabulary small) {
    small.add("<|end|>", tokenize::TokenType::control);
    auto built = tokenize::Tokenizer::build(small.source);
    ASSERT_TRUE(built) << built.error().message;
    tokenizer_ = std::move(built).value();
  }
  Prompt prompt(const std::vector<Message>& messages, std::string_view system = {}) const {
    return encode_raw(*tokenizer_, system, messages);
  }
  std::string spelled(const Tokens& tokens) const {
    std::string text;
    for (const Token token : tokens) text += tokenizer_->piece(token);
    return text;
  }
  // A token for each byte, as the tokenizer would not write it.
  Tokens bytes_of(std::string_view text) const {
    Tokens tokens;
    for (const char byte : text) tokenizer_->encode_to(std::string_view(&byte, 1), {}, tokens);
    return tokens;
  }
  Tokens plain(std::string_view text) const {
    return tokenizer_->encode(text, {.add_special = true, .parse_special = true});
  }

  std::unique_ptr<tokenize::Tokenizer> tokenizer_;
};

TEST_F(RawPrompt, TextsAreOneText) {
  EXPECT_EQ(prompt({{"user", "the"}, {"assistant", "aa"}, {"user", "aa"}}, "the ").tokens,
            plain("the theaaaa"));
}

TEST_F(RawPrompt, AnswersKeepTheirTokens) {
  const Tokens own = bytes_of("the the");
  ASSERT_NE(own, plain("the the"));
  const Prompt made = prompt({{"user", "aa"}, {"assistant", "the the", own}, {"user", " the"}});
  Tokens expected = plain("aa");
  expected.insert(expected.end(), own.begin(), own.end());
  EXPECT_EQ(made.message_starts, (std::vector<int32_t>{0, int32_t(expected.size())}));
  for (const Token token : plain(" the")) expected.push_back(token);
  EXPECT_EQ(made.tokens, expected);
}

TEST_F(RawPrompt, TokensCountAsFarAsTheySpellTheText) {
  Tokens own = bytes_of("the");
  own.push_back(*tokenizer_->find("<|end|>"));  // Not text, but the model has read it.
  for (const Token token : bytes_of(" aa, STOP")) own.push_back(token);
  const Prompt made = prompt({{"user", "b"}, {"assistant", "the aa, ", own}, {"user", "c"}});
  EXPECT_EQ(spelled(made.tokens), "bthe<|end|> aa, c");
  const Prompt other = prompt({{"user", "b"}, {"assistant", "this", own}, {"user", "c"}});
  EXPECT_EQ(spelled(other.tokens), "bthisc");
  EXPECT_EQ(other.tokens[1], own[0]);
  const Prompt foreign = prompt({{"assistant", "the", {Token(99999)}}});
  EXPECT_EQ(foreign.tokens, plain("the"));
}

TEST_F(RawPrompt, OnlyPeopleMayWriteSpecialTokens) {
  const Token end = *tokenizer_->find("<|end|>");
  const auto count = [&](const std::vector<Message>& messages) {
    const Tokens tokens = prompt(messages).tokens;
    return std::count(tokens.begin(), tokens.end(), end);
  };
  EXPECT_EQ(count({{"user", "a<|end|>"}}), 1);
  EXPECT_EQ(count({{"user", "a"}, {"assistant", "<|end|>"}}), 0);
}

TEST_F(RawPrompt, MessagesBeginWhereTheirTextDoes) {
  const Prompt made = prompt({{"user", "bcbc"}, {"assistant", "bc"}, {"user", "the"}}, "aaaa ");
  ASSERT_EQ(made.message_starts.size(), 2u);
  const auto behind = [&](int32_t start) {
    return spelled({made.tokens.begin() + start, made.tokens.end()});
  };
  EXPECT_EQ(behind(made.message_starts[0]), "bcbcbcthe");
  EXPECT_EQ(behind(made.message_starts[1]), "the");
}

TEST_F(RawPrompt, AMessageAloneHasNoStart) {
  EXPECT_TRUE(prompt({{"user", "the"}}).message_starts.empty());
  EXPECT_EQ(prompt({{"user", "the"}}, "aa ").message_starts.size(), 1u);
}

// A space before a text is none between two of its parts.
TEST_F(RawPrompt, NoSpaceComesBetween) {
  build(tokenize::spm_vocabulary());
  const Tokens own = tokenizer_->encode("h", {.goes_on = true});
  const Prompt made = prompt({{"user", "he"}, {"assistant", "h", own}, {"user", "he"}});
  EXPECT_EQ(spelled(made.tokens), "<s> hehhe");
}

}  // namespace
}  // namespace cairn::chat::raw_prompt_test
