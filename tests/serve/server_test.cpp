// Connections over bare sockets, with a handler that only echoes: framing, limits, clients that are
// slow, that go away, that send more than they should. Covers connection.cpp too.
#include "serve/http/server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/scratch_folder.h"
#include "tests/serve/bare_client.h"

namespace cairn::serve::http::server_test {
namespace {

std::unique_ptr<Reply> text_reply(int status, std::string text) {
  return std::make_unique<WholeReply>(ReplyHead{.status = status, .content_type = "text/plain"},
                                      std::move(text));
}

// A reply that says what it is told to, when it is told so.
struct Script {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> wake;
  std::string text;
  bool has_ended = false, is_broken = false;
  int begun_count = 0, destroyed_count = 0;

  void say(std::string more, bool ends = false) {
    const std::lock_guard lock(mutex);
    text += more;
    has_ended = ends;
    if (wake) wake();
  }
  void break_off(bool breaks) {
    const std::lock_guard lock(mutex);
    is_broken = breaks;
    if (wake) wake();
  }
  bool wait_until(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), condition);
  }
};

class ScriptedReply final : public Reply {
 public:
  explicit ScriptedReply(Script* script, bool is_endless = false)
      : script_(script), is_endless_(is_endless) {}
  ~ScriptedReply() override {
    const std::lock_guard lock(script_->mutex);
    script_->wake = {};
    ++script_->destroyed_count;
    script_->changed.notify_all();
  }
  void listen(std::function<void()> wake) override {
    const std::lock_guard lock(script_->mutex);
    script_->wake = std::move(wake);
    ++script_->begun_count;
    script_->changed.notify_all();
  }
  State read(std::string& out) override {
    const std::lock_guard lock(script_->mutex);
    out += std::exchange(script_->text, {});
    if (!out.empty()) is_head_known_ = true;
    if (script_->is_broken) return State::broken;
    return script_->has_ended ? State::ended : State::waiting;
  }
  const ReplyHead* head() const override { return is_head_known_ ? &head_ : nullptr; }
  bool is_endless() const override { return is_endless_; }
  std::string_view idle_text() const override { return ": still here\n\n"; }

 private:
  Script* script_;
  bool is_endless_;
  bool is_head_known_ = false;
  ReplyHead head_{.content_type = "text/event-stream", .is_stream = true};
};

std::string name_of(ServerPhase phase) {
  return phase == ServerPhase::serving   ? "serving"
         : phase == ServerPhase::leaving ? "leaving"
                                         : "finishing";
}

class Echo final : public Handler {
 public:
  Script script;
  std::atomic<int> ended_count = 0, last_status = 0;

  std::unique_ptr<Reply> admit(Request& request) override {
    request.id = "the-id";
    if (request.head.path == "/forbidden") return text_reply(403, "no");
    if (request.head.path == "/phase") return text_reply(200, name_of(request.phase));
    return nullptr;
  }
  bool is_quick(const Request& request) const override { return request.head.path == "/quick"; }
  std::unique_ptr<Reply> answer(Request& request) override {
    if (request.head.path == "/stream") return std::make_unique<ScriptedReply>(&script);
    if (request.head.path == "/endless") return std::make_unique<ScriptedReply>(&script, true);
    if (request.head.path == "/large") {
      return text_reply(200, std::string(size_t(64) << 20, 'x'));
    }
    return text_reply(200, request.head.method_name + " " + request.head.path + " " +
                               std::to_string(request.body.size()) + " " +
                               request.body.substr(0, 100));
  }
  std::unique_ptr<Reply> refuse(const RequestHead&, int status, std::string_view message) override {
    return text_reply(status, std::string(message));
  }
  void ended(const Request&, const Reply&, const Outcome& outcome) override {
    last_status = outcome.status;
    ++ended_count;
  }
};

class ServerTest : public testing::Test {
 protected:
  // Stops the server in the end, so that what holds it up is noticed.
  ~ServerTest() override { stop(); }

