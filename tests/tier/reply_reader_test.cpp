// Replies as they come, in pieces of every length, and what is no reply that was asked for.
#include "tier/reply_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::test::reply_reader_test {
namespace {

using tier::Reply;
using tier::ReplyReader;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Of a text that is one reply, which comes in pieces of so many bytes.
Result<Reply> read(const std::string& text, size_t piece, size_t items_max = 0) {
  ReplyReader reader;
  reader.begin(100, items_max);
  const std::span<const std::byte> bytes = bytes_of(text);
  for (size_t place = 0; place < bytes.size();) {
    const size_t count = std::min(piece, bytes.size() - place);
    CAIRN_TRY(const size_t taken, reader.take(bytes.subspan(place, count)));
    place += taken;
    if (reader.has_ended()) {
      EXPECT_EQ(place, bytes.size());
      return reader.result();
    }
    EXPECT_EQ(taken, count);
  }
  return fail(ErrorCode::not_found, "it has not ended");
}

Reply bytes_reply(const std::string& text) {
  Reply reply{.kind = Reply::Kind::bytes};
  const auto bytes = bytes_of(text);
  reply.bytes.assign(bytes.begin(), bytes.end());
  return reply;
}

TEST(ReplyReader, ReadsEachKindInPiecesOfEveryLength) {
  const std::pair<std::string, Reply> kinds[] = {
      {"+OK\r\n", {.kind = Reply::Kind::text, .text = "OK"}},
      {"+\r\n", {.kind = Reply::Kind::text}},
      {"-ERR no\r\n", {.kind = Reply::Kind::error, .text = "ERR no"}},
      {":-12\r\n", {.kind = Reply::Kind::number, .number = -12}},
      {"$-1\r\n", {.kind = Reply::Kind::nothing}},
      {"$0\r\n\r\n", bytes_reply("")},
      {"$5\r\na\r\nbc\r\n", bytes_reply("a\r\nbc")},
  };
  for (const auto& [text, expected] : kinds) {
    for (size_t piece = 1; piece <= text.size(); ++piece) {
      Result<Reply> reply = read(text, piece);
      ASSERT_TRUE(bool(reply)) << text << reply.error().message;
      EXPECT_EQ(*reply, expected) << text;
    }
  }
}

Reply list_reply(std::vector<Reply> items) {
  Reply reply{.kind = Reply::Kind::list};
  reply.items = std::move(items);
  return reply;
}

TEST(ReplyReader, ReadsListsWhereTheyAreWanted) {
  const Reply one{.kind = Reply::Kind::number, .number = 1};
  const std::pair<std::string, Reply> lists[] = {
      {"*0\r\n", list_reply({})},
      {"*-1\r\n", {.kind = Reply::Kind::nothing}},
      {"*2\r\n:1\r\n$2\r\nab\r\n", list_reply({one, bytes_reply("ab")})},
      {"*1\r\n*2\r\n*0\r\n*1\r\n$-1\r\n",
       list_reply({list_reply({list_reply({}), list_reply({Reply()})})})},
      {"*3\r\n*1\r\n+x\r\n-ERR\r\n*1\r\n:1\r\n",
       list_reply({list_reply({{.kind = Reply::Kind::text, .text = "x"}}),
                   {.kind = Reply::Kind::error, .text = "ERR"},
                   list_reply({one})})},
  };
  for (const auto& [text, expected] : lists) {
    for (size_t piece = 1; piece <= text.size(); ++piece) {
      Result<Reply> reply = read(text, piece, 10);
      ASSERT_TRUE(bool(reply)) << text << reply.error().message;
      EXPECT_EQ(*reply, expected) << text;
    }
  }
}

// So many items together, so deep, so many bytes each.
TEST(ReplyReader, ListsHaveLimits) {
  EXPECT_TRUE(bool(read("*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", 1, 4)));
  for (const std::string& text :
       {std::string("*5\r\n"), std::string("*2\r\n*3\r\n"), std::string("*x\r\n"),
        std::string("*-2\r\n"), std::string("*9223372036854775807\r\n"),
        std::string("*99999999999999999999\r\n"), std::string("*1\r\n$101\r\n"),
        std::string("*1\r\n*1\r\n*1\r\n*1\r\n*0\r\n")}) {
    Result<Reply> reply = read(text, 1, 4);
    ASSERT_FALSE(bool(reply)) << text;
    EXPECT_EQ(reply.error().code, ErrorCode::invalid_data) << text;
  }
}

// As many items as were asked for: an empty list among them is none more.
TEST(ReplyReader, TheLastItemMayBeAnEmptyList) {
  Result<Reply> reply = read("*2\r\n*1\r\n:1\r\n*0\r\n", 1, 3);
  ASSERT_TRUE(bool(reply)) << reply.error().message;
  EXPECT_EQ(reply->items.size(), 2u);
  EXPECT_EQ(reply->items[1], list_reply({}));
}

// Lists are kept whole, and so what is in them has a limit: of each item, and of all together.
TEST(ReplyReader, ListsHaveALimitOfBytes) {
  const std::string fits(100, 'x'), more(101, 'x');
  for (const std::string kind : {"+", "-"}) {
    EXPECT_TRUE(bool(read("*1\r\n" + kind + fits + "\r\n", 7, 4)));
    EXPECT_TRUE(bool(read(kind + more + "\r\n", 7, 4)));  // No item of a list.
    const Result<Reply> reply = read("*1\r\n" + kind + more + "\r\n", 7, 4);
    ASSERT_FALSE(bool(reply));
    EXPECT_EQ(reply.error().code, ErrorCode::invalid_data);
    EXPECT_EQ(reply.error().message, "tier: expected at most 100 bytes in a reply, found 101");
  }
  constexpr size_t kItemBytes = size_t(1) << 20;
  constexpr size_t kItems = ReplyReader::kListBytesMax / kItemBytes;
  const std::string head = "$" + std::to_string(kItemBytes) + "\r\n";
  for (const bool is_nested : {false, true}) {
    ReplyReader reader;
    reader.begin(kItemBytes, 100);
    const auto take = [&](const std::string& text) { return reader.take(bytes_of(text)); };
    ASSERT_TRUE(bool(take("*" + std::to_string(kItems + 1) + "\r\n")));
    for (size_t count = 0; count < kItems; ++count) {
      const std::string list = is_nested ? "*1\r\n" : "";
      ASSERT_TRUE(bool(take(list + head + std::string(kItemBytes, 'x') + "\r\n"))) << count;
    }
    const Result<size_t> last = take("+x\r\n");
    ASSERT_FALSE(bool(last));
    EXPECT_EQ(last.error().message,
              "tier: expected at most 16777216 bytes in the lists of a reply, found more");
  }
}

TEST(ReplyReader, LeavesWhatBelongsToTheNext) {
  ReplyReader reader;
  reader.begin(10);
  const std::string two = ":1\r\n$2\r\nxy\r\n";
  EXPECT_EQ(reader.take(bytes_of(two)).value(), 4u);
  EXPECT_EQ(reader.result().number, 1);
  reader.begin(10);
  EXPECT_EQ(reader.take(bytes_of(two).subspan(4)).value(), two.size() - 4);
  EXPECT_EQ(reader.result().bytes.size(), 2u);
}

// Attack 36 of the security design: a bulk of two gigabytes, lists in lists, what never ends.
TEST(ReplyReader, RefusesWhatNobodyAskedFor) {
  for (const std::string& text :
       {std::string("*1\r\n:1\r\n"), std::string("%1\r\n"), std::string("\r\n"),
        std::string("x\r\n"), std::string(":\r\n"), std::string(":1x\r\n"), std::string(": 1\r\n"),
        std::string(":+1\r\n"), std::string("$-2\r\n"), std::string("$x\r\n"),
        std::string("$101\r\n"), std::string("$2147483648\r\n"),
        std::string("$99999999999999999999\r\n"), std::string("$1\r\nab\r\n"),
        std::string("$1\r\na\n\r\n"), std::string(5000, '+')}) {
    for (const size_t piece : {size_t(1), text.size()}) {
      Result<Reply> reply = read(text, piece);
      ASSERT_FALSE(bool(reply)) << text.substr(0, 30);
      EXPECT_EQ(reply.error().code, ErrorCode::invalid_data) << text.substr(0, 30);
    }
  }
}

}  // namespace
}  // namespace cairn::test::reply_reader_test
