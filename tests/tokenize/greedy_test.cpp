// The longest token at each place: by hand, and against the published way on random vocabularies,
// which tries all lengths from the longest on.
#include "tokenize/greedy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/tokenize/small_vocabularies.h"

namespace cairn::tokenize::greedy_test {
namespace {

using Ids = std::vector<int32_t>;

// What Python's repr() of bytes has between its quotes.
std::string python_literal(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      text += "\\\\";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '\t') {
      text += "\\t";
    } else if (c == '\r') {
      text += "\\r";
    } else if (byte < 0x20 || byte > 0x7E) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  return text;
}

// Token 0 is special, tokens 1 to 256 are the bytes, as in the published vocabulary.
SmallVocabulary world_vocabulary(const std::vector<std::string>& words) {
  SmallVocabulary small;
  small.source.model = "rwkv";
  small.add("<s>", TokenType::control);
  for (int byte = 0; byte < 256; ++byte) {
    small.add(python_literal(std::string(1, char(byte))));
  }
  for (const std::string& word : words) small.add(python_literal(word));
  small.source.bos = small.source.eos = 0;
  return small;
}

TEST(Greedy, TakesTheLongestTokenAtEachPlace) {
  const auto tokenizer = build(world_vocabulary({"ab", "abcd", "bc", "\n\n", "\u00E9t",
                                                 "\xA9"
                                                 "x"}));
  EXPECT_EQ(ids(tokenizer->encode("abcdabc")), (Ids{258, 257, 1 + 'c'}));
  EXPECT_EQ(ids(tokenizer->encode("abce\n\n\n")), (Ids{257, 1 + 'c', 1 + 'e', 260, 1 + '\n'}));
  EXPECT_EQ(ids(tokenizer->encode("\u00E9t\u00E9x")), (Ids{261, 1 + 0xC3, 262}));
  EXPECT_TRUE(tokenizer->encode("").empty());
  EXPECT_EQ(tokenizer->piece(Token(260)), "\n\n");
  EXPECT_EQ(tokenizer->piece(Token(262)), "\xA9x");
}

TEST(Greedy, TextCannotSpellWhatIsSpecial) {
  const auto tokenizer = build(world_vocabulary({}));
  EXPECT_EQ(ids(tokenizer->encode("<s>")), (Ids{1 + '<', 1 + 's', 1 + '>'}));
  EXPECT_EQ(ids(tokenizer->encode("<s>", {.parse_special = true})), (Ids{0}));
}

Ids published_way(std::string_view text, const std::map<std::string, int32_t, std::less<>>& words) {
  size_t longest = 0;
  for (const auto& [word, id] : words) longest = std::max(longest, word.size());
  Ids found;
  while (!text.empty()) {
    for (size_t length = std::min(longest, text.size()); length > 0; --length) {
      const auto at = words.find(text.substr(0, length));
      if (at == words.end()) continue;
      found.push_back(at->second);
      text.remove_prefix(length);
      break;
    }
  }
  return found;
}

TEST(Greedy, IsThePublishedWayOnRandomVocabularies) {
  std::mt19937 random(3);
  constexpr std::string_view kAlphabet = "ab\n\\'\"x\xC3\xA9\xFF";
  const auto word = [&](size_t most) {
    std::string bytes;
    for (size_t length = 1 + random() % most; length > 0; --length) {
      bytes += kAlphabet[random() % kAlphabet.size()];
    }
    return bytes;
  };
  for (int round = 0; round < 30; ++round) {
    std::map<std::string, int32_t, std::less<>> known;
    for (int byte = 0; byte < 256; ++byte) known.emplace(std::string(1, char(byte)), byte + 1);
    std::vector<std::string> words;
    for (int i = 0; i < 60; ++i) {
      const std::string next = word(7);
      if (known.emplace(next, int32_t(257 + words.size())).second) words.push_back(next);
    }
    const auto tokenizer = build(world_vocabulary(words));
    for (const auto& [bytes, id] : known) EXPECT_EQ(tokenizer->piece(Token(id)), bytes);
    for (int i = 0; i < 50; ++i) {
      const std::string text = word(60);
      EXPECT_EQ(ids(tokenizer->encode(text)), published_way(text, known));
    }
  }
}

TEST(Greedy, LiteralsThatAreNoneAreRefused) {
  for (const std::string_view literal :
       {"\\", "a\\", "\\x", "\\x1", "\\xg0", "\\x0g", "\\q", "\\0"}) {
    SmallVocabulary small = world_vocabulary({});
    small.add(literal);
    const auto built = Tokenizer::build(small.source);
    ASSERT_FALSE(built) << literal;
    EXPECT_NE(built.error().message.find("token 257"), std::string::npos) << built.error().message;
  }
  SmallVocabulary small = world_vocabulary({});
  small.add("\\'\\\"\\\\\\t\\r\\x0A\\xfF");
  EXPECT_EQ(build(small)->piece(Token(257)), "'\"\\\t\r\n\xFF");
}

}  // namespace
}  // namespace cairn::tokenize::greedy_test
