// Replies that pass, over a node of this process: what a client does not read is not made, what it
// gives up ends, and what no node takes is refused.
#include "route/node_link.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "serve/http/server.h"
#include "tests/wait_until.h"

namespace cairn::route::node_link_test {
namespace {

namespace http = serve::http;
using State = http::Reply::State;
using test::wait_until;

struct Counts {
  std::atomic<size_t> made_bytes = 0;
  std::atomic<int> open_replies = 0, requests = 0;
  std::mutex mutex;
  std::vector<std::string> seen;  // "POST /path?query name: value … body"
};

// As many bytes as anybody takes.
class Endless final : public http::Reply {
 public:
  explicit Endless(Counts* counts) : counts_(*counts) { ++counts_.open_replies; }
  ~Endless() override { --counts_.open_replies; }
  void listen(std::function<void()>) override {}
  State read(std::string& out) override {
    out.append(64 << 10, 'x');
    counts_.made_bytes += 64 << 10;
    return State::waiting;
  }
  const http::ReplyHead* head() const override { return &head_; }

 private:
  Counts& counts_;
  http::ReplyHead head_{.content_type = "text/plain", .is_stream = true};
};

class Silent final : public http::Reply {
 public:
  explicit Silent(Counts* counts) : counts_(*counts) { ++counts_.open_replies; }
  ~Silent() override { --counts_.open_replies; }
  void listen(std::function<void()>) override {}
  State read(std::string&) override { return State::waiting; }
  const http::ReplyHead* head() const override { return nullptr; }

 private:
  Counts& counts_;
};

class FakeNode final : public http::Handler {
 public:
  FakeNode() : server_(http::Server::listen({.port = 0}, {}, this).value()) {
    thread_ = std::thread([this] { server_->run(); });
  }
  ~FakeNode() override {
    server_->stop();
    server_->stop();
    thread_.join();
  }
  std::string url() const { return server_->url(); }
  Counts& counts() { return counts_; }

  std::unique_ptr<http::Reply> admit(http::Request&) override { return nullptr; }
  bool is_quick(const http::Request&) const override { return true; }
  std::unique_ptr<http::Reply> answer(http::Request& request) override {
    const std::string& path = request.head.path;
    if (path == "/health") return whole(200, "{}");
    if (path == "/metrics") return whole(404, "{}");
    ++counts_.requests;
    {
      const std::lock_guard lock(counts_.mutex);
      std::string seen = request.head.method_name + " " + path + "?" + request.head.query;
      for (const http::Header& header : request.head.headers) {
        seen += " " + header.name + ": " + header.value;
      }
      counts_.seen.push_back(seen + " " + request.body);
    }
    if (path == "/endless") return std::make_unique<Endless>(&counts_);
    if (path == "/silent") return std::make_unique<Silent>(&counts_);
    if (path == "/large") return whole(200, std::string(9 << 20, 'y'));
    return whole(200, std::string("whole ") + path);
  }
  std::unique_ptr<http::Reply> refuse(const http::RequestHead&, int status,
                                      std::string_view) override {
    return whole(status, "refused");
  }
  void ended(const http::Request&, const http::Reply&, const Outcome&) override {}

 private:
  static std::unique_ptr<http::Reply> whole(int status, std::string body) {
    http::ReplyHead head{.status = status, .content_type = "text/plain"};
    head.headers = {{"x-of-node", "yes"},
                    {"proxy-connection", "close"},
                    {"connection", "x-hop"},
                    {"x-hop", "1"}};
    return std::make_unique<http::WholeReply>(std::move(head), std::move(body));
  }

