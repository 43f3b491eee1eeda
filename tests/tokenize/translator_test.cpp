// Texts between vocabularies: the same bytes whatever is followed in whatever order, special tokens
// by name, and the way back.
#include "tokenize/translator.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/tokenize/small_vocabularies.h"

namespace cairn::tokenize::translator_test {
namespace {

using Tokens = std::vector<Token>;
constexpr size_t kAll = SIZE_MAX;

// Without the space that a vocabulary puts before a text, with the names of special tokens but for
// the one that texts begin with.
std::string bytes_of(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::string bytes;
  bool begins = true;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_opening =
        i == 0 && tokenizer.adds_bos() && tokens[i] == *tokenizer.special_ids().bos;
    std::string_view piece = is_opening ? std::string_view() : tokenizer.piece(tokens[i]);
    if (begins && tokenizer.adds_space_prefix() && piece.starts_with(' ')) piece.remove_prefix(1);
    begins = tokenizer.is_control(tokens[i]) || (begins && piece.empty());
    bytes += piece;
  }
  return bytes;
}

// What of a text is to be found in the other vocabulary.
std::string expected_bytes(const Tokenizer& from, const Tokenizer& to,
                           std::span<const Token> text) {
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_special = !from.holds(text[i]) || from.is_control(text[i]);
    if (!is_special) continue;
    const auto same = from.holds(text[i]) ? to.find(from.piece(text[i])) : std::nullopt;
    if (!same || !to.is_control(*same)) begin = i + 1;
  }
  std::string bytes;
  bool begins = true;
  for (const Token token : text.subspan(begin)) {
    std::string_view piece = from.piece(token);
    if (begins && from.adds_space_prefix() && piece.starts_with(' ')) piece.remove_prefix(1);
    begins = from.is_control(token) || (begins && piece.empty());
    bytes += piece;
  }
  bytes.resize(bytes.size() - unicode::unfinished_utf8_bytes(bytes));
  return bytes;
}

SmallVocabulary other_byte_level_vocabulary() {
  SmallVocabulary small;
  small.source.model = "gpt2";
  small.source.pre = "gpt-2";
  small.add("<|im_end|>", TokenType::control);  // 0
  for (int byte = 255; byte >= 0; --byte) {     // 1 is the byte 255, 256 the byte 0.
    std::string symbol;
    unicode::append_utf8(unicode::symbol_of_byte(uint8_t(byte)), symbol);
    small.add(symbol);
  }
  small.join("h", "e");         // 257
  small.join("t", "he");        // 258
  small.join("\u0120", "the");  // 259
  small.source.eos = 0;
  return small;
}

struct Named {
  const char* name;
  std::unique_ptr<Tokenizer> tokenizer;
};

std::vector<Named> all_vocabularies() {
  std::vector<Named> all;
  all.push_back({"bytes", build(byte_level_vocabulary())});
  all.push_back({"other bytes", build(other_byte_level_vocabulary())});
  all.push_back({"spm", build(spm_vocabulary())});
  all.push_back({"gemma4", build(gemma4_vocabulary())});
  all.push_back({"wpm", build(wpm_vocabulary())});
  return all;
}

// Some vocabularies write a space as U+2581, and take this for one.
std::string random_words(std::mt19937& random, size_t length, bool is_utf8) {
  constexpr std::string_view kSpace = "\u2581";
  std::string text = random_text(random, length, is_utf8);
  for (size_t at = text.find(kSpace); at != text.npos; at = text.find(kSpace, at)) {
    text.replace(at, kSpace.size(), " ");
  }
  return text;
}

// Ordinary text mostly; sometimes any token, sometimes one that is none.
Tokens random_tokens(const Tokenizer& tokenizer, std::mt19937& random) {
  const auto kind = random() % 6;
  if (kind == 0) return {Token(int32_t(random() % tokenizer.token_count()))};
  if (kind == 1 && random() % 8 == 0) return {Token(int32_t(random()))};
  return tokenizer.encode(random_words(random, 1 + random() % 12, kind > 2), {.goes_on = true});
}

