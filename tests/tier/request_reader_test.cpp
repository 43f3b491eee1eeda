// Commands as they come, in pieces of every length, and what is none.
#include "tier/peers/request_reader.h"

#include <gtest/gtest.h>

#include "tier/secret.h"

namespace cairn::test::request_reader_test {
namespace {

using tier::Request;
using tier::RequestReader;

std::string command(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return text;
}

// All commands of a text that comes in pieces of so many bytes; what follows a refusal is dropped.
struct Taken {
  std::vector<Request> requests;
  bool is_refused = false;
};
Taken read(const std::string& text, size_t piece) {
  Taken taken;
  RequestReader reader;
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  while (!bytes.empty()) {
    Result<size_t> count = reader.take(bytes.first(std::min(piece, bytes.size())));
    if (!count) {
      taken.is_refused = true;
      return taken;
    }
    EXPECT_GT(*count, 0u);
    bytes = bytes.subspan(*count);
    if (reader.has_ended()) taken.requests.push_back(reader.result());
  }
  return taken;
}

TEST(RequestReader, ReadsCommandsInPieces) {
  const Sha256Digest number = tier::new_number();
  const std::string key = "c1:r:" + hex_of(number);
  const std::string text = command({"PEER", hex_of(number)}) + command({"AUTH", hex_of(number)}) +
                           command({"EXISTS", key}) + command({"GETEX", key, "PX", "1800000"}) +
                           command({"EXISTS", "x"});
  const std::vector<Request> expected = {{.kind = Request::Kind::greet, .digest = number},
                                         {.kind = Request::Kind::prove, .digest = number},
                                         {.kind = Request::Kind::exists, .key = key},
                                         {.kind = Request::Kind::read, .key = key},
                                         {.kind = Request::Kind::exists, .key = "x"}};
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    const Taken taken = read(text, piece);
    EXPECT_FALSE(taken.is_refused) << piece;
    EXPECT_EQ(taken.requests, expected) << piece;
  }
}

TEST(RequestReader, RefusesAllElse) {
  const std::string digits(64, '0');
  for (const std::string& wrong : {command({"GET", "c1:r:x"}),
                                   command({"SET", "c1:r:x", "1"}),
                                   command({"FLUSHALL"}),
                                   command({"EXISTS"}),
                                   command({"EXISTS", "a", "b"}),
                                   command({"GETEX", "a"}),
                                   command({"GETEX", "a", "EX", "1"}),
                                   command({"PEER", "0"}),
                                   command({"AUTH", "secret"}),
                                   command({"AUTH", "user", digits}),
                                   command({"exists", "a"}),
                                   command({"EXISTS", ""}),
                                   command({"EXISTS", std::string(250, 'k')}),
                                   command({"A", "B", "C", "D", "E"}),
                                   std::string("GET / HTTP/1.1\r\n"),
                                   std::string("*0\r\n"),
                                   std::string("*-1\r\n"),
                                   std::string("*1000000\r\n"),
                                   std::string("*2\r\n$1000000000\r\n"),
                                   std::string("*2\r\n$-1\r\n"),
                                   std::string("*2\r\n$6\r\nEXISTSxx"),
                                   std::string("*2\r\n:6\r\n"),
                                   std::string("*+2\r\n"),
                                   std::string("* 2\r\n"),
                                   std::string(300, '*'),
                                   std::string("\r\n"),
                                   "*2\r\n$4\r\nPEER\r\n$64\r\n" + std::string(64, 'Z') + "\r\n"}) {
    for (const size_t piece : {size_t(1), size_t(7), wrong.size()}) {
      const Taken taken = read(wrong, piece);
      EXPECT_TRUE(taken.is_refused) << wrong << " in pieces of " << piece;
      EXPECT_TRUE(taken.requests.empty()) << wrong;
    }
  }
}

}  // namespace
}  // namespace cairn::test::request_reader_test