  Counts counts_;
  std::unique_ptr<http::Server> server_;
  std::thread thread_;
};

std::unique_ptr<http::Reply> sent(NodeLink& link, const std::string& target,
                                  const std::string& body = "") {
  return link.send({.method = body.empty() ? "GET" : "POST",
                    .target = target,
                    .headers = {{"x-mine", "1"}},
                    .body = body,
                    .keys = {.affinity = 7}});
}

// All of it, as a connection reads.
std::pair<State, std::string> all_of(http::Reply& reply) {
  std::mutex mutex;
  std::condition_variable bell;
  bool is_rung = false;
  reply.listen([&] {
    const std::lock_guard lock(mutex);
    is_rung = true;
    bell.notify_one();
  });
  std::string body;
  for (;;) {
    const State state = reply.read(body);
    if (state != State::waiting) {
      reply.listen(nullptr);
      return {state, body};
    }
    std::unique_lock lock(mutex);
    if (!bell.wait_for(lock, std::chrono::seconds(60), [&] { return is_rung; })) {
      reply.listen(nullptr);
      return {State::waiting, body};
    }
    is_rung = false;
  }
}

bool has_header(const http::Reply& reply, std::string_view name) {
  const auto& headers = reply.head()->headers;
  return std::any_of(headers.begin(), headers.end(),
                     [&](const http::Header& header) { return header.name == name; });
}

TEST(NodeLink, WholeRepliesPass) {
  FakeNode node;
  Fleet fleet;
  fleet.set_nodes(parse_nodes("list", node.url()).value());
  NodeLink link(&fleet, {});
  const auto reply = sent(link, "/a%20b?c=%2F", "body");
  EXPECT_EQ(reply->head(), nullptr);
  EXPECT_EQ(all_of(*reply), std::pair(State::ended, std::string("whole /a b")));
  ASSERT_NE(reply->head(), nullptr);
  EXPECT_EQ(reply->head()->status, 200);
  EXPECT_EQ(reply->head()->content_type, "text/plain");
  EXPECT_FALSE(reply->head()->is_stream);
  EXPECT_TRUE(has_header(*reply, "x-of-node") && has_header(*reply, "x-cairn-route"));
  for (const char* name : {"content-length", "connection", "proxy-connection", "x-hop"}) {
    EXPECT_FALSE(has_header(*reply, name)) << name;
  }
  const std::lock_guard lock(node.counts().mutex);
  ASSERT_EQ(node.counts().seen.size(), 1u);
  const std::string& seen = node.counts().seen[0];
  EXPECT_TRUE(seen.starts_with("POST /a b?c=%2F host: 127.0.0.1:")) << seen;
  EXPECT_NE(seen.find(" x-mine: 1 "), std::string::npos) << seen;
  EXPECT_TRUE(seen.ends_with(" body")) << seen;
}

TEST(NodeLink, LargeRepliesComeInPieces) {
  FakeNode node;
  Fleet fleet;
  fleet.set_nodes(parse_nodes("list", node.url()).value());
  NodeLink link(&fleet, {});
  const auto reply = sent(link, "/large");
  const auto [state, body] = all_of(*reply);
  EXPECT_EQ(state, State::ended);
  EXPECT_EQ(body, std::string(9 << 20, 'y'));
  EXPECT_TRUE(reply->head()->is_stream);
}

TEST(NodeLink, WhatNobodyReadsIsNotMade) {
  FakeNode node;
  Fleet fleet;
  fleet.set_nodes(parse_nodes("list", node.url()).value());
  NodeLink link(&fleet, {});
  auto reply = sent(link, "/endless");
  reply->listen([] {});
  std::string taken;
  EXPECT_TRUE(wait_until([&] {
    EXPECT_EQ(reply->read(taken), State::waiting);
    return taken.size() > (size_t(4) << 20);
  }));
  // Until all buffers are full, which is where it stays.
  size_t made = 0;
  EXPECT_TRUE(wait_until([&] {
    const size_t before = std::exchange(made, node.counts().made_bytes.load());
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return made == before;
  }));
  EXPECT_LT(made, taken.size() + (size_t(24) << 20));
  const size_t before = taken.size();
  EXPECT_TRUE(wait_until([&] {
    EXPECT_EQ(reply->read(taken), State::waiting);
    return taken.size() > before + (size_t(32) << 20);
  })) << "it does not go on";
  reply.reset();
  EXPECT_TRUE(wait_until([&] { return node.counts().open_replies == 0; }));
}

TEST(NodeLink, WhoIsGivenUpEnds) {
  FakeNode node;
  Fleet fleet;
  fleet.set_nodes(parse_nodes("list", node.url()).value());
  NodeLink link(&fleet, {});
  {
    const auto waiting = sent(link, "/silent");
    EXPECT_TRUE(wait_until([&] { return node.counts().open_replies == 1; }));
    EXPECT_EQ(fleet.own_count(0), 1);
  }
  EXPECT_TRUE(wait_until([&] { return node.counts().open_replies == 0; }));
  EXPECT_TRUE(wait_until([&] { return fleet.own_count(0) == 0; }));
  // At any moment, of many at a time.
  for (int count = 0; count < 200; ++count) {
    const auto reply = sent(link, count % 2 == 0 ? "/silent" : "/endless");
    if (count % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(count * 10));
  }
  EXPECT_TRUE(wait_until([&] { return fleet.own_count(0) == 0; }));
  EXPECT_TRUE(wait_until([&] { return node.counts().open_replies == 0; }));
  const auto after = sent(link, "/after");
  EXPECT_EQ(all_of(*after).second, "whole /after");
}

TEST(NodeLink, TheNextNodeIsAskedWhereNobodyListens) {
  FakeNode node;
  std::string dead;
  {
    const FakeNode gone;
    dead = gone.url();
  }
  for (int count = 0; count < 8; ++count) {
    Fleet fleet({.seed = uint64_t(count)});
    fleet.set_nodes(parse_nodes("list", dead + "\n" + node.url()).value());
    NodeLink link(&fleet, {.check_seconds = 60});
    const auto reply = link.send(
        {.method = "GET", .target = "/x", .keys = {.affinity = weight_of(uint64_t(count), 5)}});
    EXPECT_EQ(all_of(*reply).second, "whole /x");
  }
  EXPECT_EQ(node.counts().requests, 8);
  Fleet fleet;
  fleet.set_nodes(parse_nodes("list", dead).value());
  NodeLink link(&fleet, {});
  const auto reply = sent(link, "/x");
  EXPECT_EQ(all_of(*reply).first, State::ended);
  EXPECT_EQ(reply->head()->status, 503);
  EXPECT_TRUE(has_header(*reply, "retry-after"));
}

// What no system answers for: held until it is let go.
struct HeldNames {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_held = true;
  int asked_count = 0;

