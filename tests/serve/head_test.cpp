// Heads of requests: what is read, and what is refused (smuggling, controls, limits).
#include "serve/http/head.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::serve::http::head_test {
namespace {

RequestHead parsed(const std::string& text) {
  const auto size = head_size(text);
  EXPECT_TRUE(std::holds_alternative<size_t>(size)) << text;
  if (const auto* wrong = std::get_if<Malformed>(&size)) {
    ADD_FAILURE() << wrong->message;
    return {};
  }
  EXPECT_EQ(std::get<size_t>(size), text.size());
  auto head = parse_head(text);
  if (const auto* wrong = std::get_if<Malformed>(&head)) {
    ADD_FAILURE() << wrong->message << "\n" << text;
    return {};
  }
  return std::get<RequestHead>(std::move(head));
}

// 0: it is a request.
int refusal_status(const std::string& text) {
  const auto size = head_size(text);
  if (const auto* wrong = std::get_if<Malformed>(&size)) return wrong->status;
  EXPECT_EQ(std::get<size_t>(size), text.size()) << text;
  const auto head = parse_head(text);
  const auto* wrong = std::get_if<Malformed>(&head);
  return wrong == nullptr ? 0 : wrong->status;
}

std::string with(const std::string& lines) {
  return "POST /v1/x HTTP/1.1\r\nHost: localhost\r\n" + lines + "\r\n";
}

TEST(Head, IsRead) {
  const RequestHead head = parsed(
      "POST /v1/chat%20x?a=b HTTP/1.1\r\nHost: localhost:8080\r\nX-Thing: \t a b \t\r\n"
      "Content-Length: 12\r\nExpect: 100-Continue\r\n\r\n");
  EXPECT_EQ(head.method, Method::post);
  EXPECT_EQ(head.path, "/v1/chat x");
  EXPECT_EQ(head.query, "a=b");
  ASSERT_NE(head.find("x-thing"), nullptr);
  EXPECT_EQ(*head.find("x-thing"), "a b");
  EXPECT_EQ(head.find("x-other"), nullptr);
  EXPECT_EQ(head.content_length, 12u);
  EXPECT_TRUE(head.has_body() && head.expects_continue && head.keeps_alive && !head.is_1_0);
  EXPECT_FALSE(parsed(with("")).has_body());
  EXPECT_FALSE(parsed(with("Content-Length: 0\r\n")).has_body());
}

TEST(Head, SaysWhetherTheConnectionStays) {
  EXPECT_FALSE(parsed(with("Connection: Close\r\n")).keeps_alive);
  EXPECT_FALSE(parsed(with("Connection: x , close\r\n")).keeps_alive);
  EXPECT_TRUE(parsed(with("Connection: closed\r\n")).keeps_alive);
  EXPECT_FALSE(parsed("GET / HTTP/1.0\r\n\r\n").keeps_alive);
  EXPECT_TRUE(parsed("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keeps_alive);
}

TEST(Head, MethodsAreKnownOrOther) {
  EXPECT_EQ(parsed("OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n").method, Method::options);
  EXPECT_EQ(parsed("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n").method, Method::head);
  EXPECT_EQ(parsed("get / HTTP/1.1\r\nHost: x\r\n\r\n").method, Method::other);
  EXPECT_EQ(parsed("TRACE / HTTP/1.1\r\nHost: x\r\n\r\n").method, Method::other);
}

// Every byte may be the last one that has come.
TEST(Head, ComesInAnyPieces) {
  const std::string text = with("A: b\r\nContent-Length: 3\r\n");
  size_t seen = 0;
  for (size_t size = 0; size < text.size(); ++size) {
    const auto found = head_size(text.substr(0, size), seen);
    ASSERT_TRUE(std::holds_alternative<size_t>(found)) << size;
    EXPECT_EQ(std::get<size_t>(found), 0u) << size;
    seen = size;
  }
  EXPECT_EQ(std::get<size_t>(head_size(text + "abcGET /", seen)), text.size());
}

TEST(Head, LengthsThatOthersCouldReadOtherwiseAreRefused) {
  EXPECT_EQ(refusal_status(with("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(refusal_status(with("Content-Length: 5\r\nContent-Length: 5\r\n")), 400);
  EXPECT_EQ(refusal_status(with("Content-Length: 5\r\nContent-Length: 6\r\n")), 400);
  for (const char* length : {"+5", "-5", "5 5", "5, 5", "0x5", "", "5a", "99999999999999999999"}) {
    EXPECT_EQ(refusal_status(with(std::string("Content-Length: ") + length + "\r\n")), 400)
        << length;
  }
  for (const char* coding : {"xchunked", "gzip, chunked", "chunked, chunked", "identity", ""}) {
    EXPECT_EQ(refusal_status(with(std::string("Transfer-Encoding: ") + coding + "\r\n")), 400)
        << coding;
  }
  EXPECT_EQ(refusal_status(with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
            400);
  EXPECT_EQ(refusal_status("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(refusal_status(with("Transfer-Encoding: Chunked\r\n")), 0);
}

TEST(Head, LinesThatOthersCouldReadOtherwiseAreRefused) {
  EXPECT_EQ(refusal_status("GET / HTTP/1.1\nHost: x\n\n"), 400);
  EXPECT_EQ(refusal_status("GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"), 400);
  EXPECT_EQ(refusal_status("GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n"), 400);
  EXPECT_EQ(refusal_status("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(refusal_status(with("A: b\r\n c\r\n")), 400) << "folded";
  EXPECT_EQ(refusal_status(with("A : b\r\n")), 400) << "a space before the colon";
  EXPECT_EQ(refusal_status(with("A\r\n")), 400);
  EXPECT_EQ(refusal_status(with(": b\r\n")), 400);
  EXPECT_EQ(refusal_status(with(std::string("A: b\0c\r\n", 8))), 400);
  EXPECT_EQ(refusal_status(with("A: b\x01\r\n")), 400);
  EXPECT_EQ(refusal_status(with("A: b\x7f\r\n")), 400);
  EXPECT_EQ(refusal_status(with("A: b\xff\r\n")), 0) << "bytes that mean nothing";
}

TEST(Head, RequestLinesAreStrict) {
  const auto line = [](const std::string& text) {
    return refusal_status(text + "\r\nHost: x\r\n\r\n");
  };
  EXPECT_EQ(line("GET /"), 400);
  EXPECT_EQ(line("GET  / HTTP/1.1"), 400);
  EXPECT_EQ(line("GET / x HTTP/1.1"), 400);
  EXPECT_EQ(line("GET http://x/ HTTP/1.1"), 400);
  EXPECT_EQ(line("CONNECT x:80 HTTP/1.1"), 400);
  EXPECT_EQ(line("OPTIONS * HTTP/1.1"), 400);
  EXPECT_EQ(line("G(T / HTTP/1.1"), 400);
  EXPECT_EQ(line("GET /%zz HTTP/1.1"), 400);
  EXPECT_EQ(line("GET /%0"), 400);
  EXPECT_EQ(line("GET /%00 HTTP/1.1"), 400);
  EXPECT_EQ(line("GET /\xc3\xa9 HTTP/1.1"), 400);
  EXPECT_EQ(line("GET / HTTP/2.0"), 505);
  EXPECT_EQ(line("GET / http/1.1"), 400);
  EXPECT_EQ(line("GET / HTTP/1.1 "), 400);
}

TEST(Head, OneHostIsNeeded) {
  EXPECT_EQ(refusal_status("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal_status("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(refusal_status("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(refusal_status(with("Authorization: a\r\nAuthorization: b\r\n")), 400);
  EXPECT_EQ(refusal_status(with("Expect: x\r\n")), 417);
}

TEST(Head, HasLimits) {
  EXPECT_EQ(refusal_status("GET /" + std::string(kRequestLineBytesMax, 'a') +
                           " HTTP/1.1\r\nHost: x\r\n\r\n"),
            414);
  // Without an end, too.
  const auto endless = head_size("GET /" + std::string(kRequestLineBytesMax, 'a'));
  EXPECT_EQ(std::get<Malformed>(endless).status, 414);
  const auto large = head_size(with("A: " + std::string(kHeadBytesMax, 'a') + "\r\n"));
  EXPECT_EQ(std::get<Malformed>(large).status, 431);
  std::string many;
  for (size_t count = 1; count < kHeaderCountMax; ++count) many += "A: b\r\n";
  EXPECT_EQ(refusal_status(with(many)), 0);
  EXPECT_EQ(refusal_status(with(many + "A: b\r\n")), 431);
}

TEST(Head, StatusesHaveReasons) {
  for (const int status :
       {200, 204, 400, 401, 403, 404, 405, 408, 413, 414, 415, 417, 429, 431, 500, 501, 503, 505}) {
    EXPECT_FALSE(reason_of(status).empty()) << status;
  }
}

TEST(Query, ValuesHaveNames) {
  EXPECT_EQ(query_value("model=a", "model"), "a");
  EXPECT_EQ(query_value("x=1&model=a%2Fb%20c&y", "model"), "a/b c");
  EXPECT_EQ(query_value("model", "model"), "");
  EXPECT_EQ(query_value("model=", "model"), "");
  EXPECT_EQ(query_value("model=a&model=b", "model"), "a");
  EXPECT_EQ(query_value("a=model=b&&x=y=z", "x"), "y=z");
  for (const char* query : {"", "models=a", "xmodel=a", "&", "=a", "a&b"}) {
    EXPECT_EQ(query_value(query, "model"), std::nullopt) << query;
  }
  for (const char* query : {"model=%", "model=%4", "model=%zz", "model=%00"}) {
    EXPECT_EQ(query_value(query, "model"), std::nullopt) << query;
  }
}

}  // namespace
}  // namespace cairn::serve::http::head_test
