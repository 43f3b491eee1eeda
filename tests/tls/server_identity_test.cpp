// TLS: which certificates and keys are taken, and that a server under TLS is the same server, with
// the same limits.
#include "tls/server_identity.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/scratch_folder.h"
#include "tests/serve/certificates.h"
#include "tests/serve/serving.h"

namespace cairn::serve::server_identity_test {
namespace {

using nlohmann::json;
using tls::ServerIdentity;

// What reading the two says is wrong.
std::string error_of(const std::string& certificate, const std::string& key) {
  const auto read = ServerIdentity::read(certificate, key);
  EXPECT_FALSE(read) << certificate << " " << key;
  return read ? "" : read.error().message;
}

TEST(ServerIdentity, ReadsPairs) {
  const test::ScratchFolder folder;
  const Pair plain = make_pair_in(folder.path(), "plain");
  EXPECT_TRUE(ServerIdentity::read(plain.certificate, plain.key));
  const Pair rsa = make_pair_in(folder.path(), "rsa", {.is_rsa = true});
  EXPECT_TRUE(ServerIdentity::read(rsa.certificate, rsa.key));
  // With one that vouches for it behind it.
  test::write_to(folder.file("chain"),
                 test::contents_of(plain.certificate) + test::contents_of(rsa.certificate));
  EXPECT_TRUE(ServerIdentity::read(folder.file("chain"), plain.key));
}

TEST(ServerIdentity, SaysWhatIsWrongWithThem) {
  const test::ScratchFolder folder;
  const Pair plain = make_pair_in(folder.path(), "plain");
  const Pair other = make_pair_in(folder.path(), "other");
  const Pair rsa = make_pair_in(folder.path(), "rsa", {.is_rsa = true});
  const Pair old = make_pair_in(folder.path(), "old", {.begin_days = -9, .end_days = -2});
  const Pair future = make_pair_in(folder.path(), "future", {.begin_days = 2, .end_days = 9});
  const Pair locked = make_pair_in(folder.path(), "locked", {.password = "secret"});
  const std::string none = folder.file("none"), text = folder.file("text");
  test::write_to(text, "no certificate\n");
  test::write_to(folder.file("broken"), test::contents_of(plain.certificate) +
                                            "-----BEGIN CERTIFICATE-----\nAAAA\n"
                                            "-----END CERTIFICATE-----\n");
  struct Case {
    std::string certificate, key;
    std::string file, words;  // That the error names.
  };
  const Case cases[] = {
      {none, plain.key, none, "cannot open"},
      {plain.certificate, none, none, "cannot open"},
      {text, plain.key, text, "expected a certificate in PEM, found none"},
      {plain.key, plain.key, plain.key, "expected a certificate in PEM, found none"},
      {plain.certificate, plain.certificate, plain.certificate,
       "expected a private key in PEM, found none"},
      {plain.certificate, other.key, other.key, plain.certificate},
      {plain.certificate, rsa.key, rsa.key, plain.certificate},
      {old.certificate, old.key, old.certificate, "has expired at 2"},
      {future.certificate, future.key, future.certificate, "will be from 2"},
      {locked.certificate, locked.key, locked.key, "found one with a password"},
      {folder.file("broken"), plain.key, folder.file("broken"), "cannot be used"},
  };
  for (const Case& wrong : cases) {
    const std::string error = error_of(wrong.certificate, wrong.key);
    EXPECT_TRUE(error.starts_with(wrong.file + ": ")) << error;
    EXPECT_NE(error.find(wrong.words), std::string::npos) << error;
  }
}

class TlsServer : public testing::Test {
 protected:
  std::unique_ptr<Serving> serve(const http::Limits& limits = {}) {
    const Pair pair = make_pair_in(folder_.path(), "server");
    return std::make_unique<Serving>(AppOptions{}, "", EngineOptions{}, limits,
                                     ServerIdentity::read(pair.certificate, pair.key).value());
  }