  void let_go() {
    const std::lock_guard lock(mutex);
    is_held = false;
    changed.notify_all();
  }
};

NameLookup::Addresses own_address(const std::string& port) {
  NameLookup::Addresses addresses(1);
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(uint16_t(std::stoi(port)));
  std::memcpy(&addresses[0].bytes, &place, sizeof(place));
  addresses[0].size = sizeof(place);
  return addresses;
}

// Who asks for a name that nobody answers gets the next node, and a node with another name is not
// held up; what is given up meanwhile ends.
TEST(NodeLink, ANameThatNobodyAnswersIsANodeThatDoesNot) {
  FakeNode node;
  const auto held = std::make_shared<HeldNames>();
  const std::string port = node.url().substr(node.url().rfind(':'));
  const auto ask = [held](const std::string& host, const std::string& number) {
    std::unique_lock lock(held->mutex);
    ++held->asked_count;
    if (host == "held.example") held->changed.wait(lock, [&] { return !held->is_held; });
    return own_address(number);
  };
  {
    Fleet fleet;
    fleet.set_nodes(parse_nodes("list", "held.example" + port + "\nother.example" + port).value());
    NodeLink link(&fleet, {.connect_seconds = 4, .check_seconds = 3600, .find_addresses = ask});
    for (uint64_t count = 0; count < 8; ++count) {
      const auto reply =
          link.send({.method = "GET", .target = "/x", .keys = {.affinity = weight_of(count, 5)}});
      EXPECT_EQ(all_of(*reply).second, "whole /x");
    }
    EXPECT_TRUE(wait_until([&] { return fleet.up_count() == 1; }));
    EXPECT_EQ(fleet.own_count(0), 0);
  }
  {
    Fleet fleet;
    fleet.set_nodes(parse_nodes("list", "held.example" + port).value());
    NodeLink link(&fleet, {.connect_seconds = 1e6, .find_addresses = ask});
    { const auto given_up = sent(link, "/x"); }
    EXPECT_TRUE(wait_until([&] { return fleet.own_count(0) == 0; }));
    held->let_go();
    EXPECT_EQ(all_of(*sent(link, "/x")).second, "whole /x");
  }
}

// While it is there, this process gets no descriptor that it does not have.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit none = before_;
    none.rlim_cur = 0;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

// Nodes are not to blame for it, and are asked as soon as there is room again.
TEST(NodeLink, ARouterThatHasNoRoomSaysSo) {
  FakeNode node;
  Fleet fleet;
  fleet.set_nodes(parse_nodes("list", node.url()).value());
  NodeLink link(&fleet, {.check_seconds = 3600});
  EXPECT_EQ(all_of(*sent(link, "/x")).second, "whole /x");
  for (int count = 0; count < 3; ++count) {
    const NoDescriptors none;
    const auto reply = sent(link, "/x");
    EXPECT_EQ(all_of(*reply).first, State::ended);
    EXPECT_EQ(reply->head()->status, 503);
    EXPECT_EQ(fleet.up_count(), 1);
    EXPECT_EQ(fleet.own_count(0), 0);
  }
  EXPECT_EQ(all_of(*sent(link, "/x")).second, "whole /x");
}

// Names are not found then: that says nothing of the nodes that have them.
TEST(NodeLink, ARouterThatHasNoRoomSaysSoOfNodesWithNames) {
  FakeNode node;
  Fleet fleet;
  const std::string port = node.url().substr(node.url().rfind(':'));
  fleet.set_nodes(parse_nodes("list", "http://node.example" + port).value());
  const auto finds = std::make_shared<std::atomic<bool>>(true);
  const auto find = [finds](const std::string&, const std::string& number) {
    return *finds ? own_address(number) : NameLookup::Addresses();
  };
  NodeLink link(&fleet, {.check_seconds = 3600, .find_addresses = find});
  EXPECT_EQ(all_of(*sent(link, "/x")).second, "whole /x");
  *finds = false;
  {
    const NoDescriptors none;
    const auto reply = sent(link, "/x");
    EXPECT_EQ(all_of(*reply).first, State::ended);
    EXPECT_EQ(reply->head()->status, 503);
    EXPECT_EQ(fleet.up_count(), 1);
  }
  EXPECT_EQ(all_of(*sent(link, "/x")).first, State::ended);
  EXPECT_EQ(fleet.up_count(), 0) << "there is room, and nobody has this name";
}

TEST(NodeLink, BodiesOnTheirWayHaveALimit) {
  FakeNode node;
  Fleet fleet;
  fleet.set_nodes(parse_nodes("list", node.url()).value());
  NodeLink link(&fleet, {.bodies_bytes_max = 1000});
  EXPECT_EQ(sent(link, "/x", std::string(1001, 'b'))->head()->status, 503);
  for (int count = 0; count < 5; ++count) {  // What has gone counts no more.
    const auto reply = sent(link, "/x", std::string(1000, 'b'));
    EXPECT_EQ(all_of(*reply).second, "whole /x");
  }
}

}  // namespace
}  // namespace cairn::route::node_link_test
