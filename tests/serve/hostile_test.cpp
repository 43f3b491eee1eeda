// The attacks of docs/security.md that a whole server has to bear, over bare sockets: each is
// refused in few words or served, and then the server answers as before.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/scratch_folder.h"
#include "tests/serve/events.h"
#include "tests/serve/many_models.h"
#include "tests/serve/nano_with.h"
#include "tests/serve/serving.h"

namespace cairn::serve::hostile_test {
namespace {

using nlohmann::json;

constexpr char kChatPath[] = "/v1/chat/completions";

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int round = 0; round < count; ++round) all += text;
  return all;
}

void expect_short(const BareReply& reply) {
  EXPECT_LE(reply.body.size(), 2048u);
  for (const char* secret : {"/home", "/tmp", "0x7f", "std::", "cairn::"}) {
    EXPECT_EQ(reply.body.find(secret), std::string::npos) << reply.body;
  }
}

void expect_alive(Serving& serving) {
  EXPECT_EQ(serving.post_json(kChatPath, question(kFrance))["choices"][0]["message"]["content"],
            kParis);
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return size_t(std::distance(begin(all), end(all)));
}

// Of a request that is refused: the status.
int refused_status(Serving& serving, const json& body, std::string_view path = kChatPath) {
  const BareReply reply = serving.post(path, body.dump());
  expect_short(reply);
  return reply.status;
}

// Attack 7: weights that make no number of anything are no crash and no answer, and the model
// beside it goes on.
TEST(Hostile, ModelsThatComputeNoNumbers) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const ModelFolder folder({"good"});
  write_nano_with({.output_norm = {kNan}}, folder.file("nan.gguf"));
  write_nano_with({.output_norm = {kInfinity}}, folder.file("infinite.gguf"));
  write_nano_with({.output_norm = {kInfinity, -kInfinity, kNan}}, folder.file("turns.gguf"));
  Serving serving(models_of(folder.path()));
  for (const char* name : {"nan", "infinite", "turns"}) {
    for (const float temperature : {0.0f, 1.0f}) {
      json body = greedy(name);
      body["temperature"] = temperature;
      const BareReply reply = serving.post(kChatPath, body.dump());
      EXPECT_EQ(reply.status, 500) << name << reply.body;
      expect_short(reply);
      const json error = json::parse(reply.body, nullptr, false)["error"];
      EXPECT_EQ(error["code"], "model_output_invalid") << name;
      const json answer = serving.post_json(kChatPath, greedy("good"));
      EXPECT_EQ(answer["choices"][0]["message"]["content"], kParis) << name;
    }
  }
}

// Attack 9: a template that would never end costs its own requests alone.
TEST(Hostile, TemplatesHaveABudget) {
  const ModelFolder folder({"good"});
  write_nano_with({.chat_template = "{% for i in range(100000) %}{% for j in range(100000) %}"
                                    "{% endfor %}{% endfor %}{{ messages[0].content }}"},
                  folder.file("endless.gguf"));
  write_nano_with({.chat_template = "{{ 'a' * 1000000000 }}"}, folder.file("large.gguf"));
  Serving serving(models_of(folder.path()));
  for (const char* name : {"endless", "large"}) {
    const BareReply reply = serving.post(kChatPath, greedy(name).dump());
    EXPECT_EQ(reply.status, 400) << name << reply.body;
    expect_short(reply);
    EXPECT_EQ(json::parse(reply.body, nullptr, false)["error"]["code"], "template_budget") << name;
  }
  const json answer = serving.post_json(kChatPath, greedy("good"));
  EXPECT_EQ(answer["choices"][0]["message"]["content"], kParis);
}

// Attack 12: what the server itself tells the template.
TEST(Hostile, TemplatesAreNotToldOtherwise) {
  Serving serving;
  for (const char* name : {"messages", "tools", "bos_token", "add_generation_prompt"}) {
    json body = question("Hello");
    body["chat_template_kwargs"] = {{name, "x"}};
    EXPECT_EQ(refused_status(serving, body), 400) << name;
  }
  expect_alive(serving);
}

