// Which ids of clients are taken, and those of one's own.
#include "serve/http/request_id.h"

#include <gtest/gtest.h>

#include "serve/http/head.h"

namespace cairn::serve::http::request_id_test {
namespace {

std::string id_of(const std::string& header) {
  const auto head = parse_head("GET / HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n");
  EXPECT_TRUE(std::holds_alternative<RequestHead>(head));
  return request_id(std::get<RequestHead>(head));
}

TEST(RequestId, IsTheClientsWhereItIsPlain) {
  const std::string longest(128, 'a');
  for (const std::string& wished : {std::string("chat_1.2-X"), longest}) {
    EXPECT_EQ(id_of("X-Request-Id: " + wished + "\r\n"), wished);
  }
}

TEST(RequestId, IsARandomNumberElsewhere) {
  for (const std::string& header :
       {std::string(), std::string("X-Request-Id: a b\r\n"), std::string("X-Request-Id: a\"b\r\n"),
        "X-Request-Id: " + std::string(129, 'a') + "\r\n"}) {
    const std::string id = id_of(header);
    EXPECT_TRUE(id.starts_with("req-")) << id;
    EXPECT_EQ(id.size(), 20u) << id;
  }
  EXPECT_NE(id_of(""), id_of(""));
}

}  // namespace
}  // namespace cairn::serve::http::request_id_test
