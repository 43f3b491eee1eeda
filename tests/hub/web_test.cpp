// Asking: redirects, tokens, limits, what is waited for, certificates. Covers transfers.cpp.
#include "hub/web.h"

#include <gtest/gtest.h>

#include "tests/hub/hub_server.h"
#include "tests/serve/certificates.h"

namespace cairn::hub::web_test {
namespace {

using test::ScratchFolder;

WebOptions quick() {
  WebOptions options;
  options.patience = {.failures_max = 3,
                      .wait_first = std::chrono::milliseconds(5),
                      .wait_max = std::chrono::milliseconds(20)};
  options.transfer.connect_max = std::chrono::milliseconds(3000);
  options.transfer.stall_max = std::chrono::seconds(1);
  return options;
}

Result<Reply> get(const std::string& url, const Credential& credential, const Web::Ask& ask,
                  const WebOptions& options = quick()) {
  CAIRN_TRY(const std::unique_ptr<Web> web, Web::make(options));
  CAIRN_TRY(const WebUrl parsed, parse_url(url));
  return web->get(parsed, credential, ask);
}

const Web::Ask kJson{.accept = "application/json", .bytes_max = 1 << 20};
const Web::Ask kHead{};

class WebTest : public testing::Test {
 protected:
  WebTest() { put(folder_.path(), "tiny/a.gguf", model_bytes(1000)); }

  ScratchFolder folder_;
};

TEST_F(WebTest, RedirectsAreFollowedAndTheTokenStaysWhereItBelongs) {
  const HubServer server(folder_.path());
  const std::string url = server.url() + "/acme/plain-tiny/resolve/main/a.gguf";
  const Credential credential{.origin = parse_url(server.url())->origin, .token = "hf_secret"};
  Result<Reply> reply = get(url, credential, {.range = ByteRange{2, 5}, .bytes_max = 100});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->head.status, 206);
  EXPECT_EQ(reply->body, model_bytes(1000).substr(2, 4));
  EXPECT_EQ(reply->first.field("x-linked-size"), "1000");
  EXPECT_TRUE(reply->url.text.starts_with(server.storage_url())) << reply->url.text;
  const std::string log = server.log();
  EXPECT_EQ(count_of(log, "Bearer hf_secret"), 1u) << log;
  EXPECT_EQ(count_of(log.substr(log.find("storage")), "Bearer"), 0u) << log;
}

TEST_F(WebTest, TokensAreShownToOneOriginOverTls) {
  const Credential credential{.origin = "https://hub.example:443", .token = "t"};
  EXPECT_EQ(token_for(credential, parse_url("https://hub.example/x").value()), "t");
  EXPECT_EQ(token_for(credential, parse_url("https://HUB.example:443/x").value()), "t");
  for (const char* other : {"https://hub.example:444/", "http://hub.example:443/",
                            "https://hub.example.org/", "https://a.hub.example/"}) {
    EXPECT_EQ(token_for(credential, parse_url(other).value()), "") << other;
  }
  const Credential plain{.origin = "http://mirror.example:80", .token = "t"};
  EXPECT_EQ(token_for(plain, parse_url("http://mirror.example/").value()), "");
  const Credential own{.origin = "http://127.0.0.1:80", .token = "t"};
  EXPECT_EQ(token_for(own, parse_url("http://127.0.0.1/").value()), "t");
}

TEST_F(WebTest, EndlessRedirectsEnd) {
  const HubServer server(folder_.path());
  Result<Reply> reply = get(server.url() + "/acme/loop-tiny/resolve/main/a.gguf", {}, kHead);
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().message.find("expected at most 8 redirects, found more"),
            std::string::npos)
      << reply.error().message;
  EXPECT_EQ(count_of(server.log(), "\n"), 9u);
}

TEST_F(WebTest, WhatPassesIsWaitedFor) {
  const HubServer server(folder_.path());
  Result<Reply> reply = get(server.url() + "/api/models/acme/down-tiny/revision/main", {}, kJson);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->head.status, 200);
  EXPECT_EQ(count_of(server.log(), "\n"), 3u);
}

TEST_F(WebTest, WhoAsksForTooMuchPatienceIsNotWaitedFor) {
  const HubServer server(folder_.path());
  Result<Reply> reply = get(server.storage_url() + "/acme/busy-tiny/a.gguf", {}, kHead);
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().message.find("HTTP status 503 after 1 attempts (Retry-After: 100000)"),
            std::string::npos)
      << reply.error().message;
}

TEST_F(WebTest, LongAnswersAndHeadersAreRefused) {
  const HubServer server(folder_.path());
  Result<Reply> body = get(server.url() + "/api/models/acme/huge-tiny/revision/main", {}, kJson);
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().code, ErrorCode::no_room);
  EXPECT_NE(body.error().message.find("at most 1048576 bytes"), std::string::npos);
  Result<Reply> head = get(server.url() + "/api/models/acme/header-tiny/revision/main", {}, kJson);
  ASSERT_FALSE(head);
  EXPECT_NE(head.error().message.find("a header of at most 65536 bytes"), std::string::npos)
      << head.error().message;
}

TEST_F(WebTest, NobodyThereIsToldAfterSomeAttempts) {
  Result<Reply> reply = get("http://127.0.0.1:1/x", {}, kHead);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::io);
  EXPECT_NE(reply.error().message.find("after 4 attempts"), std::string::npos)
      << reply.error().message;
}

TEST_F(WebTest, CertificatesAreCheckedAndPlainConnectionsRefused) {
  const serve::Pair authority =
      serve::make_pair_in(folder_.path(), "ca", {.serial = 7, .is_authority = true});
  const serve::Pair pair = serve::make_pair_in(folder_.path(), "server",
                                               {.names = "IP:127.0.0.1", .authority = &authority});
  const HubServer server(folder_.path(), pair.certificate, pair.key);
  const std::string url = server.url() + "/acme/plain-tiny/resolve/main/a.gguf";
  Result<Reply> unknown = get(url, {}, kHead);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::invalid_data);
  EXPECT_EQ(server.log(), "");

  WebOptions options = quick();
  options.transfer.authority_path = authority.certificate;
  // A redirect out of TLS; "plain-" is the behaviour that makes it.
  Result<Reply> out = get(url, {}, kHead, options);
  ASSERT_FALSE(out);
  EXPECT_NE(out.error().message.find("expected to stay under TLS"), std::string::npos)
      << out.error().message;
  const std::string other = server.url() + "/acme/usual-tiny/resolve/main/a.gguf";
  Result<Reply> known = get(other, {}, {.range = ByteRange{0, 3}, .bytes_max = 100}, options);
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_EQ(known->body, "GGUF");

  options.transfer.authority_path = folder_.file("none");
  EXPECT_EQ(get(url, {}, kHead, options).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace cairn::hub::web_test
