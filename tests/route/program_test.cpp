// `cairn route` before real `cairn serve` processes of the built-in model: conversations return,
// loaded nodes are passed over, dead ones replaced with the same bits, streams pass as they come.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"
#include "tests/scratch_folder.h"
#include "tests/serve/bare_client.h"
#include "tests/serve/certificates.h"
#include "tests/serve/server_program.h"
#include "tests/wait_until.h"

namespace cairn::route::program_test {
namespace {

using nlohmann::json;
using serve::BareClient;
using serve::BareReply;
using serve::get_request;
using serve::post_request;
using serve::ServerProgram;
using test::wait_until;

constexpr char kChat[] = "/v1/chat/completions";

std::string url_of(const ServerProgram& server) {
  return "http://127.0.0.1:" + std::to_string(server.port());
}

// The part of X-Cairn-Route behind `name=`.
std::string route_part(const BareReply& reply, const std::string& name) {
  const size_t line = reply.head.find("x-cairn-route: ");
  if (line == std::string::npos) return {};
  const size_t at = reply.head.find(name + "=", line);
  if (at == std::string::npos) return {};
  const size_t begin = at + name.size() + 1;
  return reply.head.substr(begin, reply.head.find_first_of(";\r", begin) - begin);
}
std::string node_of(const BareReply& reply) {
  return route_part(reply, "node");
}

BareReply sent(const ServerProgram& server, const std::string& request) {
  BareClient client = server.client();
  EXPECT_TRUE(client.send(request));
  return client.read_reply();
}
BareReply posted(const ServerProgram& server, const json& body, const std::string& path = kChat,
                 const std::string& headers = "") {
  return sent(server, post_request(path, body.dump(), headers));
}

json question(int number, int times = 12) {
  std::string words;
  while (times-- > 0) {
    words += "Tell me of number " + std::to_string(number) + ". ";
  }
  return json::array({{{"role", "user"}, {"content", words}}});
}
json order(const json& messages) {
  return {{"messages", messages}, {"max_tokens", 12}, {"temperature", 0}};
}
void go_on(json& messages, const BareReply& reply) {
  messages.push_back(json::parse(reply.body)["choices"][0]["message"]);
  messages.push_back({{"role", "user"}, {"content", "And then?"}});
}

// Of a metric, the sum over all labels.
double metric(const ServerProgram& server, const std::string& name) {
  const std::string text = "\n" + sent(server, get_request("/metrics")).body;
  double sum = 0;
  for (size_t at = text.find("\n" + name); at != std::string::npos;
       at = text.find("\n" + name, at + 1)) {
    const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    sum += std::atof(line.c_str() + line.rfind(' '));
  }
  return sum;
}

struct Fleet {
  explicit Fleet(int count, const std::vector<std::string>& more = {},
                 const std::vector<std::string>& router_more = {}) {
    std::vector<std::string> options = {"--threads", "1"}, router_options = router_more;
    options.insert(options.end(), more.begin(), more.end());
    for (int number = 0; number < count; ++number) {
      nodes.push_back(std::make_unique<ServerProgram>(options));
      router_options.insert(router_options.end(), {"--node", url_of(*nodes.back())});
    }
    router = std::make_unique<ServerProgram>(router_options, std::vector<std::string>{}, "route");
  }
  ServerProgram& node_named(const std::string& name) {
    for (const auto& node : nodes) {
      if (name == "127.0.0.1:" + std::to_string(node->port())) return *node;
    }
    ADD_FAILURE() << "no node is called " << name;
    return *nodes.front();
  }