// Attack 13.
TEST(Hostile, GrammarsHaveLimits) {
  Serving serving;
  std::string chain;
  for (int rule = 0; rule < 5000; ++rule) {
    chain += "r" + std::to_string(rule) + " ::= r" + std::to_string(rule + 1) + "\n";
  }
  const std::string grammars[] = {
      "root ::= " + std::string(60000, '('), "root ::= r0\n" + chain, "root ::= root \"a\"",
      "root ::= \"a\"{1,1000000000}",        "root ::= missing",      std::string(300 << 10, 'a'),
  };
  for (const std::string& grammar : grammars) {
    json body = question("Hello");
    body["grammar"] = grammar;
    EXPECT_EQ(refused_status(serving, body), 400) << grammar.substr(0, 60);
  }
  expect_alive(serving);
}

// Attack 14: nothing is fetched, and nothing is followed for ever.
TEST(Hostile, SchemasHaveLimits) {
  Serving serving;
  json deep = {{"type", "integer"}};
  for (int level = 0; level < 100; ++level) deep = {{"type", "array"}, {"items", deep}};
  const json schemas[] = {
      deep,
      {{"$ref", "http://169.254.169.254/schema"}},
      {{"$ref", "#/$defs/none"}},
      {{"$ref", "#"}},
      {{"type", "string"}, {"pattern", "(?<=x)*"}},
  };
  for (const json& schema : schemas) {
    json body = question("Hello");
    body["response_format"] = {{"type", "json_schema"},
                               {"json_schema", {{"name", "s"}, {"schema", schema}}}};
    const int status = refused_status(serving, body);
    EXPECT_TRUE(status == 400 || status == 501) << status << schema.dump().substr(0, 60);
  }
  expect_alive(serving);
}

// Attacks 16 and 17: the field is named.
TEST(Hostile, NumbersHaveRanges) {
  Serving serving;
  const int64_t vocabulary = serving.service().engine().size().vocabulary_count;
  const std::pair<const char*, json> cases[] = {
      {"n", 1000000000},
      {"top_k", std::numeric_limits<int64_t>::min()},
      {"max_tokens", -2},
      {"temperature", -1},
      {"repeat_last_n", -7},
      {"logit_bias", {{std::to_string(vocabulary), 1}}},
      {"logit_bias", {{"2147483648", 1}}},
  };
  for (const auto& [field, value] : cases) {
    json body = question("Hello");
    body[field] = value;
    const auto [status, named] = serving.refused(kChatPath, body);
    EXPECT_EQ(status, 400) << field;
    EXPECT_TRUE(named.starts_with(field)) << field << " " << named;
  }
  for (const int64_t token : {vocabulary, int64_t(-1), int64_t(1) << 31, int64_t(1) << 40}) {
    EXPECT_EQ(refused_status(serving, {{"prompt", {1, token}}}, "/v1/completions"), 400) << token;
    EXPECT_EQ(refused_status(serving, {{"tokens", {1, token}}}, "/detokenize"), 400) << token;
  }
  const BareReply huge =
      serving.post(kChatPath, R"({"messages":[{"role":"user","content":"x"}],"seed":1e400})");
  EXPECT_EQ(huge.status, 400);
  expect_short(huge);
  expect_alive(serving);
}

