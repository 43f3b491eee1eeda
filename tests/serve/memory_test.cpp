// What the server says of its memory: to whom, in which form, and as a stream of changes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "serve/memory_json.h"
#include "tests/serve/serving.h"

namespace cairn::serve::memory_test {
namespace {

using nlohmann::json;

constexpr char kKey[] = "a-key-of-a-user-1234", kAdminKey[] = "a-key-of-an-admin-1234";
constexpr char kSecret[] = "capital of France";

std::string bearer(const std::string& key) {
  return "Authorization: Bearer " + key + "\r\n";
}

json ask(Serving& serving, const std::string& text) {
  json body = question(text);
  body["max_tokens"] = 40;
  return serving.post_json("/v1/chat/completions", body);
}

// Of the model itself nothing is said; layers that do not run hold nothing.
TEST(Memory, AProgramIsNamed) {
  Serving serving;
  json answer = ask(serving, kFrance);
  EXPECT_FALSE(answer["memory"].contains("program"));
  EXPECT_FALSE(json::parse(serving.get("/props").body).contains("program"));
  Serving thinner({}, "", {.program = {.exit_layer = 3}});
  answer = ask(thinner, kFrance);
  EXPECT_EQ(answer["memory"]["program"], "all but layer 3");
  EXPECT_EQ(json::parse(thinner.get("/props").body)["program"], "all but layer 3");
  const auto weights = [](Serving& of) {
    return json::parse(of.get("/v1/memory").body)["process"]["weights"].get<int64_t>();
  };
  EXPECT_LT(weights(thinner), weights(serving));
}

TEST(Memory, IsTold) {
  Serving serving;
  ask(serving, "What is the capital of France?");
  const BareReply reply = serving.get("/v1/memory");
  ASSERT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body.find(kSecret), std::string::npos);
  const json memory = json::parse(reply.body);
  EXPECT_EQ(memory["object"], "memory");
  const json& process = memory["process"];
  EXPECT_EQ(process["files"].get<int64_t>() + process["weights"].get<int64_t>() +
                process["steps"].get<int64_t>() + process["conversations"].get<int64_t>() +
                process["rest"].get<int64_t>(),
            process["resident"].get<int64_t>());
  EXPECT_TRUE(memory["store"].is_null());
  ASSERT_EQ(memory["order"].size(), 1u);
  const json& sequence = memory["sequences"][0];
  EXPECT_EQ(sequence["id"], memory["order"][0]);
  EXPECT_EQ(sequence["use"], "kept");
  ASSERT_EQ(sequence["groups"].size(), memory["groups"].size());
  const int64_t length = sequence["length"];
  EXPECT_GT(length, 0);
  for (const json& group : sequence["groups"]) {
    ASSERT_EQ(group["runs"].size() % 3, 0u);
    for (size_t at = 0; at < group["runs"].size(); at += 3) {
      EXPECT_LE(group["runs"][at].get<int64_t>(), group["runs"][at + 1].get<int64_t>());
      EXPECT_LE(group["runs"][at + 1].get<int64_t>(), length);
    }
    EXPECT_EQ(group["stored"], json::array());
  }
  ASSERT_FALSE(sequence["marks"].empty());
  EXPECT_TRUE(sequence["marks"][0][1].is_string());
}

TEST(Memory, MetricsTellWhatIsKept) {
  Serving serving;
  const int64_t tokens = ask(serving, "What is the capital of France?")["usage"]["prompt_tokens"];
  ask(serving, "What is the capital of France?");
  const std::string text = serving.get("/metrics").body;
  const auto value_of = [&](const std::string& name, const std::string& more = "") {
    const std::string start = "\n" + name + "{model=\"test-model\"" + more + "} ";
    const size_t at = text.find(start);
    if (at == std::string::npos) ADD_FAILURE() << name << " is not in " << text;
    return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + start.size());
  };
  EXPECT_EQ(value_of("cairn_prefix_cache_queries_total"), 2 * tokens);
  EXPECT_EQ(value_of("cairn_prefix_cache_hits_total"), tokens);
  EXPECT_GT(value_of("cairn_snapshot_created_total"), 0);
  EXPECT_EQ(value_of("cairn_snapshot_restored_total"), 1) << "the end of the prompt";
  EXPECT_EQ(value_of("cairn_snapshot_evicted_total"), 0);
  EXPECT_GT(value_of("cairn_memory_pages", ",state=\"unshared\""), 0);
  EXPECT_EQ(value_of("cairn_num_requests_running") + value_of("cairn_num_requests_waiting"), 0);
}

TEST(Memory, TotalsAreForAdmins) {
  AppOptions options;
  ASSERT_TRUE(options.keys.add(kKey, Role::user));
  ASSERT_TRUE(options.keys.add(kAdminKey, Role::admin));
  Serving serving(std::move(options));
  for (const char* path : {"/v1/memory", "/v1/memory/events"}) {
    EXPECT_EQ(serving.get(path).status, 401);
  }
  const json own = json::parse(serving.get("/v1/memory", bearer(kKey)).body);
  for (const char* member : {"process", "conversations", "engine", "store"}) {
    EXPECT_TRUE(own.at(member).is_null()) << member;
  }
  const json all = json::parse(serving.get("/v1/memory", bearer(kAdminKey)).body);
  EXPECT_TRUE(all["process"].is_object());
  EXPECT_EQ(all["groups"], own["groups"]);
  // What one's own prompt would cost.
  EXPECT_EQ(serving.post("/v1/memory/plan", question("Hello").dump(), bearer(kKey)).status, 200);
}