  std::vector<std::unique_ptr<ServerProgram>> nodes;
  std::unique_ptr<ServerProgram> router;
};

TEST(RouteProgram, ConversationsReturnToWhoHasThem) {
  const Fleet fleet(3);
  const ServerProgram alone({"--threads", "1"});
  std::set<std::string> homes;
  for (int number = 0; number < 9; ++number) {
    // Of so many words no node is fast enough to read all while another one, which other programs
    // of this machine hold up, reads the last ones.
    json messages = question(number, 120);
    std::string home;
    for (int turn = 0; turn < 3; ++turn) {
      const BareReply reply = posted(*fleet.router, order(messages));
      ASSERT_EQ(reply.status, 200) << reply.body;
      const json told = json::parse(reply.body);
      if (turn == 0) {
        home = node_of(reply);
      } else {
        EXPECT_EQ(route_part(reply, "why"), "prefix") << reply.head;
        EXPECT_GT(std::atoi(route_part(reply, "known").c_str()), 2000) << reply.head;
        EXPECT_GT(told["memory"]["reused"].get<int>(), 800) << told["memory"];
      }
      EXPECT_EQ(node_of(reply), home);
      EXPECT_EQ(told["choices"], json::parse(posted(alone, order(messages)).body)["choices"]);
      go_on(messages, reply);
    }
    homes.insert(home);
  }
  EXPECT_GE(homes.size(), 2u);
  EXPECT_EQ(metric(*fleet.router, "cairn_route_replies_total"), 27);
  EXPECT_GT(metric(*fleet.router, "cairn_route_known_bytes_total"), 40000);
  const BareReply health = sent(*fleet.router, get_request("/health"));
  EXPECT_EQ(health.body, R"({"status":"ok","nodes":3,"up":3})");
}

std::string endless(const std::string& headers = "") {
  return post_request("/v1/completions",
                      R"({"prompt":"Once","stream":true,"ignore_eos":true,"max_tokens":1900})",
                      headers);
}

// What others ask of a node is seen in its metrics: here more than its memory has room for.
TEST(RouteProgram, ALoadedNodeIsPassedOver) {
  Fleet fleet(2, {"--memory-budget", "8MiB"});
  const json messages = question(1);
  const std::string home = node_of(posted(*fleet.router, order(messages)));
  std::vector<BareClient> others;
  for (int count = 0; count < 60; ++count) {
    others.push_back(fleet.node_named(home).client());
    ASSERT_TRUE(others.back().send(endless()));
  }
  const std::string queue = "cairn_route_queue_milliseconds{node=\"" + home;
  EXPECT_TRUE(wait_until([&] { return metric(*fleet.router, queue) > 100; }));
  for (int number = 1; number < 9; ++number) {
    const BareReply reply = posted(*fleet.router, order(question(number)));
    EXPECT_EQ(reply.status, 200);
    EXPECT_NE(node_of(reply), home) << reply.head;
  }
  others.clear();
  // Idle again, it gets its part.
  EXPECT_TRUE(wait_until([&] { return metric(*fleet.router, queue) < 1; }));
  int number = 20;
  EXPECT_TRUE(wait_until(
      [&] { return node_of(posted(*fleet.router, order(question(number++)))) == home; }));
}

TEST(RouteProgram, AKilledNodesConversationsGoOnElsewhere) {
  Fleet fleet(3);
  const ServerProgram alone({"--threads", "1"});
  json messages = question(5);
  const BareReply first = posted(*fleet.router, order(messages));
  const std::string home = node_of(first);
  go_on(messages, first);
  ServerProgram& victim = fleet.node_named(home);
  victim.send_signal(SIGKILL);
  victim.wait();
  // At once, before any check has found out.
  const BareReply second = posted(*fleet.router, order(messages));
  ASSERT_EQ(second.status, 200) << second.body;
  EXPECT_NE(node_of(second), home);
  EXPECT_EQ(json::parse(second.body)["choices"],
            json::parse(posted(alone, order(messages)).body)["choices"]);
  go_on(messages, second);
  EXPECT_EQ(node_of(posted(*fleet.router, order(messages))), node_of(second));
  EXPECT_TRUE(wait_until([&] { return metric(*fleet.router, "cairn_route_node_up") == 2; }));
  EXPECT_EQ(sent(*fleet.router, get_request("/health")).body,
            R"({"status":"ok","nodes":3,"up":2})");
  // It comes back.
  const ServerProgram again({"--threads", "1", "--port", std::to_string(victim.port())});
  EXPECT_TRUE(wait_until([&] { return metric(*fleet.router, "cairn_route_node_up") == 3; }));
}

TEST(RouteProgram, WithinAnAnswerNothingIsRepeated) {
  Fleet fleet(2);
  BareClient client = fleet.router->client();
  ASSERT_TRUE(client.send(endless()));
  ASSERT_TRUE(client.wait_for("\r\n\r\n"));
  ASSERT_TRUE(client.wait_for("data: "));
  for (const auto& node : fleet.nodes) {
    if (metric(*node, "cairn_num_requests_running") == 0) continue;
    node->send_signal(SIGKILL);
    node->wait();
  }
  const BareReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_FALSE(reply.is_whole) << "a stream that broke off looks whole";
  int dead = 0;
  for (const auto& node : fleet.nodes) dead += node->process() < 0 ? 1 : 0;
  EXPECT_EQ(dead, 1);
}

TEST(RouteProgram, NobodyIsThere) {
  Fleet fleet(1);
  fleet.nodes[0]->send_signal(SIGKILL);
  fleet.nodes[0]->wait();
  const BareReply reply = posted(*fleet.router, order(question(1)));
  EXPECT_EQ(reply.status, 503);
  EXPECT_TRUE(reply.has("retry-after: 1\r\n"));
  EXPECT_EQ(json::parse(reply.body)["error"]["type"], "unavailable_error");
  EXPECT_EQ(sent(*fleet.router, get_request("/health")).status, 503);
}

TEST(RouteProgram, StreamsPassAsTheyCome) {
  const Fleet fleet(2);
  const json body = {{"prompt", "Once upon a time"},
                     {"temperature", 0},
                     {"max_tokens", 200},
                     {"ignore_eos", true},
                     {"stream", true}};
  BareClient client = fleet.router->client();
  ASSERT_TRUE(client.send(post_request("/v1/completions", body.dump())));
  ASSERT_TRUE(client.wait_for("data: "));
  EXPECT_FALSE(client.has_received("[DONE]")) << "the stream was kept until its end";
  const BareReply reply = client.read_reply();
  EXPECT_TRUE(reply.is_whole && reply.is_chunked);
  EXPECT_TRUE(reply.has("content-type: text/event-stream")) << reply.head;
  std::string streamed;
  for (size_t at = reply.body.find("data: {"); at != std::string::npos;
       at = reply.body.find("data: {", at + 1)) {
    const json event = json::parse(reply.body.substr(at + 6, reply.body.find('\n', at) - at - 6));
    for (const json& choice : event["choices"]) streamed += choice["text"];
  }
  json whole = body;
  whole["stream"] = false;
  EXPECT_EQ(
      streamed,
      json::parse(posted(*fleet.router, whole, "/v1/completions").body)["choices"][0]["text"]);
}

TEST(RouteProgram, AClientThatGoesEndsItsAnswer) {
  const Fleet fleet(2);
  const auto running = [&] {
    return metric(*fleet.nodes[0], "cairn_num_requests_running") +
           metric(*fleet.nodes[1], "cairn_num_requests_running");
  };
  {
    BareClient streaming = fleet.router->client(), waiting = fleet.router->client();
    ASSERT_TRUE(streaming.send(endless()));
    // Of a whole answer nothing comes before its end.
    ASSERT_TRUE(waiting.send(post_request(
        "/v1/completions", R"({"prompt":"Once","ignore_eos":true,"max_tokens":1900})")));
    ASSERT_TRUE(streaming.wait_for("data: "));
    EXPECT_TRUE(wait_until([&] { return running() == 2; }));
  }
  EXPECT_TRUE(wait_until([&] { return running() == 0; }));
  EXPECT_EQ(metric(*fleet.nodes[0], "cairn_answers_cancelled_total") +
                metric(*fleet.nodes[1], "cairn_answers_cancelled_total"),
            2);
  EXPECT_TRUE(wait_until([&] { return metric(*fleet.router, "cairn_route_outstanding") == 0; }));
}

TEST(RouteProgram, KeysAreTheNodesMatter) {
  const test::ScratchFolder folder;
  const std::string keys = (folder.path() / "keys").string();
  constexpr char kKey[] = "a-key-for-the-tests-only";
  std::ofstream(keys) << kKey << "\n";
  std::filesystem::permissions(keys, std::filesystem::perms(0600));
  const Fleet fleet(2, {"--api-key-file", keys, "--trusted-proxy", "127.0.0.1"},
                    {"--node-key-file", keys, "--metrics-key-file", keys});
  const std::string bearer = std::string("Authorization: Bearer ") + kKey + "\r\n";
  EXPECT_EQ(posted(*fleet.router, order(question(1)), kChat, bearer).status, 200);
  const BareReply refused = posted(*fleet.router, order(question(1)));
  EXPECT_EQ(refused.status, 401);
  EXPECT_TRUE(refused.has("www-authenticate: Bearer\r\n")) << refused.head;
  EXPECT_EQ(json::parse(refused.body)["error"]["code"], "invalid_api_key");
  // Whoever shows wrong ones is left alone, and nobody else is.
  const auto from = [&](const std::string& client, const std::string& key) {
    return sent(*fleet.router,
                get_request("/v1/models", "X-Forwarded-For: " + client + "\r\n" +
                                              "Authorization: Bearer " + key + "\r\n"))
        .status;
  };
  // The router adds whom it speaks to, so what a client says of itself does not count.
  int blocked = 0;
  for (int count = 0; count < 30; ++count)
    blocked += from("192.0.2.1", "wrong-key-0123456789") == 429;
  EXPECT_GT(blocked, 0);
  EXPECT_EQ(sent(*fleet.router, get_request("/metrics")).status, 401);
  EXPECT_EQ(sent(*fleet.router, get_request("/metrics", bearer)).status, 200);
}

TEST(RouteProgram, TheInterfaceIsThatOfTheNodes) {
  const Fleet fleet(2);
  const ServerProgram& router = *fleet.router;
  const BareReply models = sent(router, get_request("/v1/models", "X-Request-Id: mine\r\n"));
  EXPECT_EQ(json::parse(models.body)["data"][0]["id"], "cairn-nano");
  EXPECT_TRUE(models.has("x-request-id: mine\r\n"));
  EXPECT_TRUE(models.has("content-length: "));
  EXPECT_EQ(sent(router, get_request("/v1/models/cairn%2Dnano?x=%20y")).status, 200);
  EXPECT_EQ(sent(router, get_request("/no/such%0Aroute")).status, 404);
  EXPECT_EQ(posted(router, {{"messages", 7}}).status, 400);
  EXPECT_EQ(sent(router, post_request("/health", "{}")).status, 405);
  EXPECT_EQ(sent(router, "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 403);
  EXPECT_EQ(sent(router, "GET /v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").status, 400);
  const BareReply page =
      sent(router, get_request("/v1/models", "Origin: http://localhost:3000\r\n"));
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(page.has("access-control-allow-origin: http://localhost:3000\r\n")) << page.head;
  const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(sent(router, head + "Content-Length: 99999999999\r\n\r\n").status, 413);
  EXPECT_EQ(sent(router, head + "Transfer-Encoding: chunked\r\n\r\n" + "2a\r\n" +
                             R"({"prompt":"x","max_tokens":1,"stop":"abcd"})" + "\r\n0\r\n\r\n")
                .status,
            400)
      << "a chunk of another size than it says";
  BareClient heads = router.client();
  ASSERT_TRUE(heads.send("HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_EQ(heads.read_reply(false).status, 200);
}

TEST(RouteProgram, SessionsAndResponsesStayWhereTheyWereMade) {
  const Fleet fleet(3);
  const ServerProgram& router = *fleet.router;
  for (int number = 0; number < 4; ++number) {
    const BareReply made = posted(router, json::object(), "/v1/sessions");
    ASSERT_EQ(made.status, 200) << made.body;
    const std::string path = "/v1/sessions/" + json::parse(made.body)["id"].get<std::string>();
    EXPECT_EQ(node_of(posted(router, order(question(number)), path + "/generate")), node_of(made));
    const std::string name = "fork" + std::to_string(number);
    EXPECT_EQ(posted(router, {{"id", name}}, path + "/fork").status, 200);
    EXPECT_EQ(sent(router, get_request("/v1/sessions/" + name)).status, 200);
    const BareReply response =
        posted(router, {{"input", "Hello " + std::to_string(number)}, {"max_output_tokens", 8}},
               "/v1/responses");
    ASSERT_EQ(response.status, 200) << response.body;
    const json id = json::parse(response.body)["id"];
    const BareReply next =
        posted(router, {{"input", "And?"}, {"previous_response_id", id}, {"max_output_tokens", 8}},
               "/v1/responses");
    EXPECT_EQ(next.status, 200) << next.body;
    EXPECT_EQ(route_part(next, "why"), "owner");
    EXPECT_EQ(sent(router, get_request("/v1/responses/" + id.get<std::string>())).status, 200);
  }
}

TEST(RouteProgram, NodesAreDrainedByTheirFile) {
  const test::ScratchFolder folder;
  const std::string path = (folder.path() / "nodes").string();
  const ServerProgram one({"--threads", "1"}), two({"--threads", "1"});
  std::ofstream(path) << url_of(one) << "\n" << url_of(two) << "\n";
  const ServerProgram router({"--nodes", path}, {}, "route");
  std::set<std::string> before, after;
  for (int number = 0; number < 12; ++number) {
    before.insert(node_of(posted(router, order(question(number)))));
  }
  EXPECT_EQ(before.size(), 2u);
  BareClient streaming = router.client();
  ASSERT_TRUE(streaming.send(endless()));
  ASSERT_TRUE(streaming.wait_for("data: "));
  const bool is_first = metric(one, "cairn_num_requests_running") > 0;
  std::ofstream(path) << "drain " << url_of(is_first ? one : two) << "\n"
                      << url_of(is_first ? two : one) << "\n";
  router.send_signal(SIGHUP);
  router.line_with("are read again");
  for (int number = 0; number < 12; ++number) {
    after.insert(node_of(posted(router, order(question(number)))));
  }
  EXPECT_EQ(after,
            std::set<std::string>{"127.0.0.1:" + std::to_string((is_first ? two : one).port())});
  const BareReply reply = streaming.read_reply();
  EXPECT_TRUE(reply.is_whole) << "what it had was not finished";
}

// Nodes of another authority, or of another name, are not spoken to.
TEST(RouteProgram, NodesUnderTlsAreBelievedByTheirCertificate) {
  const test::ScratchFolder folder;
  const serve::Pair right =
      serve::make_pair_in(folder.path(), "right", {.names = "IP:127.0.0.1", .is_authority = true});
  const serve::Pair wrong =
      serve::make_pair_in(folder.path(), "wrong", {.names = "IP:127.0.0.1", .is_authority = true});
  const ServerProgram node(
      {"--threads", "1", "--tls-cert", right.certificate, "--tls-key", right.key});
  const std::string url = "https://127.0.0.1:" + std::to_string(node.port());
  const ServerProgram router({"--node", url, "--node-cacert", right.certificate}, {}, "route");
  const BareReply reply = posted(router, order(question(1)));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json streamed = {{"prompt", "Once"}, {"stream", true}, {"max_tokens", 20}};
  EXPECT_TRUE(posted(router, streamed, "/v1/completions").body.ends_with("data: [DONE]\n\n"));
  const ServerProgram other({"--node", url, "--node-cacert", wrong.certificate}, {}, "route");
  EXPECT_EQ(posted(other, order(question(1))).status, 503);
  EXPECT_NE(other.line_with("cannot be reached").find("certificate"), std::string::npos);
}

TEST(RouteProgram, OptionsThatCannotBeAreRefused) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{}, std::vector<std::string>{"--node", "http://a/b"},
        std::vector<std::string>{"--node", "http://a", "--node", "http://a:80"},
        std::vector<std::string>{"--node", "http://a", "--nodes", "/dev/null"},
        std::vector<std::string>{"--nodes", "/no/such/file"},
        std::vector<std::string>{"--node", "http://a", "--tls-cert", "/dev/null"}}) {
    std::vector<std::string> words = {"route", "--port", "0"};
    words.insert(words.end(), wrong.begin(), wrong.end());
    const cli::Finished run = cli::run_program(words);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_FALSE(run.err.empty());
  }
}

}  // namespace
}  // namespace cairn::route::program_test
