// Holders of different keys on one server: what one has asked is nothing that another could see,
// neither in an answer nor in the work that it takes. Covers the rules M1 and M3 of
// docs/security.md, and A4. Nor can one take another's part: M2.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/sanitized.h"
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

// What a probe for a prompt costs.
struct Probe {
  int cached_tokens = 0;
  int64_t spared_rows = 0;  // Tokens of the prompt that were not computed.
  double seconds = 0;
};

Probe probe(Serving& serving, const char* key, const std::string& text) {
  json body = question(text);
  body["max_tokens"] = 1;
  const int64_t rows_before = serving.service().stats().prompt_rows;
  const auto begin = std::chrono::steady_clock::now();
  const BareReply reply =
      serving.send(post_request("/v1/chat/completions", body.dump(), bearer(key)));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(reply.status, 200) << reply.body;
  const json said = json::parse(reply.body, nullptr, false);
  const int64_t rows = serving.service().stats().prompt_rows - rows_before;
  return {reused(said), said["usage"]["prompt_tokens"].get<int64_t>() - rows, taken.count()};
}

// How well two kinds are told apart by a number: 0.5 is not at all, 0 and 1 are always.
double area_under_curve(std::vector<double> known, const std::vector<double>& unknown) {
  std::sort(known.begin(), known.end());
  double pairs = 0;
  for (const double value : unknown) {
    const auto [below, above] = std::equal_range(known.begin(), known.end(), value);
    pairs += double(above - known.begin()) - double(above - below) / 2;
  }
  return pairs / (double(known.size()) * double(unknown.size()));
}

