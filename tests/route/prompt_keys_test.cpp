// Prompts as chains of keys: what begins alike has keys in common, and nothing else has.
#include "route/prompt_keys.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace cairn::route::prompt_keys_test {
namespace {

using nlohmann::json;
using serve::http::Method;
using serve::http::RequestHead;

RequestHead head_for(const std::string& path, std::vector<serve::http::Header> headers = {}) {
  RequestHead head;
  head.method = Method::post;
  head.path = path;
  head.headers = std::move(headers);
  return head;
}

PromptKeys keys_of(const json& body, const std::string& path = "/v1/chat/completions",
                   std::vector<serve::http::Header> headers = {}) {
  return prompt_keys(head_for(path, std::move(headers)), body.dump());
}

json chat(const std::vector<std::string>& texts, json more = json::object()) {
  more["messages"] = json::array();
  for (size_t index = 0; index < texts.size(); ++index) {
    more["messages"].push_back(
        {{"role", index % 2 == 0 ? "user" : "assistant"}, {"content", texts[index]}});
  }
  return more;
}

std::set<uint64_t> set_of(const PromptKeys& keys) {
  std::set<uint64_t> all;
  for (const PromptKeys::Prefix& prefix : keys.prefixes) all.insert(prefix.key);
  return all;
}

bool have_common(const PromptKeys& a, const PromptKeys& b) {
  const std::set<uint64_t> keys = set_of(b);
  for (const uint64_t key : set_of(a)) {
    if (keys.contains(key)) return true;
  }
  return false;
}

TEST(PromptKeys, ATurnBeginsWithTheKeysOfTheTurnBefore) {
  const PromptKeys before = keys_of(chat({"a", "b", "c"}));
  const PromptKeys after =
      keys_of(chat({"a", "b", "c", std::string(3 * kBlockBytes, 'd'), "e"}, {{"stream", true}}));
  ASSERT_EQ(before.prefixes.size(), 3u);
  ASSERT_EQ(after.prefixes.size(), 3u + 4 + 1);
  for (size_t index = 0; index < 3; ++index) {
    EXPECT_EQ(after.prefixes[index].key, before.prefixes[index].key);
    EXPECT_EQ(after.prefixes[index].end, before.prefixes[index].end);
  }
  EXPECT_EQ(set_of(after).size(), after.prefixes.size());
  EXPECT_GT(after.bytes(), 3 * kBlockBytes);
  EXPECT_EQ(before.affinity, after.affinity);
  EXPECT_NE(before.affinity, keys_of(chat({"b", "b", "c"})).affinity);
}

// However many messages and blocks there are; what it costs to read is that of all of them.
TEST(PromptKeys, AreNoMoreThanANodeHasRoomFor) {
  json many = json::object(), more;
  for (size_t count = 0; count < 2 * kPrefixesMax; ++count) many["messages"].push_back(0);
  const PromptKeys keys = keys_of(many);
  ASSERT_EQ(keys.prefixes.size(), kPrefixesMax);
  EXPECT_EQ(keys.bytes(), 2 * kPrefixesMax);
  EXPECT_EQ(keys.prefixes[kPrefixesMax - 2].end, kPrefixesMax - 1);
  // The turn after it has all but the last of them, and another last one.
  more = many;
  more["messages"].push_back(1);
  const PromptKeys next = keys_of(more);
  ASSERT_EQ(next.prefixes.size(), kPrefixesMax);
  EXPECT_EQ(next.prefixes[kPrefixesMax - 2].key, keys.prefixes[kPrefixesMax - 2].key);
  EXPECT_NE(next.prefixes.back().key, keys.prefixes.back().key);
  EXPECT_EQ(next.affinity, keys.affinity);
  const PromptKeys text = keys_of({{"prompt", std::string(kPrefixesMax * kBlockBytes + 1, 'x')}});
  ASSERT_EQ(text.prefixes.size(), kPrefixesMax);
  EXPECT_EQ(text.bytes(), kPrefixesMax * kBlockBytes + 1);
}

TEST(PromptKeys, NothingInCommonWithOthers) {
  const PromptKeys keys = keys_of(chat({"a", "b", "c"}));
  EXPECT_FALSE(have_common(keys, keys_of(chat({"a", "b", "c"}, {{"model", "other"}}))));
  EXPECT_FALSE(have_common(keys, keys_of(chat({"a", "b", "c"}, {{"tools", {1}}}))));
  EXPECT_FALSE(have_common(keys, keys_of(chat({"a", "b", "c"}), "/v1/chat/completions",
                                         {{"authorization", "Bearer other"}})));
  EXPECT_FALSE(have_common(keys_of({{"input", {"a", "bc"}}}), keys_of({{"input", {"ab", "c"}}})));
  // Who may ask for whom is told apart, whatever the model's name is.
  EXPECT_FALSE(have_common(keys_of(chat({"a"}, {{"model", "x"}}), "/", {{"authorization", "ab"}}),
                           keys_of(chat({"a"}, {{"model", "bx"}}), "/", {{"authorization", "a"}})));
}

TEST(PromptKeys, EveryApiHasPrefixes) {
  const std::pair<const char*, json> kBodies[] = {
      {"/v1/completions", {{"prompt", std::string(5000, 'x')}}},
      {"/v1/completions", {{"prompt", {1, 2, 3}}}},
      {"/v1/responses", {{"instructions", "i"}, {"input", "x"}}},
      {"/v1/responses", {{"input", {{{"role", "user"}, {"content", "x"}}}}}},
      {"/v1/messages", {{"system", "s"}, {"messages", {{{"role", "user"}, {"content", "x"}}}}}},
      {"/api/generate", {{"prompt", "x"}}},
      {"/tokenize", {{"content", "x"}}},
  };
  for (const auto& [path, body] : kBodies) {
    const PromptKeys keys = keys_of(body, path);
    EXPECT_FALSE(keys.prefixes.empty()) << path;
    EXPECT_TRUE(keys.owned.empty()) << path;
  }
  EXPECT_EQ(keys_of(kBodies[0].second).prefixes.size(), 5u);
}

TEST(PromptKeys, WhatIsNoPromptHasNone) {
  std::string deep(100'000, '[');
  for (const std::string& body : {std::string(), std::string("["), std::string("[1]"), deep,
                                  std::string("{\"messages\":7}"), std::string("\xff")}) {
    const PromptKeys keys = prompt_keys(head_for("/v1/chat/completions"), body);
    EXPECT_TRUE(keys.prefixes.empty()) << body.substr(0, 40);
    EXPECT_EQ(keys.bytes(), 0u);
  }
}

TEST(PromptKeys, TheClientMaySayWhatBelongsTogether) {
  const json mine = {{"prompt_cache_key", "mine"}};
  EXPECT_EQ(keys_of(chat({"a"}, mine)).affinity, keys_of(chat({"b"}, mine)).affinity);
  EXPECT_EQ(keys_of(chat({"a"}), "/", {{"x-cairn-affinity", "me"}}).affinity,
            keys_of(chat({"b"}), "/", {{"x-cairn-affinity", "me"}}).affinity);
}

TEST(PromptKeys, NamesOfWhatOneNodeHas) {
  EXPECT_EQ(keys_of({}, "/v1/sessions/mine/generate").owned, "mine");
  EXPECT_EQ(keys_of({}, "/v1/sessions/mine").owned, "mine");
  EXPECT_EQ(keys_of({{"id", "mine"}}, "/v1/sessions").owned, "mine");
  EXPECT_EQ(keys_of({{"previous_response_id", "resp_1"}}, "/v1/responses").owned, "resp_1");
  EXPECT_EQ(keys_of({}, "/v1/responses/resp_1").owned, "resp_1");
  EXPECT_EQ(keys_of({{"input", "x"}}, "/v1/responses/input_tokens").owned, "");
  EXPECT_EQ(keys_of({{"id", "mine"}}, "/v1/chat/completions").owned, "");
  EXPECT_TRUE(makes_owned(head_for("/v1/responses"), "{}"));
  EXPECT_TRUE(makes_owned(head_for("/v1/sessions/mine/fork"), "{}"));
  EXPECT_FALSE(makes_owned(head_for("/v1/chat/completions"), "{}"));
  EXPECT_EQ(first_id(R"({"object":"x", "id": "one", "y":{"id":"two"}})"), "one");
  EXPECT_EQ(first_id(R"(data: {"response":{"id":"resp_7")"), "resp_7");
  EXPECT_EQ(first_id(R"({"id":7})"), "");
  EXPECT_EQ(first_id(R"({"id":"cut)"), "");
}

}  // namespace
}  // namespace cairn::route::prompt_keys_test