TEST(Memory, PromptsHavePrices) {
  Serving serving;
  const json asked = question("What is the capital of France?");
  const json before = serving.post_json("/v1/memory/plan", asked);
  EXPECT_EQ(before["reused"], 0);
  EXPECT_EQ(before["recomputed"], before["prompt_tokens"]);
  EXPECT_TRUE(before["sequence"].is_null());
  EXPECT_EQ(before["message_starts"].size(), 1u);
  EXPECT_EQ(before["on_disk"], 0);
  EXPECT_EQ(before["stored"], json::array());
  const json answer = ask(serving, "What is the capital of France?");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], before["prompt_tokens"]);
  const json after = serving.post_json("/v1/memory/plan", asked);
  EXPECT_EQ(after["reused"], after["prompt_tokens"]);
  EXPECT_EQ(after["recomputed"], 0);
  EXPECT_EQ(after["sequence"], json::parse(serving.get("/v1/memory").body)["order"][0]);
  EXPECT_EQ(serving.refused("/v1/memory/plan", json::object()).first, 400);
}

TEST(Memory, ChangesComeAsEvents) {
  Serving serving;
  BareClient watching = serving.client();
  ASSERT_TRUE(watching.send(get_request("/v1/memory/events")));
  ASSERT_TRUE(watching.wait_for("\"order\":[]"));
  ask(serving, "What is the capital of France?");
  ASSERT_TRUE(watching.wait_for("\"use\":\"kept\""));
  watching.close();
  ask(serving, "What is the capital of Norway?");
  EXPECT_EQ(serving.get("/health").status, 200);
}

// HEAD tells what a GET would begin with, and watches nothing.
TEST(Memory, TheHeadOfChangesHasAnEnd) {
  Serving serving;
  BareClient asking = serving.client();
  ASSERT_TRUE(asking.send("HEAD /v1/memory/events HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_TRUE(asking.read_reply(false).has("content-type: text/event-stream\r\n"));
  ASSERT_TRUE(asking.send(get_request("/health")));
  EXPECT_EQ(asking.read_reply().body, R"({"status":"ok"})");
}

TEST(MemoryJson, SaysWhereTheStoreHasSomething) {
  session::MemoryReport report;
  report.sequences = {{.id = "kept-1",
                       .use = "kept",
                       .length = 70,
                       .groups = {{.blocks = 1, .runs = {{32, 64, 2}}}, {.blocks = 0}},
                       .is_stored = true,
                       .stored = {{{0, 40}, {64, 70}}, {{40, 40}}}},
                      {.id = "kept-2", .use = "kept", .length = 5, .groups = {{}, {}}}};
  const json memory = json::parse(memory_json(report));
  const json& groups = memory["sequences"][0]["groups"];
  EXPECT_EQ(memory["sequences"][0]["stored"], true);
  EXPECT_EQ(groups[0]["runs"], json::parse("[32,64,2]"));
  EXPECT_EQ(groups[0]["stored"], json::parse("[0,40,64,70]"));
  EXPECT_EQ(groups[1]["stored"], json::parse("[40,40]"));
  EXPECT_EQ(memory["sequences"][1]["groups"][1]["stored"], json::array());
}

session::SequenceReport sequence(const std::string& id, int32_t length) {
  return {
      .id = id, .use = "kept", .length = length, .groups = {{.blocks = 1, .runs = {{0, 1, 0}}}}};
}

TEST(MemoryChanges, AreWhatIsNotAsItWas) {
  MemoryChanges changes;
  session::MemoryReport report;
  report.sequences = {sequence("kept-1", 10), sequence("kept-2", 20)};
  const auto ids = [&] {
    const json event = json::parse(changes.next(report));
    std::string changed;
    for (const json& one : event["sequences"]) changed += one["id"].get<std::string>() + " ";
    return changed + "of " + std::to_string(event["order"].size());
  };
  EXPECT_EQ(ids(), "kept-1 kept-2 of 2");
  EXPECT_EQ(ids(), "of 2");
  report.sequences[1].length = 21;
  EXPECT_EQ(ids(), "kept-2 of 2");
  report.sequences.erase(report.sequences.begin());
  EXPECT_EQ(ids(), "of 1");
  report.sequences.push_back(sequence("kept-1", 10));
  EXPECT_EQ(ids(), "kept-1 of 2");
  // A tenant is not told that others are at work.
  report.is_partial = true;
  EXPECT_EQ(ids(), "of 2");
  EXPECT_EQ(changes.next(report), "");
  report.sequences[0].length = 22;
  EXPECT_EQ(ids(), "kept-2 of 2");
}

}  // namespace
}  // namespace cairn::serve::memory_test
