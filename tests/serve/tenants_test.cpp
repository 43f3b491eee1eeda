// Holders of different keys on one server: what one has asked is nothing that another could see,
// neither in an answer nor in the work that it takes. Covers the rules M1 and M3 of
// docs/security.md, and A4.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/scratch_folder.h"
#include "tests/serve/serving.h"

namespace cairn::serve::tenants_test {
namespace {

using nlohmann::json;

constexpr char kAnna[] = "a-key-of-anna-12345", kAnnaToo[] = "another-key-of-anna",
               kBert[] = "a-key-of-bert-12345", kAdmin[] = "a-key-of-an-admin-12";

AppOptions options_with(bool has_admin = false) {
  AppOptions options;
  EXPECT_TRUE(options.keys.add(kAnna, Role::user, "anna"));
  EXPECT_TRUE(options.keys.add(kAnnaToo, Role::user, "anna"));
  EXPECT_TRUE(options.keys.add(kBert, Role::user));
  if (has_admin) {
    EXPECT_TRUE(options.keys.add(kAdmin, Role::admin));
  }
  return options;
}

std::string bearer(const std::string& key) {
  return "Authorization: Bearer " + key + "\r\n";
}

json chat(Serving& serving, const char* key, const std::string& text = kFrance) {
  const BareReply reply = serving.post("/v1/chat/completions", question(text).dump(), bearer(key));
  EXPECT_EQ(reply.status, 200) << reply.body;
  return json::parse(reply.body, nullptr, false);
}

json get(Serving& serving, const char* path, const char* key) {
  const BareReply reply = serving.get(path, bearer(key));
  EXPECT_EQ(reply.status, 200) << path << reply.body;
  return json::parse(reply.body, nullptr, false);
}

int reused(const json& reply) {
  const int cached = reply["usage"]["prompt_tokens_details"]["cached_tokens"];
  EXPECT_EQ(reply["memory"]["reused"], cached);
  EXPECT_EQ(reply["memory"]["recomputed"].get<int>() + cached,
            reply["usage"]["prompt_tokens"].get<int>());
  return cached;
}

// Long enough to be worth a record on the disk.
std::string long_text() {
  std::string text;
  for (int round = 0; round < 60; ++round) text += "Remember: blue is 17. ";
  return text + kFrance;
}

TEST(Tenants, ComputeTheSamePromptEachForThemselves) {
  Serving serving(options_with());
  const json first = chat(serving, kAnna);
  EXPECT_EQ(reused(first), 0);
  EXPECT_GT(reused(chat(serving, kAnna)), 0);
  EXPECT_GT(reused(chat(serving, kAnnaToo)), 0) << "two keys of one tenant";
  const json stranger = chat(serving, kBert);
  EXPECT_EQ(reused(stranger), 0);
  EXPECT_EQ(stranger["memory"], first["memory"]) << "nor is a reason told";
  EXPECT_EQ(stranger["choices"], first["choices"]);
  EXPECT_EQ(first["choices"][0]["message"]["content"], kParis);
  EXPECT_GT(reused(chat(serving, kBert)), 0);
}

// With one key there is nobody to be kept apart, nor without any.
TEST(Tenants, AreToldApartWhereThereAreSeveral) {
  AppOptions one;
  ASSERT_TRUE(one.keys.add(kBert, Role::user));
  const test::ScratchFolder folder;
  const EngineOptions engine{.cache_dir = folder.file("store")};
  {
    Serving serving({}, "", engine);
    EXPECT_EQ(reused(json::parse(
                  serving.post("/v1/chat/completions", question(long_text()).dump()).body)),
              0);
  }
  Serving serving(std::move(one), "", engine);
  EXPECT_GT(reused(chat(serving, kBert, long_text())), 0);
  EXPECT_TRUE(get(serving, "/v1/memory", kBert)["process"].is_object());
  EXPECT_EQ(serving.get("/metrics", bearer(kBert)).status, 200);
}

TEST(Tenants, StayApartOnTheDisk) {
  const test::ScratchFolder folder;
  const EngineOptions engine{.cache_dir = folder.file("store")};
  {
    Serving serving(options_with(), "", engine);
    EXPECT_EQ(reused(chat(serving, kAnna, long_text())), 0);
  }
  {
    Serving serving(options_with(), "", engine);
    const json stranger = chat(serving, kBert, long_text());
    EXPECT_EQ(reused(stranger), 0);
    EXPECT_EQ(stranger["memory"]["source"], "none");
    const json again = chat(serving, kAnna, long_text());
    EXPECT_GT(reused(again), 0);
    EXPECT_EQ(again["memory"]["source"], "disk");
  }
  Serving serving(options_with(), "", engine);
  EXPECT_EQ(chat(serving, kBert, long_text())["memory"]["source"], "disk") << "now it has its own";
}

TEST(Tenants, SeeTheirOwnMemory) {
  Serving serving(options_with(true));
  chat(serving, kAnna);
  chat(serving, kBert, "Hello");
  const json own = get(serving, "/v1/memory", kAnna);
  ASSERT_EQ(own["order"].size(), 1u);
  EXPECT_EQ(own["sequences"][0]["common"], 0);
  EXPECT_EQ(own["left_out"], 0);
  EXPECT_TRUE(own["process"].is_null() && own["engine"].is_null());
  EXPECT_EQ(get(serving, "/v1/memory", kAnnaToo)["order"], own["order"]);
  EXPECT_NE(get(serving, "/v1/memory", kBert)["order"], own["order"]);
  const json all = get(serving, "/v1/memory", kAdmin);
  EXPECT_EQ(all["order"].size(), 2u);
  EXPECT_TRUE(all["process"].is_object());
  BareClient watching = serving.client();
  ASSERT_TRUE(watching.send(get_request("/v1/memory/events", bearer(kBert))));
  ASSERT_TRUE(watching.wait_for("\n\n"));
  EXPECT_TRUE(watching.has_received("\"process\":null"));
  EXPECT_FALSE(watching.has_received(own["order"][0].get<std::string>()));

  const std::string asked = question(kFrance).dump();
  const json plan = json::parse(serving.post("/v1/memory/plan", asked, bearer(kAnna)).body);
  EXPECT_GT(plan["reused"], 0);
  const json strangers = json::parse(serving.post("/v1/memory/plan", asked, bearer(kBert)).body);
  EXPECT_LT(strangers["reused"], plan["reused"]) << "what \"Hello\" begins with";
  const json admins = json::parse(serving.post("/v1/memory/plan", asked, bearer(kAdmin)).body);
  EXPECT_EQ(admins["reused"], 0);
  EXPECT_TRUE(admins["sequence"].is_null());
}

TEST(Tenants, DoNotSeeWhatOthersAreAnswered) {
  Serving serving(options_with(true), "", {.context_tokens = 100'000});
  json body = question("Hello");
  body.update({{"stream", true}, {"ignore_eos", true}, {"max_tokens", 99'000}});
  BareClient asking = serving.client();
  ASSERT_TRUE(asking.send(post_request("/v1/chat/completions", body.dump(), bearer(kAnna))));
  ASSERT_TRUE(asking.wait_for("\"delta\""));
  EXPECT_EQ(get(serving, "/slots", kBert).size(), 1u);
  EXPECT_FALSE(get(serving, "/slots", kBert)[0]["is_processing"]);
  EXPECT_TRUE(get(serving, "/slots", kAnna)[0]["is_processing"]);
  EXPECT_TRUE(get(serving, "/slots", kAdmin)[0]["is_processing"]);
  // Side by side in the same steps, and nothing of it shows in the answer.
  EXPECT_EQ(reused(chat(serving, kBert)), 0);
}

TEST(Tenants, DoNotSeeWhatIsCountedOfAll) {
  for (const bool has_admin : {false, true}) {
    Serving serving(options_with(has_admin));
    EXPECT_EQ(serving.get("/metrics", bearer(kAnna)).status, 403);
    EXPECT_EQ(serving.post("/lora-adapters", "[]", bearer(kAnna)).status, 403);
    if (!has_admin) continue;
    EXPECT_EQ(serving.get("/metrics", bearer(kAdmin)).status, 200);
  }
}

}  // namespace
}  // namespace cairn::serve::tenants_test