  void start(const Limits& limits = {}, const Address& address = {.port = 0}) {
    auto server = Server::listen(address, limits, &echo_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(server).value();
    thread_ = std::thread([this] { was_drained_ = server_->run(); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    server_->stop();
    server_->stop();
    thread_.join();
  }
  BareClient client() { return BareClient(server_->port()); }
  std::string body_of(std::string_view request) {
    BareClient asking = client();
    EXPECT_TRUE(asking.send(request));
    return asking.read_reply().body;
  }

  Echo echo_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::atomic<bool> was_drained_ = false;
};

TEST_F(ServerTest, AnswersRequestAfterRequest) {
  start();
  BareClient asking = client();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(asking.send(get_request("/a")));
    const BareReply first = asking.read_reply();
    EXPECT_EQ(first.status, 200);
    EXPECT_EQ(first.body, "GET /a 0 ");
    EXPECT_TRUE(first.has("x-request-id: the-id\r\n"));
    EXPECT_TRUE(first.has("x-content-type-options: nosniff\r\n"));
    ASSERT_TRUE(asking.send(post_request("/quick", "hello")));
    EXPECT_EQ(asking.read_reply().body, "POST /quick 5 hello");
  }
}

TEST_F(ServerTest, HeadHasNoBody) {
  start();
  BareClient asking = client();
  ASSERT_TRUE(asking.send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n" + get_request("/b")));
  const BareReply first = asking.read_reply(false);
  EXPECT_TRUE(first.has("content-length: 10\r\n"));
  EXPECT_EQ(asking.read_reply().body, "GET /b 0 ");
}

TEST_F(ServerTest, LargeRepliesFollowTheirHeads) {
  start();
  BareClient asking = client();
  ASSERT_TRUE(asking.send("HEAD /large HTTP/1.1\r\nHost: x\r\n\r\n" + get_request("/large") +
                          get_request("/b")));
  EXPECT_TRUE(asking.read_reply(false).has("content-length: 67108864\r\n"));
  EXPECT_EQ(asking.read_reply().body, std::string(size_t(64) << 20, 'x'));
  EXPECT_EQ(asking.read_reply().body, "GET /b 0 ");
}

// RFC 9110, 9.3.2: nothing follows the head of a stream, and what it would have told is not made.
TEST_F(ServerTest, HeadOfAStreamEndsWithItsHead) {
  start();
  BareClient asking = client();
  int count = 0;
  for (const std::string path : {"/stream", "/endless"}) {
    echo_.script.say("data: 1\n\n");
    ASSERT_TRUE(asking.send("HEAD " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_TRUE(asking.read_reply(false).has("content-type: text/event-stream\r\n"));
    ++count;
    EXPECT_TRUE(echo_.script.wait_until([&] { return echo_.script.destroyed_count == count; }));
    EXPECT_EQ(echo_.last_status, 200);
    ASSERT_TRUE(asking.send(get_request("/b")));
    EXPECT_EQ(asking.read_reply().body, "GET /b 0 ");
  }
}

TEST_F(ServerTest, PiecesOfAnySize) {
  start();
  const std::string chunked =
      "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
  for (const size_t bytes : {1, 3, 10, 1000}) {
    BareClient asking = client();
    asking.send_in_pieces(post_request("/p", "hello") + chunked + get_request("/q"), bytes);
    EXPECT_EQ(asking.read_reply().body, "POST /p 5 hello") << bytes;
    EXPECT_EQ(asking.read_reply().body, "POST /c 7 abcdefg") << bytes;
    EXPECT_EQ(asking.read_reply().body, "GET /q 0 ") << bytes;
  }
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInTheirOrder) {
  start();
  BareClient asking = client();
  std::string all;
  for (int number = 0; number < 200; ++number) {
    all += number % 2 == 0 ? get_request("/" + std::to_string(number))
                           : post_request("/quick", std::to_string(number));
  }
  ASSERT_TRUE(asking.send(all));
  for (int number = 0; number < 200; ++number) {
    const std::string text = std::to_string(number);
    EXPECT_EQ(asking.read_reply().body,
              number % 2 == 0 ? "GET /" + text + " 0 "
                              : "POST /quick " + std::to_string(text.size()) + " " + text);
  }
}

TEST_F(ServerTest, ConnectionsCloseWhereTheyAreAskedTo) {
  start();
  BareClient asking = client();
  ASSERT_TRUE(asking.send(get_request("/a", "Connection: close\r\n") + get_request("/b")));
  EXPECT_TRUE(asking.read_reply().has("connection: close\r\n"));
  EXPECT_TRUE(asking.is_closed());
  BareClient old = client();
  ASSERT_TRUE(old.send("GET /a HTTP/1.0\r\n\r\n"));
  EXPECT_EQ(old.read_reply().body, "GET /a 0 ");
  EXPECT_TRUE(old.is_closed());
}

// What follows is never read as a request.
TEST_F(ServerTest, WhatIsNoRequestEndsTheConnection) {
  start();
  const std::string hidden = get_request("/hidden");
  const std::vector<std::pair<std::string, int>> cases = {
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
       "0\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: x\n\n", 400},
      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", 400},
      {"\x16\x03\x01\x02\r\n\r\n", 400},
      {"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(40000, 'a') + "\r\n\r\n", 431},
  };
  for (const auto& [bytes, status] : cases) {
    BareClient asking = client();
    asking.send(bytes + hidden);
    const BareReply reply = asking.read_reply();
    EXPECT_EQ(reply.status, status) << bytes.substr(0, 200);
    EXPECT_TRUE(reply.has("connection: close\r\n"));
    EXPECT_EQ(asking.take_all(), "") << bytes.substr(0, 200);
  }
}

TEST_F(ServerTest, BodiesHaveLimits) {
  start({.body_bytes_max = 1 << 20, .linger_seconds = 60});
  BareClient asking = client();
  ASSERT_TRUE(asking.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10737418240\r\n\r\n"));
  EXPECT_EQ(asking.read_reply().status, 413) << "before any byte of it";
  EXPECT_TRUE(asking.is_closed());
  BareClient chunked = client();
  chunked.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "10000\r\n" + std::string(65536, 'x') + "\r\n";
  for (int count = 0; count < 17; ++count) chunked.send(chunk);
  EXPECT_EQ(chunked.read_reply().status, 413);
  // Who sends all of it nevertheless reads the reply.
  BareClient large = client();
  large.send(post_request("/", std::string(100 << 20, 'x')));
  EXPECT_EQ(large.read_reply().status, 413);
  EXPECT_EQ(body_of(post_request("/a", std::string(1 << 20, 'x'))),
            "POST /a 1048576 " + std::string(100, 'x'));
}

TEST_F(ServerTest, BodiesTogetherHaveALimit) {
  start({.body_bytes_max = 1 << 20, .bodies_bytes_max = 3 << 19});
  BareClient first = client();
  ASSERT_TRUE(
      first.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n"
                 "Expect: 100-continue\r\n\r\n"));
  EXPECT_EQ(first.read_reply().status, 100);
  BareClient second = client();
  ASSERT_TRUE(second.send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n"));
  EXPECT_EQ(second.read_reply().status, 503);
  ASSERT_TRUE(first.send(std::string(1 << 20, 'x')));
  EXPECT_EQ(first.read_reply().status, 200);
  EXPECT_EQ(body_of(post_request("/b", std::string(1 << 20, 'x'))).substr(0, 16),
            "POST /b 1048576 ");
}

// A refusal by the head alone comes before the body, which is not read.
TEST_F(ServerTest, RefusalsCostNoBody) {
  start();
  BareClient asking = client();
  ASSERT_TRUE(
      asking.send("POST /forbidden HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
                  "Expect: 100-continue\r\n\r\n"));
  const BareReply reply = asking.read_reply();
  EXPECT_EQ(reply.status, 403);
  EXPECT_TRUE(asking.is_closed());
  BareClient other = client();
  ASSERT_TRUE(other.send(get_request("/forbidden") + get_request("/a")));
  EXPECT_EQ(other.read_reply().status, 403);
  EXPECT_EQ(other.read_reply().status, 200) << "without a body the connection stays";
}

// Attack 20.
TEST_F(ServerTest, SlowRequestsAreCut) {
  start({.head_seconds = 0.3, .body_seconds = 0.3});
  BareClient silent = client();
  BareClient half = client();
  half.send("GET / HT");
  BareClient body = client();
  body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(half.is_closed());
  EXPECT_TRUE(body.is_closed());
}

TEST_F(ServerTest, IdleConnectionsAreCut) {
  start({.head_seconds = 60, .idle_seconds = 0.3});
  BareClient idle = client();
  idle.send(get_request("/a"));
  EXPECT_EQ(idle.read_reply().status, 200);
  EXPECT_TRUE(idle.is_closed());
}

// Attack 21.
TEST_F(ServerTest, AReaderThatTakesNothingIsCutAndHoldsUpNobody) {
  start({.write_seconds = 1});
  BareClient slow(server_->port(), 4096);
  ASSERT_TRUE(slow.send(get_request("/large")));
  ASSERT_TRUE(slow.wait_for("\r\n\r\n"));
  EXPECT_EQ(body_of(get_request("/a")), "GET /a 0 ") << "while the other one waits";
  while (echo_.ended_count < 2) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(echo_.last_status, 499);
}

// Attack 21: what the system takes into its buffers is not counted byte by byte.
TEST_F(ServerTest, AReaderThatTakesBytesNowAndThenIsCutToo) {
  start({.write_seconds = 1});
  BareClient slow(server_->port(), 4096);
  ASSERT_TRUE(slow.send(get_request("/large")));
  for (int count = 0; count < 400 && echo_.ended_count == 0; ++count) {
    slow.take_byte();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(echo_.ended_count, 1) << "after twenty seconds";
  EXPECT_EQ(echo_.last_status, 499);
}

TEST_F(ServerTest, StreamsComePieceByPiece) {
  start();
  BareClient asking = client();
  ASSERT_TRUE(asking.send(get_request("/stream")));
  ASSERT_TRUE(echo_.script.wait_until([&] { return echo_.script.begun_count == 1; }));
  echo_.script.say("data: 1\n\n");
  EXPECT_TRUE(asking.wait_for("data: 1\n\n"));
  echo_.script.say("data: 2\n\n");
  EXPECT_TRUE(asking.wait_for("data: 2\n\n"));
  echo_.script.say("", true);
  const BareReply reply = asking.read_reply();
  EXPECT_TRUE(reply.is_chunked && reply.is_whole);
  EXPECT_EQ(reply.body, "data: 1\n\ndata: 2\n\n");
  ASSERT_TRUE(asking.send(get_request("/a")));
  EXPECT_EQ(asking.read_reply().status, 200) << "the connection stays";
}

TEST_F(ServerTest, StreamsForOldClientsEndWithTheConnection) {
  start();
  echo_.script.say("data: 1\n\n", true);
  BareClient asking = client();
  ASSERT_TRUE(asking.send("GET /stream HTTP/1.0\r\n\r\n"));
  const BareReply reply = asking.read_reply();
  EXPECT_TRUE(!reply.is_chunked && reply.is_whole);
  EXPECT_EQ(reply.body, "data: 1\n\n");
}

TEST_F(ServerTest, SilentStreamsSayThatTheyAreThere) {
  start({.comment_seconds = 0.05});
  BareClient asking = client();
  ASSERT_TRUE(asking.send(get_request("/stream")));
  echo_.script.say("data: 1\n\n");
  EXPECT_TRUE(asking.wait_for(": still here\n\n"));
  echo_.script.say("data: 2\n\n", true);
  EXPECT_TRUE(asking.read_reply().is_whole);
}

// To old clients, whose streams end with the connection, the way in which that ends tells it.
TEST_F(ServerTest, ABrokenReplyIsSeenAsSuch) {
  start();
  for (const std::string& request :
       {get_request("/stream"), std::string("GET /stream HTTP/1.0\r\n\r\n")}) {
    BareClient asking = client();
    ASSERT_TRUE(asking.send(request));
    echo_.script.say("data: 1\n\n");
    ASSERT_TRUE(asking.wait_for("data: 1\n\n"));
    echo_.script.break_off(true);
    const BareReply reply = asking.read_reply();
    EXPECT_EQ(reply.body, "data: 1\n\n");
    EXPECT_FALSE(reply.is_whole) << request;
    echo_.script.break_off(false);
  }
}

// Its reply is destroyed at once, whatever it waits for.
TEST_F(ServerTest, AClientThatGoesAwayIsNoticed) {
  start();
  for (const bool has_begun : {false, true}) {
    for (const bool only_ends_sending : {false, true}) {
      const int before = echo_.script.destroyed_count;
      BareClient asking = client();
      ASSERT_TRUE(asking.send(get_request("/stream")));
      ASSERT_TRUE(echo_.script.wait_until([&] { return echo_.script.begun_count == before + 1; }));
      if (has_begun) {
        echo_.script.say("data: 1\n\n");
        ASSERT_TRUE(asking.wait_for("data: 1\n\n"));
      }
      only_ends_sending ? asking.end_sending() : asking.close();
      EXPECT_TRUE(
          echo_.script.wait_until([&] { return echo_.script.destroyed_count == before + 1; }));
    }
  }
}

// Also where it has sent its next request before.
TEST_F(ServerTest, AClientThatGoesAwayBehindAnotherRequestIsNoticed) {
  start();
  BareClient asking = client();
  ASSERT_TRUE(asking.send(get_request("/stream") + get_request("/a")));
  ASSERT_TRUE(echo_.script.wait_until([&] { return echo_.script.begun_count == 1; }));
  asking.close();
  EXPECT_TRUE(echo_.script.wait_until([&] { return echo_.script.destroyed_count == 1; }));
}

// What needs no time is answered whatever the client has closed.
TEST_F(ServerTest, HalfClosedConnectionsGetWhatTheyAskedFor) {
  start();
  BareClient asking = client();
  ASSERT_TRUE(asking.send(get_request("/a") + post_request("/b", "x")));
  asking.end_sending();
  EXPECT_EQ(asking.read_reply().body, "GET /a 0 ");
  EXPECT_EQ(asking.read_reply().body, "POST /b 1 x");
  EXPECT_TRUE(asking.is_closed());
  BareClient half = client();
  half.send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  half.end_sending();
  EXPECT_TRUE(half.is_closed());
}

TEST_F(ServerTest, ConnectionsHaveALimit) {
  start({.connections_max = 3});
  std::vector<BareClient> held;
  for (int count = 0; count < 3; ++count) {
    held.push_back(client());
    ASSERT_TRUE(held.back().send(get_request("/a")));
    EXPECT_EQ(held.back().read_reply().status, 200);
  }
  BareClient late = client();
  late.send(get_request("/a"));
  EXPECT_EQ(late.read_reply().status, 0);
  held.pop_back();
  // It takes the server a moment to see that one has gone.
  int status = 0;
  for (int round = 0; round < 1000 && status == 0; ++round) {
    BareClient again = client();
    again.send(get_request("/a"));
    status = again.read_reply().status;
  }
  EXPECT_EQ(status, 200);
}

// What is being answered is finished; whoever looks meanwhile sees that.
TEST_F(ServerTest, Drains) {
  start();
  BareClient idle = client();
  ASSERT_TRUE(idle.send(get_request("/a")));
  EXPECT_EQ(idle.read_reply().status, 200);
  BareClient asking = client();
  ASSERT_TRUE(asking.send(get_request("/stream")));
  ASSERT_TRUE(echo_.script.wait_until([&] { return echo_.script.begun_count == 1; }));
  server_->stop();
  EXPECT_TRUE(idle.is_closed());
  EXPECT_EQ(body_of(get_request("/phase")), "finishing");
  const BareClient late = client();  // Is not waited for.
  echo_.script.say("data: 1\n\n", true);
  const BareReply reply = asking.read_reply();
  EXPECT_TRUE(reply.is_whole);
  EXPECT_TRUE(reply.has("connection: close\r\n"));
  EXPECT_TRUE(asking.is_closed());
  thread_.join();
  EXPECT_TRUE(was_drained_);
}

// Those who choose servers have time to notice; until then all are answered.
TEST_F(ServerTest, LeavesBeforeItFinishes) {
  start({.drain_seconds = 0.5});
  BareClient idle = client(), watching = client();
  ASSERT_TRUE(idle.send(get_request("/phase")));
  EXPECT_EQ(idle.read_reply().body, "serving");
  ASSERT_TRUE(watching.send(get_request("/endless")));
  ASSERT_TRUE(echo_.script.wait_until([&] { return echo_.script.begun_count == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  server_->stop();
  EXPECT_TRUE(watching.is_closed()) << "what has no end";
  ASSERT_TRUE(idle.send(get_request("/phase")));
  const BareReply reply = idle.read_reply();
  EXPECT_EQ(reply.body, "leaving");
  EXPECT_TRUE(reply.has("connection: close\r\n"));
  EXPECT_EQ(body_of(get_request("/phase")), "leaving");
  thread_.join();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
  EXPECT_TRUE(was_drained_);
  EXPECT_FALSE(client().is_connected());
}

TEST_F(ServerTest, ASecondStopEndsTheLeaving) {
  start({.drain_seconds = 3600});
  server_->stop();
  EXPECT_EQ(body_of(get_request("/phase")), "leaving");
  server_->stop();
  thread_.join();
  EXPECT_FALSE(was_drained_);
}

// What has no end of its own is not waited for.
TEST_F(ServerTest, DrainsWithoutTheEndless) {
  start();
  BareClient watching = client();
  ASSERT_TRUE(watching.send(get_request("/endless")));
  ASSERT_TRUE(echo_.script.wait_until([&] { return echo_.script.begun_count == 1; }));
  echo_.script.say("data: 1\n\n");
  ASSERT_TRUE(watching.wait_for("data: 1"));
  server_->stop();
  thread_.join();
  EXPECT_TRUE(was_drained_);
  EXPECT_NE(watching.take_all().find("data: 1"), std::string::npos) << "and then its end";
  EXPECT_EQ(echo_.script.destroyed_count, 1);
}

TEST_F(ServerTest, ASecondStopEndsAll) {
  start();
  BareClient asking = client();
  ASSERT_TRUE(asking.send(get_request("/stream")));
  ASSERT_TRUE(echo_.script.wait_until([&] { return echo_.script.begun_count == 1; }));
  server_->stop();
  server_->stop();
  thread_.join();
  EXPECT_FALSE(was_drained_);
  EXPECT_EQ(echo_.script.destroyed_count, 1);
  EXPECT_TRUE(asking.is_closed());
}

TEST_F(ServerTest, ListensOnASocketOfItsOwner) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("socket");
  start({}, {.unix_path = path});
  struct stat found = {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  BareClient asking(path);
  ASSERT_TRUE(asking.send(get_request("/a")));
  EXPECT_EQ(asking.read_reply().body, "GET /a 0 ");
  EXPECT_FALSE(Server::listen({.unix_path = path}, {}, &echo_)) << "another one listens there";
  stop();
  server_.reset();
  EXPECT_NE(::stat(path.c_str(), &found), 0);
}

TEST_F(ServerTest, PathsThatAreNoSocketsStay) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("precious");
  test::write_to(path, "text");
  auto server = Server::listen({.unix_path = path}, {}, &echo_);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(Server::listen({.unix_path = folder.file(std::string(200, 'x'))}, {}, &echo_));
  struct stat found = {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0);
}

TEST_F(ServerTest, AddressesAreAddresses) {
  EXPECT_TRUE(is_loopback("127.0.0.1").value());
  EXPECT_TRUE(is_loopback("localhost").value());
  EXPECT_TRUE(is_loopback("::1").value());
  EXPECT_FALSE(is_loopback("0.0.0.0").value());
  EXPECT_FALSE(is_loopback("::").value());
  EXPECT_FALSE(is_loopback("192.168.1.7").value());
  EXPECT_FALSE(is_loopback("example.org"));
  start();
  EXPECT_FALSE(Server::listen({.port = server_->port()}, {}, &echo_)) << "the port is taken";
}

}  // namespace
}  // namespace cairn::serve::http::server_test
