// Chunked bodies: in any pieces, and what is refused.
#include "serve/http/chunks.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::serve::http::chunks_test {
namespace {

struct Decoded {
  std::string body;
  std::string rest;  // What was not used.
  int status = 0;    // Of a refusal.
  bool is_done = false;
};

Decoded decode(const std::string& text, size_t piece_bytes, size_t bytes_max = 1 << 20) {
  ChunkDecoder decoder(bytes_max);
  Decoded decoded;
  std::string waiting;
  for (size_t at = 0; at < text.size() && !decoder.is_done(); at += piece_bytes) {
    waiting += text.substr(at, piece_bytes);
    const auto used = decoder.push(waiting, decoded.body);
    if (const auto* wrong = std::get_if<Malformed>(&used)) {
      decoded.status = wrong->status;
      return decoded;
    }
    waiting.erase(0, std::get<size_t>(used));
    if (decoder.is_done())
      decoded.rest = waiting + text.substr(std::min(at + piece_bytes, text.size()));
  }
  decoded.is_done = decoder.is_done();
  return decoded;
}

TEST(Chunks, ComeInAnyPieces) {
  const std::string text =
      "5\r\nhello\r\n1;a=b\r\n \r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET /";
  for (const size_t bytes : {1, 2, 3, 7, 1000}) {
    const Decoded decoded = decode(text, bytes);
    EXPECT_EQ(decoded.status, 0) << bytes;
    EXPECT_TRUE(decoded.is_done) << bytes;
    EXPECT_EQ(decoded.body, "hello 0123456789") << bytes;
    EXPECT_EQ(decoded.rest, "GET /") << bytes;
  }
  EXPECT_FALSE(decode("5\r\nhel", 1).is_done);
  EXPECT_FALSE(decode("5\r\nhello\r\n0\r\n", 1).is_done);
}

TEST(Chunks, SizesAreStrict) {
  for (const char* size : {"0x5", "-5", "+5", " 5", "5 ", "g", "", "fffffffffffffffff", ";a"}) {
    EXPECT_EQ(decode(std::string(size) + "\r\nhello\r\n0\r\n\r\n", 100).status, 400) << size;
  }
  EXPECT_EQ(decode("5\nhello\r\n0\r\n\r\n", 100).status, 400) << "a line feed alone";
  EXPECT_EQ(decode("5\r\nhelloX\r\n", 100).status, 400) << "more bytes than the size says";
  EXPECT_EQ(decode("5\r\nhello\n0\r\n\r\n", 100).status, 400);
  EXPECT_EQ(decode("5\rx\r\nhello\r\n", 100).status, 400);
}

TEST(Chunks, HaveLimits) {
  EXPECT_EQ(decode("10\r\n0123456789abcdef\r\n0\r\n\r\n", 100, 16).status, 0);
  EXPECT_EQ(decode("10\r\n0123456789abcdef\r\n1\r\nx\r\n0\r\n\r\n", 100, 16).status, 413);
  EXPECT_EQ(decode("11\r\n", 100, 16).status, 413) << "before any byte of it";
  EXPECT_EQ(decode("ffffffffffffffff\r\n", 100).status, 413);
  EXPECT_EQ(decode("5;" + std::string(300, 'a') + "\r\nhello\r\n", 1).status, 400);
  std::string trailers = "0\r\n";
  for (int line = 0; line < 200; ++line) trailers += "A: " + std::string(60, 'b') + "\r\n";
  EXPECT_EQ(decode(trailers + "\r\n", 1000).status, 431);
  EXPECT_EQ(decode("0\r\n" + std::string(9000, 'a'), 9100).status, 400);
}

}  // namespace
}  // namespace cairn::serve::http::chunks_test