 private:
  const test::ScratchFolder folder_;
};

TEST_F(TlsServer, AnswersAsWithout) {
  const auto serving = serve();
  json body = question(kFrance);
  for (const int version : {TLS1_2_VERSION, 0}) {
    TlsClient asking(serving->port(), version);
    ASSERT_TRUE(asking.is_secure());
    EXPECT_EQ(asking.version(), version == 0 ? "TLSv1.3" : "TLSv1.2");
    for (int round = 0; round < 2; ++round) {
      body["stream"] = false;
      ASSERT_TRUE(asking.send(post_request("/v1/chat/completions", body.dump())));
      const json reply = json::parse(asking.read_reply().body);
      EXPECT_EQ(reply["choices"][0]["message"]["content"], kParis);
      body["stream"] = true;
      ASSERT_TRUE(asking.send(post_request("/v1/chat/completions", body.dump())));
      const BareReply stream = asking.read_reply();
      EXPECT_TRUE(stream.is_whole);
      EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
    }
    // Byte by byte, and one behind the other.
    asking.send_in_pieces(get_request("/health"), 1);
    EXPECT_EQ(asking.read_reply().status, 200);
    ASSERT_TRUE(asking.send(get_request("/health") + get_request("/v1/models")));
    EXPECT_EQ(asking.read_reply().status, 200);
    EXPECT_EQ(asking.read_reply().status, 200);
    ASSERT_TRUE(asking.send(get_request("/health", "Connection: close\r\n")));
    EXPECT_EQ(asking.read_reply().status, 200);
    EXPECT_TRUE(asking.is_closed());
    EXPECT_TRUE(asking.was_told_the_end());
  }
}

TEST_F(TlsServer, OldVersionsAndNewKeysAreRefused) {
  const auto serving = serve();
  EXPECT_FALSE(TlsClient(serving->port(), TLS1_1_VERSION).is_secure());
  TlsClient asking(serving->port(), TLS1_2_VERSION);
  ASSERT_TRUE(asking.is_secure());
  EXPECT_FALSE(asking.renegotiates());
  TlsClient next(serving->port());
  ASSERT_TRUE(next.send(get_request("/health")));
  EXPECT_EQ(next.read_reply().status, 200);
}

// Whoever speaks plainly is told why, in plain words; nothing is done for him.
TEST_F(TlsServer, PlainRequestsAreRefused) {
  const auto serving = serve();
  const std::string chat = post_request("/v1/chat/completions", question(kFrance).dump());
  for (const std::string& request : {get_request("/health"), chat}) {
    BareClient asking = serving->client();
    ASSERT_TRUE(asking.send(request + get_request("/v1/models")));
    const BareReply reply = asking.read_reply();
    EXPECT_EQ(reply.status, 400);
    EXPECT_NE(reply.body.find("expected https"), std::string::npos) << reply.body;
    EXPECT_EQ(asking.take_all(), "");
  }
  EXPECT_EQ(serving->service().stats().steps, 0);
  using namespace std::string_view_literals;
  for (const std::string_view bytes : {"\x16\x03\x01\x00\x05hello"sv, "\x16"sv, "\x80\x2e\x01"sv}) {
    BareClient asking = serving->client();
    ASSERT_TRUE(asking.send(bytes));
    asking.end_sending();
    asking.take_all();
  }
  TlsClient asking(serving->port());
  ASSERT_TRUE(asking.send(get_request("/health")));
  EXPECT_EQ(asking.read_reply().status, 200);
}

TEST_F(TlsServer, SlowClientsAreCut) {
  const auto serving = serve({.head_seconds = 1, .idle_seconds = 1});
  BareClient silent = serving->client();
  BareClient half = serving->client();
  ASSERT_TRUE(half.send("\x16\x03\x01"));
  TlsClient unasked(serving->port());
  TlsClient begun(serving->port());
  begun.send("GET / HT");
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(half.is_closed());
  EXPECT_TRUE(unasked.is_closed());
  EXPECT_TRUE(begun.is_closed());
}

TEST_F(TlsServer, IdleClientsAreCut) {
  const auto serving = serve({.head_seconds = 60, .idle_seconds = 1});
  TlsClient idle(serving->port());
  ASSERT_TRUE(idle.send(get_request("/health")));
  EXPECT_EQ(idle.read_reply().status, 200);
  EXPECT_TRUE(idle.is_closed());
}

TEST_F(TlsServer, LimitsAreTheSame) {
  const auto serving = serve({.body_bytes_max = 1 << 20, .linger_seconds = 60});
  TlsClient header(serving->port());
  const std::string long_value(40000, 'a');
  ASSERT_TRUE(header.send("GET / HTTP/1.1\r\nHost: x\r\nA: " + long_value + "\r\n\r\n"));
  EXPECT_EQ(header.read_reply().status, 431);
  TlsClient declared(serving->port());
  ASSERT_TRUE(declared.send(
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10737418240\r\n\r\n"));
  EXPECT_EQ(declared.read_reply().status, 413);
  // Who sends all of it nevertheless reads the reply.
  TlsClient large(serving->port());
  ASSERT_TRUE(large.is_secure());
  large.send(post_request("/tokenize", std::string(size_t(20) << 20, 'x')));
  EXPECT_EQ(large.read_reply().status, 413);
  TlsClient fitting(serving->port());
  const std::string text(size_t(1) << 19, 'x');
  ASSERT_TRUE(fitting.send(post_request("/tokenize", json{{"content", text}}.dump())));
  EXPECT_EQ(fitting.read_reply().status, 200);
}

// Whatever was computed for it is not computed any further.
TEST_F(TlsServer, AClientThatGoesAwayIsNoticed) {
  const auto serving = serve();
  json body = question(kFrance);
  body["stream"] = true;
  body["ignore_eos"] = true;
  {
    TlsClient asking(serving->port());
    ASSERT_TRUE(asking.send(post_request("/v1/chat/completions", body.dump())));
    ASSERT_TRUE(asking.wait_for("\"delta\""));
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (serving->service().stats().running > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(serving->service().stats().running, 0);
}

}  // namespace
}  // namespace cairn::serve::server_identity_test
