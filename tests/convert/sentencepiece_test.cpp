// SentencePiece's message: what is read of it, and that nothing in it is trusted.
#include "convert/sentencepiece.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace cairn::convert::sentencepiece_test {
namespace {

std::string piece(const std::string& text, float score, int kind) {
  std::string number(4, '\0');
  std::memcpy(number.data(), &score, sizeof score);
  const std::string inside =
      std::string("\x0a") + char(text.size()) + text + "\x15" + number + "\x18" + char(kind);
  return std::string("\x0a") + char(inside.size()) + inside;
}

TEST(Sentencepiece, ReadsPiecesAndStepsOverTheRest) {
  // Field 2 is the trainer's, 3 the normalizer's; 9 has 8 bytes and 10 has 4.
  const std::string bytes = piece("<unk>", 0, 2) + std::string("\x12\x03xyz") +
                            piece("a b", -1.5f, 1) + std::string("\x1a\x00", 2) + "\x49" +
                            "12345678" + "\x55" + "1234" + std::string("\x58\xff\x01") +
                            piece("<0x0A>", 0, 6);
  auto pieces = parse_sentencepiece(bytes);
  ASSERT_TRUE(pieces) << pieces.error().message;
  ASSERT_EQ(pieces->size(), 3u);
  EXPECT_EQ((*pieces)[0].kind, PieceKind::unknown);
  EXPECT_EQ((*pieces)[1].text, "a b");
  EXPECT_EQ((*pieces)[1].score, -1.5f);
  EXPECT_EQ((*pieces)[1].kind, PieceKind::normal);
  EXPECT_EQ((*pieces)[2].kind, PieceKind::byte);
}

TEST(Sentencepiece, ReadsTheNormalizer) {
  // The trainer's kind is 1; the normalizer has a name, a table and two flags.
  const std::string kind("\x12\x02\x18\x01", 4);
  const std::string spec("\x0a\x01n\x12\x03xyz\x18\x00\x20\x00", 12);
  const auto normalizer = [](const std::string& inside) {
    return std::string("\x1a") + char(inside.size()) + inside;
  };
  auto read = parse_unigram_normalizer(piece("<unk>", 0, 2) + kind + normalizer(spec));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->charsmap, "xyz");
  EXPECT_FALSE(read->adds_space);
  EXPECT_FALSE(read->removes_extra_spaces);
  auto silent = parse_unigram_normalizer(piece("<unk>", 0, 2));
  ASSERT_TRUE(silent);
  EXPECT_TRUE(silent->adds_space);
  EXPECT_TRUE(silent->removes_extra_spaces);
  EXPECT_TRUE(silent->charsmap.empty());
  auto other = parse_unigram_normalizer(std::string("\x12\x02\x18\x02", 4));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::unsupported);
  // What is cut within the flags' numbers or the table.
  for (const size_t size : {4u, 6u, 9u, 11u}) {
    EXPECT_FALSE(parse_unigram_normalizer(normalizer(spec.substr(0, size)))) << size;
  }
}

TEST(Sentencepiece, RefusesCutsAndNonsense) {
  const std::string one = piece("<unk>", 0, 2), bytes = one + piece("abc", -1, 1);
  ASSERT_TRUE(parse_sentencepiece(bytes));
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A cut between pieces leaves a shorter model.
    EXPECT_EQ(bool(parse_sentencepiece(bytes.substr(0, size))), size == one.size()) << size;
  }
  EXPECT_FALSE(parse_sentencepiece(piece("a", 0, 7)));
  EXPECT_FALSE(parse_sentencepiece("\x0b"));                                      // Wire type 3.
  EXPECT_FALSE(parse_sentencepiece(std::string("\x0a\xff\xff\xff\xff\x0f", 6)));  // 4 GB of text.
  EXPECT_FALSE(parse_sentencepiece(std::string(20, '\xff')));  // No end of a number.
}

}  // namespace
}  // namespace cairn::convert::sentencepiece_test
