// Routes, and who may use them: keys, hosts, origins, types, methods. On the built-in model.
#include "serve/app.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/scratch_folder.h"
#include "tests/serve/serving.h"

namespace cairn::serve::app_test {
namespace {

using nlohmann::json;

constexpr char kKey[] = "a-key-of-a-user-1234", kAdminKey[] = "a-key-of-an-admin-1234";

std::string bearer(const std::string& key) {
  return "Authorization: Bearer " + key + "\r\n";
}

AppOptions with_keys(bool has_admin) {
  AppOptions options;
  EXPECT_TRUE(options.keys.add(kKey, Role::user));
  if (has_admin) {
    EXPECT_TRUE(options.keys.add(kAdminKey, Role::admin));
  }
  return options;
}

TEST(App, SaysWhatItServes) {
  Serving serving;
  EXPECT_EQ(serving.get("/health").body, R"({"status":"ok"})");
  const json models = json::parse(serving.get("/v1/models").body);
  ASSERT_EQ(models["data"].size(), 1u);
  const json& model = models["data"][0];
  EXPECT_EQ(model["id"], "test-model");
  EXPECT_EQ(model["max_model_len"], model["meta"]["n_ctx"]);
  EXPECT_EQ(json::parse(serving.get("/v1/models/test-model").body), model);
  EXPECT_EQ(serving.get("/v1/models/other").status, 404);
  EXPECT_EQ(serving.get("/v1/models/").status, 404);
}

TEST(App, UnknownPathsAndMethods) {
  Serving serving;
  EXPECT_EQ(serving.get("/nothing").status, 404);
  const BareReply wrong = serving.get("/v1/chat/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_TRUE(wrong.has("allow: POST\r\n"));
  EXPECT_EQ(serving.post("/health", "{}").status, 405);
  EXPECT_EQ(serving.send("DELETE /health HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405);
  EXPECT_EQ(serving.send("TRACE /health HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405);
  BareClient asking = serving.client();
  ASSERT_TRUE(asking.send("HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_EQ(asking.read_reply(false).status, 200);
}

// Attack 32.
TEST(App, KeysAreAskedFor) {
  Serving serving(with_keys(true));
  EXPECT_EQ(serving.get("/health").status, 200);
  const BareReply refused = serving.get("/v1/models");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(json::parse(refused.body)["error"]["code"], "invalid_api_key");
  EXPECT_EQ(serving.get("/v1/models", bearer(kKey)).status, 200);
  EXPECT_EQ(serving.get("/v1/models", bearer(kAdminKey)).status, 200);
  EXPECT_EQ(serving.get("/v1/models", std::string("X-Api-Key: ") + kKey + "\r\n").status, 200);
  EXPECT_EQ(serving.get("/v1/models?key=" + std::string(kKey)).status, 401);
  EXPECT_EQ(serving.get("/v1/models", std::string("Authorization: ") + kKey + "\r\n").status, 401);
  EXPECT_EQ(serving.get("/nothing").status, 401) << "what there is, is not told";
  EXPECT_EQ(serving.get("/metrics", bearer(kKey)).status, 403);
  EXPECT_EQ(serving.get("/metrics", bearer(kAdminKey)).status, 200);
}

// RFC 9110, 11.1 and 11.4: schemes in letters of any size, and any number of blanks behind them.
TEST(App, KeysAreFoundHoweverTheyAreShown) {
  Serving serving(with_keys(false));
  const std::string key = kKey, other = "X-Api-Key: " + key + "\r\n";
  const auto status = [&](const std::string& headers) {
    return serving.get("/v1/models", headers).status;
  };
  EXPECT_EQ(status("Authorization: bearer " + key + "\r\n"), 200);
  EXPECT_EQ(status("Authorization: BEARER   " + key + "\r\n"), 200);
  EXPECT_EQ(status("Authorization: Basic dTpw\r\n" + other), 200) << "that of a proxy";
  EXPECT_EQ(status("Authorization: Basic " + key + "\r\n"), 401);
  EXPECT_EQ(status("Authorization: Bearer\r\n"), 401);
  EXPECT_EQ(status("Authorization: Bearers " + key + "\r\n"), 401);
  EXPECT_EQ(status("Authorization: Bearer a-wrong-key-of-nobody\r\n" + other), 401);
}

TEST(App, WithoutAdminsMetricsAreUsers) {
  Serving serving(with_keys(false));
  EXPECT_EQ(serving.get("/metrics").status, 401);
  EXPECT_EQ(serving.get("/metrics", bearer(kKey)).status, 200);
}

// Attack 30.
TEST(App, WrongKeysAreCounted) {
  Serving serving(with_keys(false));
  for (int count = 0; count < FailureCounts::kFailuresMax; ++count) {
    EXPECT_EQ(serving.get("/v1/models", bearer("a-wrong-key-of-nobody")).status, 401);
  }
  const BareReply blocked = serving.get("/v1/models", bearer(kKey));
  EXPECT_EQ(blocked.status, 429);
  EXPECT_TRUE(blocked.has("retry-after: "));
  EXPECT_EQ(serving.get("/health").status, 200);
}

// A router's clients are told apart; whoever is no router may say what he likes.
TEST(App, WrongKeysCountForWhomAProxyAsks) {
  const auto status_for = [](Serving& serving, const char* key, const std::string& told) {
    return serving.get("/v1/models", bearer(key) + told).status;
  };
  AppOptions options = with_keys(false);
  options.proxies = {"127.0.0.1"};
  Serving behind(std::move(options)), alone(with_keys(false));
  const std::string enemy =
      "X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-For: 192.0.2.8, 192.0.2.1\r\n";
  for (int count = 0; count < FailureCounts::kFailuresMax; ++count) {
    EXPECT_EQ(status_for(behind, "a-wrong-key-of-nobody", enemy), 401);
    EXPECT_EQ(status_for(alone, "a-wrong-key-of-nobody", enemy), 401);
  }
  EXPECT_EQ(status_for(behind, kKey, enemy), 429);
  EXPECT_EQ(status_for(behind, kKey, "X-Forwarded-For: 192.0.2.1\r\n"), 429);
  EXPECT_EQ(status_for(behind, kKey, "X-Forwarded-For: 192.0.2.8\r\n"), 200);
  EXPECT_EQ(status_for(behind, kKey, "X-Forwarded-For: 2001:db8::1\r\n"), 200);
  EXPECT_EQ(status_for(behind, kKey, ""), 200);
  EXPECT_EQ(status_for(alone, kKey, "X-Forwarded-For: 192.0.2.8\r\n"), 429);
}

// Without a key not even the body is read.
TEST(App, NoBodyWithoutAKey) {
  Serving serving(with_keys(false));
  BareClient asking = serving.client();
  ASSERT_TRUE(
      asking.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                  "Content-Length: 1000000\r\n\r\n"));
  EXPECT_EQ(asking.read_reply().status, 401);
}

// Attacks 25 and 47.
TEST(App, HostsAndOriginsOfOthersAreRefused) {
  Serving serving;
  const auto status = [&](const std::string& headers, const std::string& method = "GET") {
    return serving.send(method + " /v1/models HTTP/1.1\r\n" + headers + "\r\n").status;
  };
  EXPECT_EQ(status("Host: localhost\r\n"), 200);
  EXPECT_EQ(status("Host: evil.example\r\n"), 403);
  EXPECT_EQ(status("Host: 127.0.0.1.evil.example\r\n"), 403);
  EXPECT_EQ(status("Host: localhost\r\nOrigin: null\r\n"), 403);
  EXPECT_EQ(status("Host: localhost\r\nOrigin: http://localhost.evil.example\r\n"), 403);
  EXPECT_EQ(status("Host: localhost\r\nOrigin: http://127.0.0.1@evil.example\r\n"), 403);
  EXPECT_EQ(status("Host: localhost\r\nOrigin: vscode-webview://x\r\n"), 200);
  EXPECT_EQ(status("Host: localhost\r\nSec-Fetch-Site: cross-site\r\n"), 403);
  EXPECT_EQ(status("Host: localhost\r\nOrigin: https://evil.example\r\n", "OPTIONS"), 403);
  // Only a check of a load balancer may be that old.
  EXPECT_EQ(serving.send("GET /v1/models HTTP/1.0\r\n\r\n").status, 400);
  EXPECT_EQ(serving.send("GET /health HTTP/1.0\r\n\r\n").status, 200);
}

TEST(App, BrowsersOfAllowedPagesAreTold) {
  AppOptions options = with_keys(false);
  options.origins.origins = {"https://chat.example.org"};
  Serving serving(std::move(options));
  const std::string origin = "Origin: https://chat.example.org\r\n";
  const BareReply before =
      serving.send("OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" + origin +
                   "Access-Control-Request-Method: POST\r\n\r\n");
  EXPECT_EQ(before.status, 204);
  EXPECT_TRUE(before.has("access-control-allow-origin: https://chat.example.org\r\n"));
  EXPECT_TRUE(before.has("access-control-allow-methods: GET, POST, DELETE\r\n"));
  EXPECT_FALSE(before.has("private-network"));
  const BareReply reply = serving.get("/v1/models", origin);
  EXPECT_EQ(reply.status, 401);
  EXPECT_TRUE(reply.has("access-control-allow-origin: https://chat.example.org\r\n"))
      << "so that the page can read why";
  EXPECT_TRUE(reply.has("vary: Origin\r\n"));
  const BareReply refused = serving.get("/v1/models", "Origin: https://evil.example\r\n");
  EXPECT_FALSE(refused.has("access-control"));
}

// Libraries for browsers send headers of their own with each request.
TEST(App, BrowsersMaySendTheHeadersThatTheyAskFor) {
  Serving serving;
  const auto reply_to = [&](const std::string& headers) {
    return serving.send(
        "OPTIONS /v1/messages HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\n"
        "Access-Control-Request-Method: POST\r\n" +
        headers + "\r\n");
  };
  EXPECT_TRUE(reply_to("Access-Control-Request-Headers: "
                       "authorization,content-type,x-stainless-lang,x-stainless-os\r\n")
                  .has("access-control-allow-headers: "
                       "authorization, content-type, x-stainless-lang, x-stainless-os\r\n"));
  EXPECT_TRUE(
      reply_to("").has("access-control-allow-headers: authorization, content-type, "
                       "x-api-key, anthropic-version, anthropic-beta\r\n"));
}

// Attack 26.
TEST(App, FormsOfPagesAreNoRequests) {
  Serving serving;
  const std::string body = R"({"content":"x"})";
  EXPECT_EQ(serving.post("/tokenize", body, "Content-Type: text/plain\r\n").status, 200)
      << "curl sends anything";
  const std::string origin = "Origin: http://localhost:3000\r\n";
  EXPECT_EQ(serving.post("/tokenize", body, origin + "Content-Type: text/plain\r\n").status, 415);
  EXPECT_EQ(serving.post("/tokenize", body, origin + "Content-Type: application/json\r\n").status,
            200);
  EXPECT_EQ(serving.post("/tokenize", body, "Content-Encoding: gzip\r\n").status, 415);
}

TEST(App, RequestsHaveIds) {
  Serving serving;
  EXPECT_TRUE(
      serving.get("/health", "X-Request-Id: my.own-id_1\r\n").has("x-request-id: my.own-id_1\r\n"));
  for (const char* id : {"a b", "a:b", "\xff", ""}) {
    const BareReply reply = serving.get("/health", std::string("X-Request-Id: ") + id + "\r\n");
    EXPECT_TRUE(reply.has("x-request-id: req-")) << id;
  }
  EXPECT_TRUE(serving.get("/health", "X-Request-Id: " + std::string(129, 'a') + "\r\n")
                  .has("x-request-id: req-"));
}

// Attack 43: whatever is sent, errors say little and are JSON.
TEST(App, ErrorsAreShortAndTellNothing) {
  Serving serving;
  const std::string bodies[] = {
      "",
      "{",
      "[]",
      "{\"messages\": 1}",
      "{\"a\":1,\"a\":2}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud800\"}]}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}",
      "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"temperature\":1e999}",
      "{\"model\":\"" + std::string(100000, 'x') + "\"}",
      std::string(1 << 20, '['),
      "{\"messages\":" + std::string(100, '[') + std::string(100, ']') + "}",
  };
  for (const std::string& body : bodies) {
    for (const char* path : {"/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize",
                             "/apply-template"}) {
      const BareReply reply = serving.post(path, body);
      EXPECT_EQ(reply.status, 400) << path << " " << body.substr(0, 100);
      EXPECT_LE(reply.body.size(), 2048u);
      EXPECT_EQ(reply.body.find("std::"), std::string::npos);
      EXPECT_EQ(reply.body.find("0x7f"), std::string::npos);
      const json error = json::parse(reply.body, nullptr, false);
      ASSERT_TRUE(error.is_object() && error.contains("error")) << reply.body;
      EXPECT_EQ(error["error"]["type"], "invalid_request_error");
    }
  }
}

// Attack 23: of every route, in the form of its API.
TEST(App, NoRouteTakesWhatIsNoJson) {
  Serving serving;
  const std::string bodies[] = {
      "",
      "{",
      "{\"a\":1,\"a\":2}",
      "{\"model\":\"\\ud800\"}",
      "{\"model\":\"\xff\"}",
      "{\"temperature\":1e999}",
      std::string(1 << 20, '['),
      "{\"messages\":" + std::string(100, '[') + std::string(100, ']') + "}",
  };
  const std::set<std::string_view> may_be_empty = {"/v1/sessions", "/v1/sessions/{id}/stop",
                                                   "/v1/sessions/{id}/fork"};
  for (const RouteLine& line : all_routes()) {
    if (line.method != http::Method::post) continue;
    for (const std::string& body : bodies) {
      if (body.empty() && may_be_empty.contains(line.path)) continue;
      const BareReply reply = serving.post(line.path, body);
      EXPECT_EQ(reply.status, 400) << line.path << " " << body.substr(0, 100);
      EXPECT_LE(reply.body.size(), 2048u);
      const json error = json::parse(reply.body, nullptr, false);
      ASSERT_TRUE(error.is_object() && error.contains("error")) << reply.body;
      const bool is_ollama = line.path.starts_with("/api/");
      EXPECT_EQ(error["error"].is_string(), is_ollama) << line.path;
      EXPECT_EQ(error.contains("type"), line.path.starts_with("/v1/messages")) << line.path;
    }
  }
}

// Also of what is refused before any route has seen it.
TEST(App, EarlyErrorsHaveTheFormOfTheirApi) {
  http::Limits limits;
  limits.body_bytes_max = 1000;
  Serving serving({}, "", {}, limits);
  const auto check = [&](int status, const std::string& body, const std::string& headers) {
    for (const char* path : {"/v1/messages", "/api/chat", "/v1/chat/completions"}) {
      const BareReply reply = serving.post(path, body, headers);
      EXPECT_EQ(reply.status, status) << path;
      const json told = json::parse(reply.body);
      EXPECT_EQ(told["error"].is_string(), std::string(path) == "/api/chat") << reply.body;
      EXPECT_EQ(told.contains("type"), std::string(path) == "/v1/messages") << reply.body;
    }
  };
  check(413, std::string(2000, ' '), "");
  check(415, "{}", "Content-Encoding: gzip\r\n");
}

TEST(App, LogsRequestsWithoutPrompts) {
  const test::ScratchFolder folder;
  {
    AppOptions options;
    options.log_path = folder.file("log");
    Serving serving(std::move(options));
    json body = question("What is the capital of Norway?");
    body["n"] = 2;
    // On one connection, where a request is read when the one before is in the log.
    BareClient asking = serving.client();
    ASSERT_TRUE(
        asking.send(post_request("/v1/chat/completions", body.dump(), "X-Request-Id: one\r\n")));
    EXPECT_EQ(asking.read_reply().status, 200);
    ASSERT_TRUE(asking.send(get_request("/nothing")));
    EXPECT_EQ(asking.read_reply().status, 404);
  }
  const std::string log = test::contents_of(folder.file("log"));
  const size_t end = log.find('\n');
  const json first = json::parse(log.substr(0, end)), second = json::parse(log.substr(end + 1));
  EXPECT_EQ(first["id"], "one");
  EXPECT_EQ(first["path"], "/v1/chat/completions");
  EXPECT_EQ(first["status"], 200);
  EXPECT_GT(first["prompt_tokens"].get<int>(), 0);
  EXPECT_GT(first["completion_tokens"].get<int>(), 0);
  EXPECT_EQ(second["status"], 404);
  EXPECT_EQ(log.find("Norway"), std::string::npos);
  EXPECT_EQ(log.find("Oslo"), std::string::npos);
}

TEST(App, CountsForPrometheus) {
  Serving serving;
  // On one connection, where a request is read when the one before is counted.
  BareClient asking = serving.client();
  ASSERT_TRUE(asking.send(post_request("/v1/chat/completions", question("Hello").dump())));
  EXPECT_EQ(asking.read_reply().status, 200);
  ASSERT_TRUE(asking.send(get_request("/nothing\"\\")));
  EXPECT_EQ(asking.read_reply().status, 404);
  ASSERT_TRUE(asking.send(get_request("/metrics")));
  const BareReply reply = asking.read_reply();
  EXPECT_TRUE(reply.has("content-type: text/plain; version=0.0.4"));
  EXPECT_NE(
      reply.body.find("cairn_requests_total{route=\"/v1/chat/completions\",status=\"200\"} 1\n"),
      std::string::npos);
  EXPECT_NE(reply.body.find("cairn_requests_total{route=\"other\",status=\"404\"} 1\n"),
            std::string::npos);
  EXPECT_NE(reply.body.find("cairn_e2e_request_latency_seconds_count{model=\"test-model\"} 1\n"),
            std::string::npos);
  EXPECT_NE(reply.body.find("cairn_memory_bytes{model=\"test-model\",kind=\"pages\"} "),
            std::string::npos);
}

// The same function behind the names that other servers have for it.
TEST(App, RoutesHaveOtherNames) {
  Serving serving;
  const std::pair<const char*, const char*> names[] = {
      {"/chat/completions", "/v1/chat/completions"},
      {"/chat/completions/input_tokens", "/v1/chat/completions/input_tokens"},
      {"/responses", "/v1/responses"},
      {"/responses/input_tokens", "/v1/responses/input_tokens"},
      {"/rerank", "/v1/rerank"},
      {"/reranking", "/v1/rerank"},
      {"/v1/reranking", "/v1/rerank"}};
  for (const auto& [other, name] : names) {
    const BareReply reply = serving.post(other, R"({"input": 5, "messages": 5, "query": 5})");
    EXPECT_EQ(reply.status, 400) << other;
    EXPECT_EQ(reply.body, serving.post(name, R"({"input": 5, "messages": 5, "query": 5})").body);
  }
}

}  // namespace
}  // namespace cairn::serve::app_test