TEST(Translator, HasTheTextsBytesWhateverWasFollowed) {
  const std::vector<Named> all = all_vocabularies();
  for (const Named& from : all) {
    for (const Named& to : all) {
      if (std::string_view(to.name) == "wpm") continue;  // It changes letters.
      std::mt19937 random(3);
      Translator translator(from.tokenizer.get(), to.tokenizer.get());
      Tokens text;
      for (int32_t round = 0; round < 400; ++round) {
        if (random() % 5 == 0 && !text.empty()) text.resize(random() % text.size());
        if (random() % 40 == 0) text.clear();
        for (const Token token : random_tokens(*from.tokenizer, random)) text.push_back(token);
        if (text.empty()) continue;
        while (!translator.follow(text, 1 + random() % 50)) {
        }
        EXPECT_TRUE(translator.follow(text, kAll));
        ASSERT_EQ(bytes_of(*to.tokenizer, translator.text()),
                  expected_bytes(*from.tokenizer, *to.tokenizer, text))
            << from.name << " to " << to.name << ", round " << round;
      }
    }
  }
}

// The pieces are the bytes of what follows, and each token begins in exactly one of them.
TEST(Translator, GoesBackByBytes) {
  const std::vector<Named> all = all_vocabularies();
  for (const Named& from : all) {
    for (const Named& to : all) {
      if (std::string_view(to.name) == "wpm" || std::string_view(from.name) == "wpm") continue;
      std::mt19937 random(4);
      for (int32_t round = 0; round < 200; ++round) {
        Translator translator(from.tokenizer.get(), to.tokenizer.get());
        const Tokens text = from.tokenizer->encode(random_words(random, 5 + random() % 20, true));
        if (text.empty() || !translator.follow(text, kAll)) continue;
        const Tokens more =
            to.tokenizer->encode(random_words(random, 1 + random() % 20, true), {.goes_on = true});
        const auto pieces = translator.translate_back(more);
        Tokens back;
        size_t first = 0;
        for (const Translator::Piece& piece : pieces) {
          back.push_back(piece.token);
          EXPECT_EQ(piece.first, first);
          EXPECT_GE(piece.end, piece.first);
          first = piece.end;
        }
        EXPECT_EQ(first, more.size());
        const std::string expected = bytes_of(*to.tokenizer, translator.text());
        Tokens whole(translator.text().begin(), translator.text().end());
        whole.insert(whole.end(), more.begin(), more.end());
        Tokens joined = text;
        joined.insert(joined.end(), back.begin(), back.end());
        EXPECT_EQ(expected_bytes(*from.tokenizer, *to.tokenizer, joined),
                  bytes_of(*to.tokenizer, whole))
            << from.name << " to " << to.name << ", round " << round;
      }
    }
  }
}

class BetweenByteLevels : public ::testing::Test {
 protected:
  std::unique_ptr<Tokenizer> from_ = build(byte_level_vocabulary());
  std::unique_ptr<Tokenizer> to_ = build(other_byte_level_vocabulary());
  Translator translator_{from_.get(), to_.get()};

  static Token other(char byte) { return Token(256 - int32_t(uint8_t(byte))); }
};

TEST_F(BetweenByteLevels, WordsAreCutAsTheOtherOneCutsThem) {
  // "a the", with the word in pieces.
  ASSERT_TRUE(translator_.follow(Tokens{Token('a'), Token(' '), Token(256)}, kAll));
  EXPECT_EQ(ids({translator_.text().begin(), translator_.text().end()}),
            ids({other('a'), other(' '), other('t'), other('h')}));
  ASSERT_TRUE(translator_.follow(Tokens{Token('a'), Token(' '), Token(256), Token('e')}, kAll));
  EXPECT_EQ(ids({translator_.text().begin(), translator_.text().end()}),
            ids({other('a'), Token(259)}));
  // " th" and "ebc": of the other one's four tokens the first two begin in " the".
  const auto pieces =
      translator_.translate_back(Tokens{Token(259), Token(257), other('b'), other('c')});
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[0].token, Token(258));
  EXPECT_EQ(pieces[0].first, 0u);
  EXPECT_EQ(pieces[0].end, 1u);
  EXPECT_EQ(pieces[1].token, Token('h'));
  EXPECT_EQ(pieces[1].end, 2u);
  EXPECT_EQ(pieces[2].token, Token('e'));
  EXPECT_EQ(pieces[2].first, pieces[2].end);  // It began with "h".
  EXPECT_EQ(pieces[3].token, Token(261));
  EXPECT_EQ(pieces[3].first, 2u);
  EXPECT_EQ(pieces[3].end, 4u);
}