// Attack 18: one refusal, and nothing of what follows is read as a request.
TEST(Hostile, WhatOthersCouldReadOtherwiseEndsTheConnection) {
  Serving serving;
  const std::string hidden = get_request("/v1/models");
  const std::string post = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n";
  const std::string cases[] = {
      post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      post + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
      post + "Content-Length: +4\r\n\r\nabcd",
      post + "Content-Length: 4 \t4\r\n\r\nabcd",
      post + "Content-Length: 0x4\r\n\r\nabcd",
      post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
      post + "Transfer-Encoding: chunked\r\n\r\n+4\r\nabcd\r\n0\r\n\r\n",
      post + "Transfer-Encoding: chunked\r\n\r\n4;" + std::string(300, 'x') + "\r\nabcd\r\n",
      post + "Transfer-Encoding: chunked\r\n\r\n4\nabcd\n0\n\n",
      post + "A: b\r\n c\r\n\r\n",
      post + "A : b\r\n\r\n",
      post + std::string("A: b\0c\r\n\r\n", 10),
      post + "A: b\rc\r\n\r\n",
      "GET /v1/models HTTP/1.1\nHost: localhost\n\n",
      "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: other\r\n\r\n",
      "GET /v1/models HTTP/1.1\r\n\r\n",
      "GET  /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  };
  for (const std::string& bytes : cases) {
    BareClient asking = serving.client();
    asking.send(bytes + hidden);
    const BareReply reply = asking.read_reply();
    EXPECT_TRUE(reply.status == 400 || reply.status == 505) << reply.status << " " << bytes;
    expect_short(reply);
    EXPECT_EQ(asking.take_all().find("HTTP/1.1 200"), std::string::npos) << bytes;
  }
  expect_alive(serving);
}

// Attack 19.
TEST(Hostile, SizesAreRefusedBeforeTheyAreRead) {
  Serving serving({}, "", {}, {.linger_seconds = 60});
  const std::string begin = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n";
  BareClient fields = serving.client();
  fields.send(begin + repeated("A: b\r\n", 10000) + "\r\n");
  EXPECT_EQ(fields.read_reply().status, 431);
  BareClient line = serving.client();
  line.send("GET /" + std::string(1 << 20, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(line.read_reply().status, 414);
  BareClient declared = serving.client();
  ASSERT_TRUE(declared.send(begin + "Content-Length: 10737418240\r\n\r\n"));
  EXPECT_EQ(declared.read_reply().status, 413);
  BareClient endless = serving.client();
  endless.send(begin + "Transfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "100000\r\n" + std::string(1 << 20, 'x') + "\r\n";
  for (int count = 0; count < 33; ++count) endless.send(chunk);
  EXPECT_EQ(endless.read_reply().status, 413);
  expect_alive(serving);
}

// Attack 20: hundreds that never finish their heads hold up nobody.
TEST(Hostile, HalfHeadsHoldUpNobody) {
  Serving serving;
  std::vector<BareClient> slow;
  for (int count = 0; count < 500; ++count) {
    slow.push_back(serving.client());
    slow.back().send("GET /health HTTP/1.1\r\nHost: local");
  }
  expect_alive(serving);
}

// Attack 22.
TEST(Hostile, NothingIsInflated) {
  Serving serving;
  for (const char* coding : {"gzip", "br", "deflate", "identity", "zstd"}) {
    const BareReply reply =
        serving.post("/tokenize", "\x1f\x8b", "Content-Encoding: " + std::string(coding) + "\r\n");
    EXPECT_EQ(reply.status, 415) << coding;
  }
}

// Attack 24: line ends of clients and of models begin no header and no event.
TEST(Hostile, LineEndsStayInTheirText) {
  Serving serving;
  const std::string evil = "a\r\nX-Evil: 1\r\n\r\ndata: evil\n\nevent: evil\n\n";
  const json body = {{"prompt", evil}, {"model", evil},
                     {"echo", true},   {"max_tokens", 3},
                     {"stream", true}, {"stop", json::array({evil})},
                     {"user", evil},   {"logit_bias", json::object()}};
  const BareReply reply = serving.post("/v1/completions", body.dump());
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_FALSE(reply.has("X-Evil"));
  EXPECT_GT(chunks_of(reply.body).size(), 1u) << "each has one line, and is JSON";
  const BareReply unknown = serving.get("/v1/models/a%0d%0aX-Evil:%201");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_FALSE(unknown.has("X-Evil"));
}

// Attack 24: of tools too, in whatever API they are told.
TEST(Hostile, LineEndsStayInTheNamesOfTools) {
  const test::ScratchFolder folder;
  write_nano_with({.chat_template = kToolTemplate}, folder.file("tools.gguf"));
  Serving serving({}, folder.file("tools.gguf"));
  const std::string evil = "f\r\n\r\ndata: evil\n\nevent: evil\n\n";
  const json schema = {{"type", "object"}, {"properties", json::object()}};
  json body = question("Hello");
  body["tools"] = {{{"type", "function"}, {"function", {{"name", evil}, {"parameters", schema}}}}};
  body["tool_choice"] = "required";
  body["stream"] = true;
  body["max_tokens"] = 200;
  const BareReply reply = serving.post(kChatPath, body.dump());
  expect_alive(serving);
  if (reply.status != 200) {
    expect_short(reply);
    return;
  }
  EXPECT_GT(chunks_of(reply.body).size(), 1u) << "each has one line, and is JSON";
}

// Attacks 26 and 27: what a page elsewhere can make a browser send changes nothing, and tells it
// nothing.
TEST(Hostile, PagesElsewhereChangeNothing) {
  Serving serving;
  const std::string body = R"({"id":"made-by-a-page"})";
  const char* const senders[] = {
      "Origin: http://evil.example\r\nContent-Type: text/plain\r\n",
      "Origin: http://evil.example\r\nContent-Type: application/json\r\n",
      "Origin: null\r\nContent-Type: application/x-www-form-urlencoded\r\n",
      "Sec-Fetch-Site: cross-site\r\nContent-Type: text/plain\r\n",
      "Origin: http://localhost.evil.example\r\nContent-Type: application/json\r\n",
  };
  for (const char* sender : senders) {
    const BareReply reply = serving.post("/v1/sessions", body, sender);
    EXPECT_EQ(reply.status, 403) << sender;
    EXPECT_FALSE(reply.has("access-control")) << sender;
    const BareReply before =
        serving.send(std::string("OPTIONS /v1/sessions HTTP/1.1\r\nHost: localhost\r\n"
                                 "Access-Control-Request-Method: POST\r\n"
                                 "Access-Control-Request-Private-Network: true\r\n") +
                     sender + "\r\n");
    EXPECT_EQ(before.status, 403) << sender;
    EXPECT_FALSE(before.has("access-control")) << sender;
  }
  EXPECT_EQ(json::parse(serving.get("/v1/sessions").body)["data"], json::array());
}

// Attack 28: an image or a link can name any path, and asks with GET.
TEST(Hostile, ALinkChangesNothing) {
  Serving serving;
  serving.post_json("/v1/sessions", {{"id", "s"}});
  serving.post_json("/v1/sessions/s/append", question("kept"));
  const std::string before = serving.get("/v1/sessions/s").body;
  int refused = 0;
  for (const RouteLine& line : all_routes()) {
    std::string path(line.path);
    if (const size_t open = path.find('{'); open != path.npos) {
      path.replace(open, path.find('}') + 1 - open, "s");
    }
    if (path.ends_with("/events")) continue;  // It has no end.
    for (const std::string method : {"GET", "HEAD"}) {
      BareClient asking = serving.client();
      asking.send(method + " " + path + "?keep=0&name=x HTTP/1.1\r\nHost: localhost\r\n\r\n");
      const BareReply reply = asking.read_reply(method == "GET");
      if (line.method == http::Method::get) continue;
      refused += int(reply.status == 405);
      const bool is_shown = std::ranges::any_of(all_routes(), [&](const RouteLine& other) {
        return other.path == line.path && other.method == http::Method::get;
      });
      EXPECT_TRUE(reply.status == 405 || reply.status == 404 || is_shown)
          << method << path << reply.status;
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_EQ(serving.get("/v1/sessions/s").body, before);
}

// Attack 33: a name is no path, whatever stands in it; what is kept of it lies in its folder.
TEST(Hostile, NamesAreNoPaths) {
  const test::ScratchFolder folder;
  AppOptions options;
  options.session_folder = folder.file("store") + "/sessions";
  Serving serving(options, "", {.cache_dir = folder.file("store")});
  serving.post_json("/v1/sessions", {{"id", "s"}});
  const std::string names[] = {"../x",
                               "..",
                               "/etc/x",
                               "a/b",
                               "a\\b",
                               std::string("a\0b", 3),
                               ".hidden",
                               "-x",
                               "caf\xc3\xa9",
                               "a\nb",
                               std::string(129, 'a'),
                               ""};
  for (const std::string& name : names) {
    EXPECT_EQ(refused_status(serving, {{"id", name}}, "/v1/sessions"), 400) << name;
    EXPECT_EQ(refused_status(serving, {{"id", name}}, "/v1/sessions/s/fork"), 400) << name;
    for (const char* verb : {"snapshot", "branch"}) {
      const std::string path = std::string("/v1/sessions/s/") + verb;
      EXPECT_EQ(refused_status(serving, {{"name", name}}, path), 400) << verb << name;
    }
  }
  // Overlong UTF-8 is none, and so no JSON.
  EXPECT_EQ(serving.post("/v1/sessions", "{\"id\":\"\xc0\xae\xc0\xae\"}").status, 400);
  for (const char* path : {"/v1/sessions/%2e%2e%2fx", "/v1/sessions/..", "/v1/responses/%2e%2e",
                           "/v1/receipts/..%2f..%2fetc%2fpasswd", "/page/..%2f..%2fapp.cpp"}) {
    const BareReply reply = serving.get(path);
    EXPECT_TRUE(reply.status == 404 || reply.status == 400) << path << reply.status;
    expect_short(reply);
  }
  // A device's name is a name like others: files have other ones.
  serving.post_json("/v1/sessions", {{"id", "CON"}});
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename(), "store") << entry.path();
  }
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(options.session_folder)) {
    const std::string name = entry.path().filename().string();
    count += size_t(name.ends_with(".json"));
    EXPECT_TRUE(name.ends_with(".json") || name == "lock") << name;
  }
  EXPECT_EQ(count, 2u);
}

// Attack 31: keys stand in headers alone, and nowhere else afterwards.
TEST(Hostile, KeysAreWrittenNowhere) {
  const std::string key = "a-key-of-a-user-1234", wrong = "a-wrong-key-of-nobody";
  const test::ScratchFolder folder;
  {
    AppOptions options;
    options.log_path = folder.file("log");
    ASSERT_TRUE(options.keys.add(key, Role::user));
    Serving serving(std::move(options));
    const std::string shown = "Authorization: Bearer " + key + "\r\n";
    for (const char* path : {"/props", "/v1/models", "/v1/memory", "/slots", "/openapi.json"}) {
      const BareReply reply = serving.get(path, shown);
      EXPECT_EQ(reply.status, 200) << path;
      EXPECT_EQ((reply.head + reply.body).find(key), std::string::npos) << path;
    }
    EXPECT_EQ(serving.get("/v1/models?api_key=" + key).status, 401);
    const BareReply refused = serving.get("/v1/models", "X-Api-Key: " + wrong + "\r\n");
    EXPECT_EQ(refused.status, 401);
    EXPECT_EQ((refused.head + refused.body).find(wrong), std::string::npos);
  }
  const std::string log = test::contents_of(folder.file("log"));
  EXPECT_NE(log.find("/v1/models"), std::string::npos);
  EXPECT_EQ(log.find(key), std::string::npos) << log;
  EXPECT_EQ(log.find(wrong), std::string::npos) << log;
}

// Whatever API a stream is of: cut by its client in the middle of it, or of its head, nothing of it
// goes on, and what it had is given back.
TEST(Hostile, EveryStreamEndsWithItsClient) {
  Serving serving({}, "", {.context_policy = ContextPolicy::shift});
  serving.post_json("/v1/sessions", {{"id", "cut"}});
  json chat = question("Hello");
  chat["stream"] = true;
  json endless = chat;
  endless["ignore_eos"] = true;
  json message = endless, several = endless, text = endless, lines = chat, generated = lines;
  message["max_tokens"] = 1 << 30;
  several.update({{"n", 3}, {"logprobs", true}, {"top_logprobs", 20}});
  text.erase("messages");
  text["prompt"] = "Hello";
  json texts = text, response = text;
  texts.update({{"prompt", {"One", "Two"}}, {"n", 16}, {"logprobs", 3}, {"echo", true}});
  response.erase("prompt");
  response["input"] = "Hello";
  lines["options"] = {{"ignore_eos", true}, {"num_predict", -1}};
  generated = lines;
  generated.erase("messages");
  generated["prompt"] = "Hello";
  const std::pair<const char*, json> streams[] = {
      {kChatPath, endless},        {kChatPath, several},
      {"/v1/completions", text},   {"/v1/completions", texts},
      {"/completion", text},       {"/v1/messages", message},
      {"/v1/responses", response}, {"/v1/sessions/cut/generate", endless},
      {"/api/chat", lines},        {"/api/generate", generated},
  };
  for (const auto& [path, body] : streams) {
    for (const char* until : {"HTTP/1.1 200", "data: ", "\"created_at\""}) {
      const bool is_lines = std::string_view(path).starts_with("/api/");
      if (*until != 'H' && is_lines != (*until == '"')) continue;
      BareClient cut = serving.client();
      ASSERT_TRUE(cut.send(post_request(path, body.dump())));
      ASSERT_TRUE(cut.wait_for(until)) << path;
      cut.close();
      EXPECT_TRUE(becomes_true([&] {
        const SchedulerStats stats = serving.service().stats();
        return stats.running + stats.waiting == 0;
      })) << path;
    }
  }
  EXPECT_TRUE(becomes_true([&] {
    const json slots = json::parse(serving.get("/slots").body);
    return std::ranges::none_of(slots, [](const json& slot) { return slot["is_processing"]; });
  }));
  EXPECT_EQ(json::parse(serving.get("/v1/sessions/cut").body)["messages"], json::array());
  expect_alive(serving);
  serving.service().ask([](Engine& engine) {
    engine.cache().clear();
    EXPECT_EQ(engine.memory().usage().used_bytes(), 0u);
  });
}

// Attack 39: whatever was taken for a connection comes back with it.
TEST(Hostile, ThousandsComeAndGo) {
  Serving serving;
  expect_alive(serving);
  const size_t descriptors = open_descriptors();
  json body = question(kFrance);
  body["stream"] = true;
  body["ignore_eos"] = true;
  const std::string request = post_request(kChatPath, body.dump());
  for (int count = 0; count < 2000; ++count) {
    BareClient asking = serving.client();
    ASSERT_TRUE(asking.is_connected());
    if (count % 3 == 1) asking.send(request.substr(0, size_t(count) % request.size()));
    if (count % 40 == 0) asking.send(request);
  }
  expect_alive(serving);
  EXPECT_TRUE(becomes_true([&] { return open_descriptors() <= descriptors; }));
  // What is left is kept for the next turn; nobody uses it.
  EXPECT_TRUE(becomes_true([&] {
    const json memory = json::parse(serving.get("/v1/memory").body);
    return std::ranges::all_of(memory["sequences"],
                               [](const json& each) { return each["use"] == "kept"; });
  }));
  EXPECT_TRUE(becomes_true([&] {
    const json slots = json::parse(serving.get("/slots").body);
    return std::ranges::none_of(slots, [](const json& slot) { return slot["is_processing"]; });
  }));
}

}  // namespace
}  // namespace cairn::serve::hostile_test
