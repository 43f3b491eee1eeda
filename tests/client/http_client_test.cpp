// What an address of a server may be. Requests and replies are tested with whole servers
// (tests/terminal_chat/remote_chat_test.cpp).
#include "client/http_client.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::client::http_client_test {
namespace {

TEST(ServerUrl, IsReadAsPeopleWriteIt) {
  const auto parsed = [](const char* text) -> std::string {
    Result<ServerUrl> url = ServerUrl::parse(text);
    return url ? url->host + "|" + url->port + "|" + url->unix_path : "wrong";
  };
  EXPECT_EQ(parsed("http://127.0.0.1:8080"), "127.0.0.1|8080|");
  EXPECT_EQ(parsed("http://localhost:8080/"), "localhost|8080|");
  EXPECT_EQ(parsed("localhost:1"), "localhost|1|");
  EXPECT_EQ(parsed("example.org"), "example.org|80|");
  EXPECT_EQ(parsed("http://[::1]:80"), "::1|80|");
  EXPECT_EQ(parsed("unix:/run/a.sock"), "|80|/run/a.sock");
  EXPECT_EQ(parsed("unix:///run/a.sock"), "|80|/run/a.sock");
  for (const char* wrong : {"", "http://", "unix:", "http://a:b", "http://a/b", "http://u@a",
                            "http://[::1", "http://a:", "https://"}) {
    EXPECT_EQ(parsed(wrong), "wrong") << wrong;
  }
  const ServerUrl secure = ServerUrl::parse("https://a/").value();
  EXPECT_TRUE(secure.is_secure);
  EXPECT_EQ(secure.host + ":" + secure.port, "a:443");
}

}  // namespace
}  // namespace cairn::client::http_client_test
