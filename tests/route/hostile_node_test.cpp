// Nodes that do what they should not: replies that are none, that come too early, that break off,
// that do not end. Whoever asked sees a whole reply or a broken one, and the next request is
// answered.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "route/node_link.h"
#include "route/route_app.h"
#include "serve/http/server.h"
#include "tests/listener.h"
#include "tests/scratch_folder.h"
#include "tests/serve/bare_client.h"
#include "tests/wait_until.h"

namespace cairn::route::hostile_node_test {
namespace {

namespace http = serve::http;
using serve::BareClient;
using serve::BareReply;
using serve::get_request;
using serve::post_request;
using State = http::Reply::State;
using test::send_all;
using test::wait_until;

constexpr size_t kMiB = size_t(1) << 20;

// A node whose checks succeed, and which says to all else what its script says.
class ScriptedNode {
 public:
  using Script = std::function<void(ScriptedNode& node, int socket, const std::string& head)>;
  explicit ScriptedNode(Script script)
      : script_(std::move(script)),
        listener_([this](int socket) { take(socket); }),
        url_("127.0.0.1:" + listener_.port()) {}
  ScriptedNode(const std::string& unix_path, Script script)
      : script_(std::move(script)),
        listener_(unix_path, [this](int socket) { take(socket); }),
        url_("unix:" + unix_path) {}
  // Always the same bytes.
  explicit ScriptedNode(std::string reply)
      : ScriptedNode([reply = std::move(reply)](ScriptedNode&, int socket, const std::string&) {
          send_all(socket, reply);
        }) {}
  ~ScriptedNode() {
    listener_.stop();
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }
  const std::string& url() const { return url_; }
  int asked_count() const { return asked_count_; }
  void set_metrics(std::string text) {
    const std::lock_guard lock(mutex_);
    metrics_ = std::move(text);
  }
  // For scripts that hold a connection and do nothing with it.
  void wait_for_the_end() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_over_; });
  }

 private:
  void take(int socket) {
    const std::lock_guard lock(mutex_);
    sockets_.insert(socket);
    threads_.emplace_back([this, socket] {
      talk(socket);
      const std::lock_guard closing(mutex_);
      sockets_.erase(socket);
      ::close(socket);
    });
  }
  void talk(int socket) {
    std::string head;
    char byte = 0;
    while (!head.ends_with("\r\n\r\n")) {
      if (::recv(socket, &byte, 1, 0) <= 0) return;
      head += byte;
    }
    if (head.starts_with("GET /health ")) {
      send_all(socket, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
    } else if (head.starts_with("GET /metrics ")) {
      std::unique_lock lock(mutex_);
      const std::string text = metrics_;
      lock.unlock();
      send_all(socket, "HTTP/1.1 200 OK\r\ncontent-length: " + std::to_string(text.size()) +
                           "\r\n\r\n" + text);
    } else {
      ++asked_count_;
      script_(*this, socket, head);
    }
  }

  Script script_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::string metrics_;
  std::set<int> sockets_;
  std::vector<std::thread> threads_;
  std::atomic<int> asked_count_ = 0;
  test::Listener listener_;
  std::string url_;
};

// A router before one node.
struct Router : http::Handler {
  // On a machine that is busy a check may take its time.
  static constexpr double kAnyTime = 600;
  explicit Router(const ScriptedNode& node,
                  LinkOptions options = {.connect_seconds = kAnyTime, .check_seconds = kAnyTime}) {
    fleet.set_nodes(parse_nodes("list", node.url()).value());
    link = std::make_unique<NodeLink>(&fleet, std::move(options));
    app = std::make_unique<RouteApp>(&fleet, link.get(), serve::RequestLog::open("").value(),
                                     RouteOptions{});
    server = http::Server::listen({.port = 0}, {}, this).value();
    thread = std::thread([this] { server->run(); });
  }
  ~Router() override {
    server->stop();
    server->stop();
    thread.join();
    server.reset();
  }
  BareClient client() const {
    return BareClient(uint16_t(std::stoi(server->url().substr(server->url().rfind(':') + 1))));
  }
  BareReply asked(const std::string& request) const {
    BareClient one = client();
    EXPECT_TRUE(one.send(request));
    return one.read_reply();
  }

