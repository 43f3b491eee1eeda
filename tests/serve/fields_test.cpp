// The table of fields, the checks that it drives, and the document that is made of it. Covers
// field_table.cpp, openapi.cpp, reply_types.cpp, reply_schema.cpp and refusal.cpp.
#include "serve/fields.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "sample/params.h"
#include "serve/app.h"
#include "serve/openapi.h"
#include "serve/reply_types.h"
#include "tests/serve/schema_check.h"

namespace cairn::serve::fields_test {
namespace {

TEST(Fields, TheTableMakesSense) {
  std::map<std::string_view, uint32_t> seen;
  for (const Field& field : all_fields()) {
    EXPECT_FALSE(field.name.empty() || field.doc.empty());
    EXPECT_NE(field.endpoints, 0u) << field.name;
    EXPECT_LE(field.min, field.max) << field.name;
    EXPECT_EQ(seen[field.name] & field.endpoints, 0u) << field.name << " is there twice";
    seen[field.name] |= field.endpoints;
  }
  for (const sample::SamplingField& sampling : sample::sampling_fields()) {
    const bool has_other_name =
        sampling.name == "n_probs" || sampling.name == "post_sampling_probs";
    EXPECT_EQ(seen[sampling.name] & kSampled, uint32_t(has_other_name ? kLlama : kSampled))
        << sampling.name;
  }
}

std::string refusal_field(std::string_view text, Endpoint endpoint) {
  Checked<Body> body = Body::read(text, endpoint);
  if (body) return "none";
  EXPECT_EQ(body.error().status, 400);
  return body.error().code + body.error().field;
}

TEST(Fields, BodiesAreCheckedByTheirLines) {
  EXPECT_EQ(refusal_field(R"({"content":"x"})", kTokenize), "none");
  EXPECT_EQ(refusal_field(R"({"content":5})", kTokenize), "content");
  EXPECT_EQ(refusal_field(R"({"content":null})", kTokenize), "content");
  EXPECT_EQ(refusal_field(R"({})", kTokenize), "content");
  EXPECT_EQ(refusal_field(R"({"content":"x","add_special":1})", kTokenize), "add_special");
  EXPECT_EQ(refusal_field(R"({"content":"x","add_special":null})", kTokenize), "none");
  EXPECT_EQ(refusal_field(R"({"content":"x","temperature":"hot"})", kTokenize), "none")
      << "other endpoints' fields mean nothing";
  EXPECT_EQ(refusal_field(R"([])", kTokenize), "invalid_json");
  EXPECT_EQ(refusal_field("", kTokenize), "invalid_json");
  EXPECT_EQ(refusal_field("", kOllamaChat), "invalid_json");
  for (const Endpoint endpoint : {kSession, kSessionFork, Endpoint{}}) {
    EXPECT_EQ(refusal_field("", endpoint), "none");
    EXPECT_EQ(refusal_field(" ", endpoint), "invalid_json");
  }
  EXPECT_EQ(refusal_field(R"({"prompt":"x","n":1.0})", kCompletion), "none");
  EXPECT_EQ(refusal_field(R"({"prompt":"x","n":1.5})", kCompletion), "n");
  EXPECT_EQ(refusal_field(R"({"prompt":"x","n":17})", kCompletion), "n");
  EXPECT_EQ(refusal_field(R"({"prompt":"x","stop":["a",1]})", kCompletion), "stop");
}

// Every field of every endpoint is refused where it is of another kind or out of its range.
TEST(Fields, EveryLineIsEnforced) {
  const std::map<Endpoint, std::string> bodies = {
      {kChat, R"("messages":[{"role":"user","content":"x"}])"},
      {kCompletion, R"("prompt":"x")"},
      {kEmbedding, R"("input":"x")"},
      {kTokenize, R"("content":"x")"},
      {kDetokenize, R"("tokens":[1])"},
      {kApplyTemplate, R"("messages":[{"role":"user","content":"x"}])"},
      {kNative, R"("prompt":"x")"},
      {kInfill, R"("unknown":1)"},
      {kAdapters, R"("adapters":[])"},
      {kOllamaChat, R"("unknown":1)"},
      {kOllamaGenerate, R"("unknown":1)"},
      {kOllamaOptions, R"("unknown":1)"},
      {kOllamaEmbed, R"("unknown":1)"},
      {kOllamaShow, R"("unknown":1)"},
      {kMessages, R"("max_tokens":1,"messages":[{"role":"user","content":"x"}])"},
      {kCountTokens, R"("messages":[{"role":"user","content":"x"}])"},
      {kResponses, R"("input":"x")"},
      {kRerank, R"("query":"x")"},
      {kVectors, R"("unknown":1)"},
      {kSession, R"("unknown":1)"},
      {kSessionAnswer, R"("unknown":1)"},
      {kSessionMessages, R"("messages":[{"role":"user","content":"x"}])"},
      {kSessionName, R"("name":"x")"},
      {kSessionRewind, R"("unknown":1)"},
      {kSessionFork, R"("unknown":1)"},
      {kReceipt, R"("receipt":1,"fingerprint":{},"prompt":{},"context":{},"form":{},"sampling":{},)"
                 R"("answer":{})"}};
  for (const auto& [endpoint, required] : bodies) {
    ASSERT_EQ(refusal_field("{" + required + "}", endpoint), "none");
    for (const Field& field : all_fields()) {
      if ((field.endpoints & endpoint) == 0 || field.is_required) continue;
      if (field.kind == FieldKind::any) continue;
      const std::string name(field.name);
      const std::string wrong = field.kind == FieldKind::object ? "7" : "{\"a\":1}";
      const auto with = [&, &given = required, asked = endpoint](const std::string& value) {
        return refusal_field("{" + given + ",\"" + name + "\":" + value + "}", asked);
      };
      EXPECT_EQ(with(wrong), name);
      if (field.kind == FieldKind::integer || field.kind == FieldKind::number) {
        EXPECT_EQ(with(fmt::format("{}", field.min)), "none") << name;
        EXPECT_EQ(with(fmt::format("{}", field.max)), "none") << name;
        EXPECT_EQ(with(fmt::format("{}", field.min - 1)), name);
        EXPECT_EQ(with("1e300"), name);
      }
    }
  }
}

TEST(Fields, TheDocumentHasAllRoutesAndFields) {
  const nlohmann::json document = nlohmann::json::parse(openapi_text({}));
  EXPECT_EQ(document["openapi"], "3.1.0");
  for (const RouteLine& line : all_routes()) {
    std::string path(line.path);
    if (path.ends_with('*')) path = path.substr(0, path.size() - 1) + "{name}";
    const bool deletes = line.method == http::Method::delete_;
    const auto& operation = document["paths"][path][line.method == http::Method::get ? "get"
                                                    : deletes                        ? "delete"
                                                                                     : "post"];
    ASSERT_TRUE(operation.is_object()) << path;
    if (line.endpoint == 0) continue;
    const auto& schema = operation["requestBody"]["content"]["application/json"]["schema"];
    std::set<std::string> names, found;
    for (const Field& field : all_fields()) {
      if ((field.endpoints & line.endpoint) != 0) names.emplace(field.name);
    }
    for (const auto& [name, type] : schema["properties"].items()) found.insert(name);
    EXPECT_EQ(found, names) << path;
  }
  const auto& chat = document["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]
                             ["application/json"]["schema"];
  EXPECT_EQ(chat["required"], nlohmann::json::array({"messages"}));
  EXPECT_EQ(chat["properties"]["temperature"]["maximum"], 100);
}

// Each reply has a type, and what types refer to is there.
TEST(Fields, TheDocumentHasAllReplies) {
  const nlohmann::json document = nlohmann::json::parse(openapi_text({}));
  for (const RouteLine& line : all_routes()) {
    const Replies& replies = line.replies;
    const bool is_text =
        line.path == "/metrics" || line.path.starts_with("/page/") || line.path == "/";
    EXPECT_EQ(replies.json.empty() && replies.events.empty(), is_text) << line.path;
  }
  size_t count = 0;
  const std::string text = document.dump(), mark = "\"#/components/schemas/";
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; ++count) {
    at += mark.size();
    EXPECT_TRUE(
        document["components"]["schemas"].contains(text.substr(at, text.find('"', at) - at)));
  }
  EXPECT_GT(count, 400u);
}

TEST(Fields, TypesOfRepliesAreSchemas) {
  using nlohmann::json;
  const std::pair<const char*, const char*> types[] = {
      {"[string | null]",
       R"({"type":"array","items":{"anyOf":[{"type":"string"},{"type":"null"}]}})"},
      {R"("a" | "b")", R"({"enum":["a","b"]})"},
      {R"("a" | false | any)", R"({"anyOf":[{"const":"a"},{"const":false},{}]})"},
      {"{a: Usage, b?: object}",
       R"({"type":"object","properties":{"a":{"$ref":"#/components/schemas/Usage"},)"
       R"("b":{"type":"object"}},"required":["a"]})"},
      {"{...TextUsage, x?: number}",
       R"({"type":"object","properties":{"prompt_tokens":{"type":"integer"},)"
       R"("total_tokens":{"type":"integer"},"x":{"type":"number"}},)"
       R"("required":["prompt_tokens","total_tokens"]})"},
      {"{*: boolean}", R"({"type":"object","additionalProperties":{"type":"boolean"}})"},
      {"{a?: any, ...}", R"({"type":"object","properties":{"a":{}},"additionalProperties":true})"}};
  for (const auto& [type, schema] : types) {
    EXPECT_EQ(json::parse(cairn::json::to_text(schema_of(type))), json::parse(schema)) << type;
  }
}

// What the other tests of this folder check all replies with.
TEST(Fields, RepliesThatAreNotInTheDocumentAreSeen) {
  using nlohmann::json;
  const SchemaCheck schemas;
  const auto is_wrong = [&](const json& value, const char* type) {
    return !schemas.violation_of_type(value, type).empty();
  };
  const json usage = {{"prompt_tokens", 1}, {"total_tokens", 2}};
  EXPECT_EQ(schemas.violation_of_type(usage, "TextUsage"), "");
  json wrong = usage;
  wrong["total_tokens"] = 2.5;
  EXPECT_TRUE(is_wrong(wrong, "TextUsage"));
  wrong.erase("total_tokens");
  EXPECT_TRUE(is_wrong(wrong, "TextUsage"));
  wrong = usage;
  wrong["more"] = 1;
  EXPECT_TRUE(is_wrong(wrong, "TextUsage"));
  EXPECT_TRUE(is_wrong("stopped", "Finish"));
  EXPECT_TRUE(is_wrong({{"type", "text"}, {"text", 1}}, "MessageBlock"));
  EXPECT_FALSE(is_wrong({{"type", "text"}, {"text", "x"}}, "MessageBlock"));
  EXPECT_TRUE(is_wrong(json::array(), "Error"));
}

// No GET changes anything.
TEST(Fields, RoutesThatChangeAreNoGets) {
  for (const RouteLine& line : all_routes()) {
    EXPECT_TRUE(line.method != http::Method::get || line.endpoint == 0) << line.path;
  }
}

TEST(Fields, RefusalsHaveTheFormThatClientsKnow) {
  Refusal refusal = refuse_field("a[2].b", "expected {}, found {}", 1, 2);
  refusal.numbers = {{"n_ctx", 7}};
  const nlohmann::json json = nlohmann::json::parse(refusal_json(refusal));
  EXPECT_EQ(json,
            nlohmann::json::parse(
                R"({"error":{"message":"a[2].b: expected 1, found 2",)"
                R"("type":"invalid_request_error","param":"a[2].b","code":null,"n_ctx":7}})"));
  const std::pair<ErrorCode, int> statuses[] = {
      {ErrorCode::invalid_argument, 400}, {ErrorCode::invalid_data, 400},
      {ErrorCode::not_found, 404},        {ErrorCode::unsupported, 501},
      {ErrorCode::no_room, 400},          {ErrorCode::context_full, 400},
      {ErrorCode::memory_full, 503},      {ErrorCode::io, 500},
      {ErrorCode::cancelled, 500}};
  for (const auto& [code, status] : statuses) {
    EXPECT_EQ(refusal_of(fail(code, "x")).status, status);
  }
  // What fails again is not tried again.
  const auto is_final = [](int status) {
    return !refusal_head({.status = status}).headers.empty();
  };
  EXPECT_TRUE(is_final(500) && is_final(501));
  EXPECT_FALSE(is_final(400) || is_final(429) || is_final(503));
  const Refusal large{.status = 429, .message = std::string(10000, 'x')};
  for (const ErrorForm form : {ErrorForm::openai, ErrorForm::ollama, ErrorForm::anthropic}) {
    EXPECT_LE(refusal_json(large, form).size(), 2048u);
  }
  EXPECT_EQ(refusal_json({.message = "why"}, ErrorForm::ollama), R"({"error":"why"})");
  EXPECT_EQ(refusal_json({.status = 429, .message = "why"}, ErrorForm::anthropic),
            R"({"type":"error","error":{"type":"rate_limit_error","message":"why"}})");
}

}  // namespace
}  // namespace cairn::serve::fields_test