// Attack 37: 2,000 probes of one tenant for prompts of which another has asked half: neither what
// is told nor what is computed differs. Where both are the same, so is the time, which is told and
// not judged: it is the machine's as well. What the prober itself has asked is forgotten before
// each.
TEST(Tenants, ProbesFindNothing) {
  Serving serving(options_with());
  constexpr int kTexts = 20, kProbes = test::kIsSlow ? 200 : 2000;
  const auto text_of = [](int number) {
    return "Remember: door " + std::to_string(100 + number) + " is red. Which door is red?";
  };
  for (int number = 0; number < kTexts; ++number) probe(serving, kAnna, text_of(number));
  const uint64_t prober = options_with().keys.find(kBert)->tenant;
  std::mt19937 random(1);
  std::vector<double> rows[2], seconds[2];  // Of unknown ones, and of known ones.
  for (int count = 0; count < kProbes; ++count) {
    const bool is_known = count % 2 == 0;
    const int number = int(random() % kTexts) + (is_known ? 0 : kTexts);
    serving.service().ask([&](Engine& engine) { engine.cache().clear(prober); });
    const Probe found = probe(serving, kBert, text_of(number));
    ASSERT_EQ(found.cached_tokens, 0) << count;
    rows[is_known].push_back(double(found.spared_rows));
    seconds[is_known].push_back(found.seconds);
  }
  EXPECT_EQ(area_under_curve(rows[1], rows[0]), 0.5);
  std::printf("%d probes: area under the curve %.3f by what is computed, %.3f by the time\n",
              kProbes, area_under_curve(rows[1], rows[0]),
              area_under_curve(seconds[1], seconds[0]));
  // The same probes tell whose prompts they are all that they ask.
  for (int number = 0; number < kTexts; ++number) {
    EXPECT_GT(probe(serving, kAnna, text_of(number)).spared_rows,
              probe(serving, kAnna, text_of(number + kTexts)).spared_rows);
  }
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

// Attack 38: unique prompts, one after the other and many at once: others' next turns compute
// nothing again.
TEST(Tenants, DoNotDriveOutWhatOthersKeep) {
  size_t bytes = 0;
  {
    Serving serving(options_with());
    chat(serving, kAnna, long_text());
    serving.service().ask([&](Engine& engine) { bytes = engine.memory().usage().used_bytes(); });
  }
  for (const char* const loud : {kBert, kAnnaToo}) {
    Serving serving(options_with(), "", {.memory_budget = bytes * 4});
    const json first = chat(serving, kAnna, long_text());
    std::vector<BareClient> asking;
    for (int flood = 0; flood < 8; ++flood) {
      const std::string unique = "Number " + std::to_string(flood) + ". " + long_text();
      chat(serving, loud, unique);
      asking.push_back(serving.client());
      const std::string body = question("Again " + unique).dump();
      ASSERT_TRUE(asking.back().send(post_request("/v1/chat/completions", body, bearer(loud))));
    }
    for (BareClient& each : asking) EXPECT_EQ(each.read_reply().status, 200);
    const int kept = reused(chat(serving, kAnna, long_text()));
    const int tokens = first["usage"]["prompt_tokens"];
    if (loud == kBert) {
      EXPECT_EQ(kept, tokens) << "nothing is computed again";
    } else {
      EXPECT_LT(kept, tokens) << "it was its own flood";
    }
  }
}

// The same on the disk, where a new process finds it.
TEST(Tenants, DoNotDriveOutWhatOthersHaveOnTheDisk) {
  const auto write_all = [](Serving& serving) {
    uint64_t bytes = 0;
    serving.service().ask([&](Engine& engine) {
      engine.sequence_store()->drain();
      bytes = engine.sequence_store()->stats().bytes;
    });
    return bytes;
  };
  uint64_t bytes = 0;
  {
    const test::ScratchFolder folder;
    Serving serving(options_with(), "", {.cache_dir = folder.file("store")});
    chat(serving, kAnna, long_text());
    bytes = write_all(serving);
  }
  for (const char* const loud : {kBert, kAnnaToo}) {
    const test::ScratchFolder folder;
    const EngineOptions engine{.cache_dir = folder.file("store"), .cache_disk_budget = bytes * 4};
    {
      Serving serving(options_with(), "", engine);
      chat(serving, kAnna, long_text());
      for (int flood = 0; flood < 8; ++flood) {
        chat(serving, loud, "Number " + std::to_string(flood) + ". " + long_text());
        EXPECT_LE(write_all(serving), bytes * 4);
      }
    }
    Serving serving(options_with(), "", engine);
    const bool is_there = chat(serving, kAnna, long_text())["memory"]["source"] == "disk";
    EXPECT_EQ(is_there, loud == kBert) << "it was its own flood";
  }
}

// The same where an operator wants none.
TEST(Tenants, HaveNoSharesWhereThereAreNone) {
  AppOptions options = options_with();
  options.tenant_share_percent = 0;
  Serving serving(std::move(options), "", {.memory_budget = size_t(1) << 20});
  const json first = chat(serving, kAnna);
  for (int flood = 0; flood < 40; ++flood) {
    chat(serving, kBert, "Number " + std::to_string(flood) + ". " + kFrance);
  }
  EXPECT_LT(reused(chat(serving, kAnna)), first["usage"]["prompt_tokens"].get<int>());
}

AppOptions options_of_many(int count) {
  AppOptions options;
  for (int tenant = 0; tenant < count; ++tenant) {
    EXPECT_TRUE(options.keys.add("a-key-of-somebody-" + std::to_string(tenant), Role::user));
  }
  return options;
}

BareClient endless_answer(Serving& serving, const std::string& key) {
  json body = question("Hello");
  body.update({{"stream", true}, {"ignore_eos", true}, {"max_tokens", 99'000}});
  BareClient asking = serving.client();
  EXPECT_TRUE(asking.send(post_request("/v1/chat/completions", body.dump(), bearer(key))));
  return asking;
}

// Attack 48: 64 keys, one of which asks for more answers without end than are computed at a time:
// the others get all tokens that they ask for meanwhile.
TEST(Tenants, AreAnsweredBesideOneAtFullLoad) {
  Serving serving(options_of_many(64), "", {.context_tokens = 100'000});
  // Half of the places, and a 64th of the queue.
  std::vector<BareClient> flood;
  SchedulerStats stats;
  for (int round = 0; round < 3000 && stats.running + stats.waiting < 32 + 16; ++round) {
    if (flood.size() < 100) flood.push_back(endless_answer(serving, "a-key-of-somebody-0"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stats = serving.service().stats();
  }
  ASSERT_EQ(stats.running, 32);
  ASSERT_EQ(stats.waiting, 16);
  json body = question("Hello");
  body.update({{"ignore_eos", true}, {"max_tokens", 8}});
  std::vector<BareClient> others;
  for (int tenant = 1; tenant < 64; ++tenant) {
    const std::string key = bearer("a-key-of-somebody-" + std::to_string(tenant));
    others.push_back(serving.client());
    ASSERT_TRUE(others.back().send(post_request("/v1/chat/completions", body.dump(), key)));
  }
  for (BareClient& other : others) {
    const BareReply reply = other.read_reply();
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(json::parse(reply.body)["usage"]["completion_tokens"], 8);
  }
  stats = serving.service().stats();
  EXPECT_EQ(stats.running, 32);
  EXPECT_EQ(stats.waiting, 16) << "none of the flood has ended";
}

// As many requests as the server takes, of two: there is a place for the third.
TEST(Tenants, ThatAskForAllLeaveAPlaceForEachOther) {
  AppOptions options = options_of_many(3);
  options.requests_max = 8;
  Serving serving(std::move(options), "", {.context_tokens = 100'000});
  std::vector<BareClient> flood;
  for (const int count : {4, 3}) {
    const std::string key = "a-key-of-somebody-" + std::to_string(flood.size() / 4);
    for (int index = 0; index < count; ++index) {
      flood.push_back(endless_answer(serving, key));
      ASSERT_TRUE(flood.back().wait_for("\"delta\"")) << key << index;
    }
    const BareReply refused =
        serving.post("/v1/chat/completions", question("x").dump(), bearer(key));
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(json::parse(refused.body)["error"]["code"], "queue_full");
  }
  chat(serving, "a-key-of-somebody-2");
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