  std::unique_ptr<http::Reply> admit(http::Request& request) override {
    return app->admit(request);
  }
  bool is_quick(const http::Request& request) const override { return app->is_quick(request); }
  std::unique_ptr<http::Reply> answer(http::Request& request) override {
    return app->answer(request);
  }
  std::unique_ptr<http::Reply> refuse(const http::RequestHead& head, int status,
                                      std::string_view message) override {
    return app->refuse(head, status, message);
  }
  void ended(const http::Request& request, const http::Reply& reply,
             const Outcome& outcome) override {
    app->ended(request, reply, outcome);
    ++ended_count;
  }

  Fleet fleet;
  std::unique_ptr<NodeLink> link;
  std::unique_ptr<RouteApp> app;
  std::atomic<int> ended_count = 0;
  std::unique_ptr<http::Server> server;
  std::thread thread;
};

std::string whole_reply(std::string_view headers, std::string_view body) {
  return "HTTP/1.1 200 OK\r\n" + std::string(headers) +
         "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

// RFC 9110, 15.2: any number of them before the reply, each without a body.
TEST(HostileNode, InterimRepliesAreNoReplies) {
  const ScriptedNode node(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nx-hint: 1\r\n"
      "content-length: 7\r\n\r\n" +
      whole_reply("x-of-reply: 1\r\n", "whole"));
  const Router router(node);
  BareClient client = router.client();
  for (int count = 0; count < 2; ++count) {
    ASSERT_TRUE(client.send(post_request("/x", "{}")));
    const BareReply reply = client.read_reply();
    EXPECT_EQ(reply.status, 200) << reply.head;
    EXPECT_EQ(reply.body, "whole");
    EXPECT_TRUE(reply.has("x-of-reply: 1\r\n"));
    EXPECT_FALSE(reply.has("x-hint"));
  }
}

TEST(HostileNode, AnInterimReplyAloneIsALostNode) {
  const ScriptedNode node("HTTP/1.1 100 Continue\r\n\r\n");
  const Router router(node);
  const BareReply reply = router.asked(post_request("/x", "{}"));
  EXPECT_EQ(reply.status, 502) << reply.head;
  EXPECT_NE(reply.body.find("node_lost"), std::string::npos) << reply.body;
}

// What a node says of a reply's form is believed where it can be said again, and nowhere else.
TEST(HostileNode, RepliesOfAnotherFormAreRefused) {
  const std::string replies[] = {
      "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nbytes",
      "HTTP/1.1 000 None\r\ncontent-length: 2\r\n\r\nno",
      "HTTP/1.1 20 OK\r\ncontent-length: 2\r\n\r\nno",
      "HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\nno",
      "SSH-2.0-OpenSSH\r\n\r\n",
      "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n"
      "0\r\n\r\n",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\nno",
      "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nno!",
      "HTTP/1.1 200 OK\r\ncontent-length: 2, 3\r\n\r\nno!",
      "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nno",
      "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\nno",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n"
      "0\r\n\r\n",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\nno",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nno",
      "HTTP/1.1 200 OK\ncontent-length: 2\n\nno",
      "HTTP/1.1 200 OK\r\nx-one: a\nx-two: b\r\ncontent-length: 2\r\n\r\nno",
      "HTTP/1.1 200 OK\r\nx-one: a\rx-two: b\r\ncontent-length: 2\r\n\r\nno",
      "HTTP/1.1 200 OK\r\nx-one: a" + std::string(1, '\0') + "b\r\ncontent-length: 2\r\n\r\nno",
      "HTTP/1.1 200 OK\r\nx one: a\r\ncontent-length: 2\r\n\r\nno",
      "HTTP/1.1 200 OK\r\nx-one : a\r\ncontent-length: 2\r\n\r\nno",
      "HTTP/1.1 200 OK\r\n" + std::string(200'000, 'x'),
      "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nno",
      "",
  };
  for (const std::string& text : replies) {
    const ScriptedNode node(text);
    const Router router(node);
    const BareReply reply = router.asked(post_request("/x", "{}"));
    EXPECT_EQ(reply.status, 502) << text.substr(0, 200);
    EXPECT_NE(reply.body.find("node_lost"), std::string::npos) << reply.body;
    EXPECT_EQ(node.asked_count(), 1);  // Nothing is sent twice.
    EXPECT_TRUE(wait_until([&] { return router.fleet.own_count(0) == 0; }));
  }
}

// The line that goes on in the next one is one value (RFC 9112, 5.2).
TEST(HostileNode, FoldedLinesAreUnfolded) {
  const ScriptedNode node(whole_reply("x-one: a\r\n b\r\n", "whole"));
  const Router router(node);
  const BareReply reply = router.asked(get_request("/x"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_TRUE(reply.has("x-one: a b\r\n")) << reply.head;
}

// Behind a reply without a body nothing is, whatever its head says; the connection stays usable.
TEST(HostileNode, RepliesWithoutABodyHaveNone) {
  for (const char* status : {"204 No Content", "304 Not Modified"}) {
    const ScriptedNode node("HTTP/1.1 " + std::string(status) +
                            "\r\ncontent-length: 5\r\n\r\nextra");
    const Router router(node);
    BareClient client = router.client();
    ASSERT_TRUE(client.send(get_request("/x") + get_request("/health")));
    ASSERT_TRUE(client.wait_for("\r\n\r\n"));
    const BareReply first = client.read_reply(false);
    EXPECT_EQ(first.status, std::atoi(status));
    EXPECT_FALSE(first.has("content-length")) << first.head;
    const BareReply second = client.read_reply();
    EXPECT_EQ(second.status, 200);
    EXPECT_NE(second.body.find("\"nodes\":1"), std::string::npos) << second.body;
  }
}

// What is behind a reply's end is nobody's.
TEST(HostileNode, BytesBehindAReplyAreDropped) {
  const ScriptedNode node(whole_reply("", "whole") + whole_reply("", "smuggled"));
  const Router router(node);
  BareClient client = router.client();
  ASSERT_TRUE(client.send(get_request("/x") + get_request("/health")));
  EXPECT_EQ(client.read_reply().body, "whole");
  EXPECT_NE(client.read_reply().body.find("\"nodes\":1"), std::string::npos);
}

TEST(HostileNode, StreamsThatBreakOffLookBroken) {
  const std::string head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
  const std::string chunked = head + "transfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";
  for (const std::string& text :
       {chunked, chunked + "5\r\nsec", chunked + "5\r\nsecond\r\n", chunked + "x\r\nsecond",
        chunked + "-1\r\nsecond\r\n", chunked + "fffffffffffffffff\r\n", chunked + "0\r\n",
        chunked + "0\r\nx-trailer: 1\r\n", chunked + "0\r\nx trailer\r\n\r\n",
        head + "content-length: 9000000\r\n\r\nfirst"}) {
    const ScriptedNode node(text);
    const Router router(node);
    const BareReply reply = router.asked(post_request("/x", "{}"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_TRUE(reply.body.starts_with("first")) << reply.body;
    EXPECT_TRUE(reply.is_chunked);
    EXPECT_FALSE(reply.is_whole) << text;
    EXPECT_NE(router.fleet.metrics().find("status=\"0\"} 1\n"), std::string::npos);
    EXPECT_EQ(node.asked_count(), 1);
  }
}

// Trailers are about the node's connection.
TEST(HostileNode, TrailersStayBehind) {
  const ScriptedNode node(
      "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\ntrailer: x-late\r\n\r\n5;a=b\r\nfirst\r\n"
      "0\r\nx-late: 1\r\n\r\n");
  const Router router(node);
  const BareReply reply = router.asked(get_request("/x"));
  EXPECT_EQ(reply.body, "first");
  EXPECT_TRUE(reply.is_whole);
  EXPECT_FALSE(reply.has("x-late") || reply.has("trailer"));
}

// A node may refuse before it has read what it refuses, and read no more of it.
TEST(HostileNode, RefusalsComeBeforeTheBodyIsSent) {
  // Of a Unix socket the system would wait for ever.
  const test::ScratchFolder folder;
  const ScriptedNode node(
      folder.file("node.sock"), [](ScriptedNode& self, int socket, const std::string&) {
        send_all(socket, "HTTP/1.1 413 Content Too Large\r\ncontent-length: 8\r\n\r\ntoo much");
        self.wait_for_the_end();
      });
  // More than the system keeps of what nobody reads.
  const std::string body(30 * kMiB, ' ');
  const Router router(node, {.connect_seconds = Router::kAnyTime, .bodies_bytes_max = 50 * kMiB});
  for (int count = 0; count < 2; ++count) {
    BareReply reply;
    // The first body takes up room until its connection is closed.
    EXPECT_TRUE(wait_until([&] {
      reply = router.asked(post_request("/x", body));
      return reply.status != 503;
    }));
    EXPECT_EQ(reply.status, 413) << reply.head;
    EXPECT_EQ(reply.body, "too much");
  }
  EXPECT_TRUE(wait_until([&] { return router.fleet.own_count(0) == 0; }));
}

// A stream that begins before the node has read all, and goes on while it reads.
TEST(HostileNode, RepliesComeWhileTheBodyIsSent) {
  const size_t bytes = 30 * kMiB;
  const ScriptedNode node([&](ScriptedNode&, int socket, const std::string&) {
    send_all(socket, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    std::string piece(kMiB, '\0');
    const std::string chunk = "100000\r\n" + std::string(kMiB, 'y') + "\r\n";
    for (size_t count = 0; count < bytes;) {
      // As much again as came.
      if (!send_all(socket, chunk)) return;
      for (size_t taken = 0; taken < piece.size();) {
        const ssize_t got = ::recv(socket, piece.data(), piece.size() - taken, 0);
        if (got <= 0) return;
        taken += size_t(got);
      }
      count += piece.size();
    }
    send_all(socket, "0\r\n\r\n");
  });
  const Router router(node);
  const BareReply reply = router.asked(post_request("/x", std::string(bytes, ' ')));
  EXPECT_TRUE(reply.is_whole);
  EXPECT_EQ(reply.body.size(), bytes);
}

// Lines of chunks are kept until they end: they have to end.
TEST(HostileNode, ALineWithoutAnEndIsNotKept) {
  std::atomic<size_t> sent_bytes = 0;
  const ScriptedNode node([&](ScriptedNode&, int socket, const std::string&) {
    send_all(socket, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;");
    const std::string piece(kMiB, 'x');
    while (sent_bytes < 128 * kMiB && send_all(socket, piece)) sent_bytes += piece.size();
  });
  const Router router(node);
  EXPECT_FALSE(router.asked(get_request("/x")).is_whole);
  EXPECT_TRUE(wait_until([&] { return router.fleet.own_count(0) == 0; }));
  EXPECT_LT(sent_bytes, 64 * kMiB);
}

// Which pages may read a reply is the router's matter.
TEST(HostileNode, PagesAreToldWhatTheRouterSays) {
  const ScriptedNode node(whole_reply(
      "access-control-allow-origin: *\r\naccess-control-allow-credentials: true\r\n", "whole"));
  const Router router(node);
  const BareReply own = router.asked(get_request("/x", "Origin: http://localhost\r\n"));
  EXPECT_EQ(own.body, "whole");
  EXPECT_TRUE(own.has("access-control-allow-origin: http://localhost\r\n")) << own.head;
  EXPECT_FALSE(own.has("access-control-allow-origin: *\r\n")) << own.head;
  EXPECT_FALSE(own.has("access-control-allow-credentials")) << own.head;
  EXPECT_FALSE(router.asked(get_request("/x")).has("access-control-"));
}

// The value of a metric of the only node.
double metric(const Fleet& fleet, const std::string& name) {
  const std::string text = fleet.metrics();
  const size_t at = text.find("\n" + name + "{");
  return at == text.npos ? -1 : std::stod(text.substr(text.find("} ", at) + 2));
}

// What a node says of its load is a number of requests, or nothing.
TEST(HostileNode, WhatItsMetricsSayIsBounded) {
  for (const char* wrong : {"nan", "-nan", "-inf", "-1e300", "NaN", "x", "-5", ""}) {
    ScriptedNode node(whole_reply("", "whole"));
    const std::string value = wrong;
    node.set_metrics("cairn_num_requests_waiting{model=\"a\"} " + value +
                     "\ncairn_num_requests_waiting{model=\"b\"} 1\n"
                     "cairn_num_requests_running{model=\"a\"} " +
                     value + "\n");
    const Router router(node, {.connect_seconds = Router::kAnyTime, .check_seconds = 0.01});
    EXPECT_TRUE(wait_until([&] {
      return metric(router.fleet, "cairn_route_queue_milliseconds") != 0;
    })) << value;
    // One waits, for which nobody has measured anything.
    EXPECT_EQ(metric(router.fleet, "cairn_route_queue_milliseconds"), 200) << value;
  }
}

}  // namespace
}  // namespace cairn::route::hostile_node_test