TEST_F(BetweenByteLevels, SpecialTokensGoByTheirNames) {
  ASSERT_TRUE(translator_.follow(Tokens{Token('a'), Token(265), Token('b')}, kAll));
  EXPECT_EQ(ids({translator_.text().begin(), translator_.text().end()}),
            ids({other('a'), Token(0), other('b')}));
  // Behind one that the other lacks the text begins anew, also for who goes back there.
  ASSERT_TRUE(
      translator_.follow(Tokens{Token('a'), Token(265), Token('b'), Token(264), Token('c')}, kAll));
  EXPECT_EQ(ids({translator_.text().begin(), translator_.text().end()}), ids({other('c')}));
  const Tokens shorter{Token('a'), Token(265), Token('b'), Token('b')};
  while (!translator_.follow(shorter, 1)) {
  }
  EXPECT_EQ(ids({translator_.text().begin(), translator_.text().end()}),
            ids({other('a'), Token(0), other('b'), other('b')}));
  // What was text is not taken for a special token, and none is ever drafted.
  const Tokens spelled = from_->encode("<|im_end|>");
  ASSERT_TRUE(translator_.follow(spelled, kAll));
  EXPECT_EQ(translator_.text().size(), 10u);
  const auto pieces = translator_.translate_back(Tokens{other('a'), Token(0), other('b')});
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].token, Token('a'));
  Tokens spelling;
  for (const char byte : std::string_view("<|im_end|>")) spelling.push_back(other(byte));
  for (const Translator::Piece& piece : translator_.translate_back(spelling)) {
    EXPECT_FALSE(from_->is_control(piece.token));
  }
}

TEST_F(BetweenByteLevels, HalfACharacterWaits) {
  const std::string face = "\U0001F600";
  ASSERT_TRUE(translator_.follow(Tokens{Token('a'), Token(0xF0), Token(0x9F)}, kAll));
  EXPECT_EQ(translator_.text().size(), 1u);
  Tokens whole;
  for (const char byte : face) whole.push_back(other(byte));
  whole.push_back(other('b'));
  const auto pieces = translator_.translate_back(whole);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].token, Token(0x98));
  EXPECT_EQ(pieces[0].first, 0u);
  EXPECT_EQ(pieces[0].end, 3u);
  EXPECT_EQ(pieces[1].token, Token(0x80));
  EXPECT_EQ(pieces[1].end, 4u);
  EXPECT_EQ(pieces[2].token, Token('b'));
  // Something else cannot be what comes, and half a character is none.
  EXPECT_TRUE(translator_.translate_back(Tokens{other('b')}).empty());
  EXPECT_TRUE(translator_.translate_back(std::span(whole).first(3)).empty());
  EXPECT_TRUE(translator_.translate_back({}).empty());
}

TEST(Translator, NeverReadsMoreThanItMay) {
  const auto from = build(byte_level_vocabulary());
  const auto to = build(spm_vocabulary());
  Translator translator(from.get(), to.get());
  const Tokens text(100, Token('e'));
  for (int32_t round = 0; round < 3; ++round) EXPECT_FALSE(translator.follow(text, 30));
  EXPECT_EQ(bytes_of(*to, translator.text()), std::string(90, 'e'));
  EXPECT_TRUE(translator.follow(text, 30));
  EXPECT_EQ(bytes_of(*to, translator.text()), std::string(100, 'e'));
  EXPECT_EQ(translator.text().front(), Token(1));  // As its texts begin.
}

}  // namespace
}  // namespace cairn::tokenize::translator_test
