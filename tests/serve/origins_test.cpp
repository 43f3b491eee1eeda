// Hosts and origins: who may ask, and the tricks of those who may not.
#include "serve/http/origins.h"

#include <gtest/gtest.h>

namespace cairn::serve::http::origins_test {
namespace {

RequestHead head_with(std::vector<Header> headers) {
  RequestHead head;
  head.headers = std::move(headers);
  return head;
}

TEST(Origins, HostsAreThisMachineAddressesAndAllowedNames) {
  const OriginRules rules{.hosts = {"Cairn.Example.org"}, .origins = {}};
  for (const char* host : {"localhost", "localhost:8080", "LOCALHOST", "127.0.0.1:1", "10.0.0.7",
                           "[::1]", "[::1]:8080", "[fe80::1]:1", "cairn.example.ORG:443"}) {
    EXPECT_TRUE(is_host_allowed(host, rules)) << host;
  }
  for (const char* host :
       {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "localhost:x", "",
        "[::1", "[::1]x", "[evil]", "localhost:123456", "1.2.3", "localhost@evil", "[]"}) {
    EXPECT_FALSE(is_host_allowed(host, rules)) << host;
  }
}

// Attack 47.
TEST(Origins, OfPagesThatMayAsk) {
  const OriginRules rules{.hosts = {}, .origins = {"https://chat.example.org"}};
  const auto allowed = [&](std::string_view origin) {
    return is_origin_allowed(origin, "10.0.0.7:8080", rules);
  };
  for (const char* origin : {"http://localhost", "http://localhost:3000", "https://127.0.0.1:1",
                             "http://[::1]:5", "http://10.0.0.7:8080", "https://chat.example.org",
                             "vscode-webview://x", "tauri://localhost", "app://-", "file://"}) {
    EXPECT_TRUE(allowed(origin)) << origin;
  }
  for (const char* origin :
       {"null", "", "http://localhost.evil.example", "http://127.0.0.1@evil.example",
        "http://10.0.0.7:8081", "https://chat.example.org.evil", "https://chat.example.org:8",
        "http://localhost/x", "http://evil.example#localhost", "ftp://localhost", "http://10.0.0.8",
        "chrome-extension://x", "http://"}) {
    EXPECT_FALSE(allowed(origin)) << origin;
  }
  const OriginRules closed{.hosts = {}, .origins = {}, .allows_local_origins = false};
  EXPECT_FALSE(is_origin_allowed("http://localhost", "x", closed));
  EXPECT_FALSE(is_origin_allowed("app://-", "x", closed));
  EXPECT_TRUE(is_origin_allowed("http://x:80", "x:80", closed)) << "the server's own page";
}

TEST(Origins, RequestsAreRefusedByTheirHeads) {
  const OriginRules rules;
  EXPECT_EQ(refuse_origin(head_with({{"host", "localhost"}}), rules), "");
  EXPECT_TRUE(refuse_origin(head_with({{"host", "evil.example"}}), rules).starts_with("host"));
  EXPECT_TRUE(refuse_origin(head_with({{"host", "localhost"}, {"origin", "null"}}), rules)
                  .starts_with("origin"));
  EXPECT_EQ(
      refuse_origin(head_with({{"host", "localhost"}, {"origin", "http://localhost:3"}}), rules),
      "");
  EXPECT_FALSE(
      refuse_origin(head_with({{"host", "localhost"}, {"sec-fetch-site", "cross-site"}}), rules)
          .empty());
  EXPECT_EQ(
      refuse_origin(head_with({{"host", "localhost"}, {"sec-fetch-site", "same-origin"}}), rules),
      "");
}

// What a form of a page can send is no request.
TEST(Origins, BrowsersSendJson) {
  EXPECT_TRUE(is_type_allowed(head_with({{"content-type", "application/x-www-form-urlencoded"}})));
  const Header origin{"origin", "http://localhost"};
  EXPECT_FALSE(is_type_allowed(head_with({origin})));
  EXPECT_FALSE(is_type_allowed(head_with({origin, {"content-type", "text/plain"}})));
  EXPECT_TRUE(
      is_type_allowed(head_with({origin, {"content-type", "Application/JSON ; charset=utf-8"}})));
  EXPECT_FALSE(is_type_allowed(
      head_with({{"sec-fetch-site", "none"}, {"content-type", "multipart/form-data"}})));
}

TEST(Origins, PagesMaySendTheHeadersThatTheyAskFor) {
  const auto sendable = [](std::string asked) {
    return sendable_headers(head_with({{"access-control-request-headers", std::move(asked)}}),
                            "usual");
  };
  EXPECT_EQ(sendable_headers(head_with({}), "usual"), "usual");
  EXPECT_EQ(sendable(" x-a,x-b ,\tX_c"), "x-a, x-b, X_c");
  EXPECT_EQ(sendable("no name,\"x\",,x-b,\xc3\xa4,a:b"), "x-b") << "what is no name is left out";
  EXPECT_EQ(sendable(",\"x\""), "usual");
  std::string many;
  for (int count = 0; count < 1000; ++count) many += "x-" + std::to_string(count) + ",";
  EXPECT_LE(sendable(many).size(), 4096u);
  EXPECT_TRUE(sendable(many).starts_with("x-0, x-1, "));
}

}  // namespace
}  // namespace cairn::serve::http::origins_test
