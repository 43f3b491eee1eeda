// Several models behind one server: found in a folder, loaded on demand, unloaded for others. Over
// bare sockets. Covers src/serve/models/ and ollama/keep_alive.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/sha256.h"
#include "serve/models/loading_reply.h"
#include "session/turns.h"
#include "tests/models/embedding_case.h"
#include "tests/serve/many_models.h"

namespace cairn::serve::models_test {
namespace {

using nlohmann::json;

constexpr char kChatPath[] = "/v1/chat/completions";

std::string sha256_of(const std::string& path) {
  return hex_of(Sha256().add(test::contents_of(path)).finish());
}

// What is in memory, and how it stands with the others.
std::map<std::string, std::string> states(Serving& serving) {
  std::map<std::string, std::string> states;
  const json list = json::parse(serving.get("/v1/models").body);
  for (const json& model : list["data"]) states[model["id"]] = model["state"];
  return states;
}

bool is_loaded(Serving& serving, const std::string& name) {
  return states(serving)[name] == "loaded";
}

// How many requests wait for models, and how many are answered.
bool has_counts(Serving& serving, int waiting, int answering) {
  const std::string text = serving.get("/metrics").body;
  const std::string waits = "cairn_requests_waiting_for_models " + std::to_string(waiting) + "\n";
  const std::string answers = "cairn_requests_answering " + std::to_string(answering) + "\n";
  return text.find(waits) != std::string::npos && text.find(answers) != std::string::npos;
}

std::string text_of(const json& reply) {
  return reply["choices"][0]["message"]["content"];
}

json stream_of(const std::string& model) {
  json body = greedy(model);
  body["stream"] = true;
  return body;
}

// A test may look away for a while without being taken for a reader who has gone.
constexpr http::Limits kPatient{.write_seconds = 600};

// An answer that does not end by itself. REQUIRES: kPatient.
BareClient begin_endless(Serving& serving, const std::string& model) {
  BareClient asking = serving.client();
  json body = stream_of(model);
  body["ignore_eos"] = true;
  EXPECT_TRUE(asking.send(post_request(kChatPath, body.dump())));
  EXPECT_TRUE(asking.wait_for("\"delta\""));
  return asking;
}

TEST(Models, AreFoundInAFolder) {
  const ModelFolder folder({"b", "a", "sub/c", "sub/deeper/d", ".hidden"});
  test::write_to(folder.file("notes.txt"), "no model");
  write_nano_with({}, folder.file("e-00001-of-00001.gguf"));
  gguf::Writer adapter;
  adapter.add("general.architecture", std::string_view("llama"));
  adapter.add("general.type", std::string_view("adapter"));
  ASSERT_TRUE(adapter.open_file(folder.file("lora.gguf")).value().finish());
  const std::vector<ModelSource> models = models_in(folder.path()).value();
  std::vector<std::string> names;
  for (const ModelSource& model : models) names.push_back(model.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "e", "sub/c"}));
  EXPECT_GT(models[0].card.context_tokens, 0);
  EXPECT_EQ(models[0].card.architecture, models[3].card.architecture);
  EXPECT_TRUE(models[0].card.makes_text);
  const test::ScratchFolder empty;
  const auto none = models_in(empty.path().string());
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("expected GGUF files"), std::string::npos);
}

TEST(Models, PartsOfASplitModelAreOne) {
  const ModelSource split = source_of("split", "/models/x-00001-of-00003.gguf");
  EXPECT_EQ(split.parts, (std::vector<std::string>{"/models/x-00001-of-00003.gguf",
                                                   "/models/x-00002-of-00003.gguf",
                                                   "/models/x-00003-of-00003.gguf"}));
  std::vector<ModelSource> models = {split, source_of("other", "/models/other.gguf")};
  const std::string hex(64, 'a');
  EXPECT_FALSE(expect_digest("split=" + hex, models)) << "of which part?";
  EXPECT_TRUE(expect_digest("x-00002-of-00003.gguf=" + hex, models));
  EXPECT_EQ(models[0].digests, (std::vector<std::string>{"", hex, ""}));
}

TEST(Models, NamesAndDigestsAreCheckedAtTheStart) {
  const ModelFolder folder({"a", "b"});
  std::vector<ModelSource> models = models_in(folder.path()).value();
  const std::string hex(64, 'A');
  for (const std::string& wrong :
       {hex, "c=" + hex, std::string("a=12"), "a=" + std::string(64, 'g'), "a=" + hex + "0"}) {
    EXPECT_FALSE(expect_digest(wrong, models)) << wrong;
  }
  EXPECT_TRUE(expect_digest("a=" + hex, models));
  EXPECT_EQ(models[0].digests.front(), std::string(64, 'a'));
  EXPECT_TRUE(add_alias("small=a", models));
  EXPECT_TRUE(add_alias("smaller=small", models));
  EXPECT_TRUE(add_alias("third=" + folder.file("b.gguf"), models));
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[2].name, "third");
  EXPECT_EQ(models[0].aliases, (std::vector<std::string>{"small", "smaller"}));
  for (const char* wrong : {"x", "=a", "x=", "b=a", "small=b", "x=nothing", "x=/"}) {
    EXPECT_FALSE(add_alias(wrong, models)) << wrong;
  }
}

TEST(Models, AreLoadedWhenTheyAreAskedFor) {
  const ModelFolder folder({"a", "b"});
  Serving serving(models_of(folder.path()));
  EXPECT_EQ(states(serving),
            (std::map<std::string, std::string>{{"a", "not-loaded"}, {"b", "not-loaded"}}));
  for (const char* name : {"a", "b", "a", "b:latest"}) {
    const json reply = serving.post_json(kChatPath, greedy(name));
    EXPECT_EQ(text_of(reply), kParis);
    EXPECT_EQ(reply["model"], std::string(name).substr(0, 1));
  }
  EXPECT_TRUE(is_loaded(serving, "a"));
  EXPECT_TRUE(is_loaded(serving, "b"));
  EXPECT_EQ(json::parse(serving.get("/api/ps").body)["models"].size(), 2u);
  // The second question to each found what the first one had left.
  EXPECT_GT(serving.post_json(kChatPath, greedy("a"))["memory"]["reused"], 0);
}

TEST(Models, WithoutANameTheLastOneIsMeant) {
  const ModelFolder folder({"a", "b"});
  Serving serving(models_of(folder.path()));
  json body = greedy("b");
  body.erase("model");
  EXPECT_EQ(serving.post_json(kChatPath, body)["model"], "a") << "the first one";
  EXPECT_EQ(serving.post_json(kChatPath, greedy("b"))["model"], "b");
  EXPECT_EQ(serving.post_json(kChatPath, body)["model"], "b");
  EXPECT_GT(serving.post_json("/tokenize", {{"content", "x"}, {"model", "a"}})["count"], 0);
  EXPECT_EQ(serving.post_json(kChatPath, body)["model"], "a");
}

// A session's model answers in it, whichever was asked last.
TEST(Models, SessionsGoOnWithTheirs) {
  const ModelFolder folder({"a", "b"});
  Serving serving(models_of(folder.path()));
  const std::string path = "/v1/sessions/mine/";
  EXPECT_EQ(serving.post_json("/v1/sessions", {{"id", "mine"}, {"model", "b"}})["model"], "b");
  EXPECT_EQ(serving.post_json(kChatPath, greedy("a"))["model"], "a");
  json asked = greedy("a");
  asked.erase("model");
  const json reply = serving.post_json(path + "generate", asked);
  EXPECT_EQ(reply["model"], "b");
  EXPECT_EQ(text_of(reply), kParis);
  EXPECT_EQ(serving.post_json(kChatPath, greedy("a"))["model"], "a");
  EXPECT_EQ(serving.post_json(path + "rewind", {{"keep", 2}})["model"], "b");
  EXPECT_EQ(serving.post("/v1/sessions/none/generate", asked.dump()).status, 404);
  EXPECT_EQ(serving.get("/v1/sessions/mine").status, 200);
}

// A proxy reads in the head what only this server has, also where the model was loaded for it.
TEST(Models, WhatIsKeptIsToldBehindALoad) {
  const ModelFolder folder({"a", "b"});
  Serving serving(models_of(folder.path()));
  const BareReply answer =
      serving.post("/v1/responses", R"({"model":"a","input":"Hello","max_output_tokens":2})");
  const std::string id = json::parse(answer.body)["id"];
  EXPECT_TRUE(answer.has("x-cairn-kept: " + id + "\r\n")) << answer.head;
  const BareReply session = serving.post("/v1/sessions", R"({"id":"mine","model":"b"})");
  EXPECT_TRUE(session.has("x-cairn-kept: mine\r\n")) << session.head;
  EXPECT_EQ(states(serving)["b"], "loaded");
}

// The folder of sessions is made when the server starts, the store in the same folder when the
// first model is loaded; nobody has made either before.
TEST(Models, SessionsAndTheStoreShareANewFolder) {
  const ModelFolder folder({"a", "b"});
  const test::ScratchFolder scratch;
  LoadTerms terms = small_terms();
  terms.engine.cache_dir = scratch.file("store");
  AppOptions options;
  options.session_folder = terms.engine.cache_dir + "/sessions";
  {
    Serving serving(models_of(folder.path(), {}, terms), options);
    EXPECT_EQ(serving.post_json("/v1/sessions", {{"id", "s"}, {"model", "b"}})["model"], "b");
    for (const char* text :
         {"My name is Ada.",
          "Remember: the code is 4711, the cat is called Tom, and blue is 17."}) {
      json asked = greedy("b", text);
      asked.erase("model");
      serving.post_json("/v1/sessions/s/generate", asked);
    }
    // What is still to be written when the folder has not been read is not written.
    while (json::parse(serving.get("/v1/memory?model=b").body)["store"]["entries"] == 0) {
      std::this_thread::yield();
    }
  }
  Serving serving(models_of(folder.path(), {}, terms), options);
  json asked = greedy("b", "What is my name?");
  asked.erase("model");
  const json reply = serving.post_json("/v1/sessions/s/generate", asked);
  EXPECT_EQ(text_of(reply), "Your name is Ada.");
  EXPECT_EQ(reply["memory"]["source"], "disk") << reply["memory"];
}

TEST(Models, UnknownOnesAreRefusedByName) {
  const ModelFolder folder({"a", "b"});
  Serving serving(models_of(folder.path()));
  const BareReply openai = serving.post(kChatPath, greedy("c").dump());
  EXPECT_EQ(openai.status, 404);
  const json error = json::parse(openai.body)["error"];
  EXPECT_EQ(error["code"], "model_not_found");
  EXPECT_EQ(error["param"], "model");
  EXPECT_EQ(error["message"], "model: expected one of a, b, found \"c\"");
  const BareReply ollama = serving.post("/api/chat", greedy("c").dump());
  EXPECT_EQ(ollama.status, 404);
  EXPECT_EQ(json::parse(ollama.body)["error"], error["message"]);
  json asked = greedy("c");
  asked["max_tokens"] = 1;
  const BareReply anthropic = serving.post("/v1/messages", asked.dump());
  EXPECT_EQ(anthropic.status, 404);
  EXPECT_EQ(json::parse(anthropic.body)["error"]["type"], "not_found_error");
  EXPECT_EQ(serving.post("/api/show", R"({"model":"c"})").status, 404);
  EXPECT_EQ(serving.get("/v1/models/c").status, 404);
  EXPECT_EQ(states(serving)["a"], "not-loaded");
}

TEST(Models, ListsTellWhatFilesSay) {
  const ModelFolder folder({"a", "b"});
  std::vector<ModelSource> sources = models_in(folder.path()).value();
  ASSERT_TRUE(add_alias("gpt-4=b", sources));
  Serving serving(ModelRegistry::start(std::move(sources), small_terms(), {}).value());
  EXPECT_EQ(serving.post_json(kChatPath, greedy("gpt-4"))["model"], "b");
  const json one = json::parse(serving.get("/v1/models/gpt-4").body);
  EXPECT_EQ(one["id"], "b");
  EXPECT_EQ(one["state"], "loaded");
  const json other = json::parse(serving.get("/v1/models/a").body);
  EXPECT_EQ(other["state"], "not-loaded");
  for (const char* name : {"n_vocab", "n_embd", "n_params", "architecture"}) {
    EXPECT_EQ(other["meta"][name], one["meta"][name]) << name;
  }
  const json tags = json::parse(serving.get("/api/tags").body)["models"];
  ASSERT_EQ(tags.size(), 2u);
  EXPECT_EQ(tags[0]["name"], "a:latest");
  EXPECT_EQ(tags[0]["digest"], tags[1]["digest"]) << "copies of one file";
  EXPECT_EQ(tags[0]["digest"].get<std::string>().size(), 64u);
  EXPECT_EQ(tags[0]["size"], std::filesystem::file_size(folder.file("a.gguf")));
  const json studio = json::parse(serving.get("/api/v0/models").body)["data"];
  EXPECT_EQ(studio[0]["state"], "not-loaded");
  EXPECT_FALSE(studio[0].contains("loaded_context_length"));
  EXPECT_EQ(studio[1]["state"], "loaded");
  EXPECT_EQ(studio[0]["capabilities"], studio[1]["capabilities"]);
  json shown = serving.post_json("/api/show", {{"model", "a"}});
  json loaded = serving.post_json("/api/show", {{"name", "b:latest"}});
  for (const char* name : {"template", "model_info", "capabilities", "details", "parameters"}) {
    EXPECT_EQ(shown[name], loaded[name]) << name;
  }
  EXPECT_EQ(states(serving)["a"], "not-loaded") << "to be shown is not to be loaded";
}

TEST(Models, WhatIsOnlyLookedAtIsNotLoaded) {
  const ModelFolder folder({"a", "b"});
  Serving serving(models_of(folder.path()));
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("a"))), kParis);
  for (const char* path : {"/v1/memory", "/props", "/slots", "/lora-adapters"}) {
    EXPECT_EQ(serving.get(path).status, 200) << path;
    EXPECT_EQ(serving.get(std::string(path) + "?model=a").status, 200) << path;
    const BareReply refused = serving.get(std::string(path) + "?model=%62");
    EXPECT_EQ(refused.status, 404) << path;
    EXPECT_EQ(json::parse(refused.body)["error"]["code"], "model_not_loaded");
  }
  EXPECT_EQ(json::parse(serving.get("/props?model=a").body)["model_alias"], "a");
  EXPECT_EQ(serving.post("/v1/memory/plan", greedy("b").dump()).status, 404);
  EXPECT_GT(serving.post_json("/v1/memory/plan", greedy("a"))["reused"], 0);
  EXPECT_EQ(states(serving)["b"], "not-loaded");
}

TEST(Models, VectorsAndTextsStandSideBySide) {
  const ModelFolder folder({"text"});
  std::filesystem::copy_file(test::embedding_path("bert", ".gguf"), folder.file("vectors.gguf"));
  Serving serving(models_of(folder.path()));
  const json studio = json::parse(serving.get("/api/v0/models").body)["data"];
  EXPECT_EQ(studio[0]["type"], "llm");
  EXPECT_EQ(studio[1]["type"], "embeddings");
  const json reply =
      serving.post_json("/v1/embeddings", {{"model", "vectors"}, {"input", {{1, 2, 3}}}});
  EXPECT_EQ(reply["model"], "vectors");
  EXPECT_FALSE(reply["data"][0]["embedding"].empty());
  EXPECT_EQ(serving.post("/v1/embeddings", R"({"model":"text","input":"x"})").status, 501);
}

// Attack 40: eight clients ask for a model at once; one load answers all of them.
TEST(Models, RacingRequestsLoadOnce) {
  const ModelFolder folder({"a", "b"});
  Door door;
  door.shut();
  Serving serving(models_of(folder.path(), {}, small_terms(&door)));
  std::vector<std::thread> clients;
  std::vector<std::string> texts(8);
  for (std::string& text : texts) {
    clients.emplace_back([&] { text = text_of(serving.post_json(kChatPath, greedy("a"))); });
  }
  EXPECT_TRUE(becomes_true([&] { return door.count() == 1; }));
  EXPECT_EQ(states(serving)["a"], "loading");
  EXPECT_EQ(serving.get("/health").status, 200) << "nobody else waits";
  door.open();
  for (std::thread& client : clients) client.join();
  for (const std::string& text : texts) EXPECT_EQ(text, kParis);
  EXPECT_EQ(door.count(), 1);
}

TEST(Models, StreamsAreToldTheProgress) {
  const ModelFolder folder({"a", "b"});
  std::vector<ModelSource> sources = models_in(folder.path()).value();
  ASSERT_TRUE(expect_digest("a=" + sha256_of(folder.file("a.gguf")), sources));
  Door door;
  door.shut();
  Serving serving(ModelRegistry::start(std::move(sources), small_terms(&door), {}).value());
  BareClient asking = serving.client(), lines = serving.client();
  ASSERT_TRUE(asking.send(post_request(kChatPath, stream_of("a").dump())));
  ASSERT_TRUE(asking.wait_for(": checking 100 %\n\n")) << "before anything of the file is read";
  // Lines of JSON have no comments.
  ASSERT_TRUE(lines.send(post_request("/api/chat", greedy("a").dump())));
  EXPECT_TRUE(becomes_true([&] { return has_counts(serving, 2, 0); }));
  door.open();
  const BareReply reply = asking.read_reply();
  EXPECT_TRUE(reply.has("content-type: text/event-stream\r\n"));
  EXPECT_TRUE(reply.is_whole);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
  EXPECT_NE(reply.body.find("Paris"), std::string::npos);
  const BareReply ollama = lines.read_reply();
  EXPECT_TRUE(ollama.body.starts_with("{")) << ollama.body;
  const size_t last = ollama.body.rfind('\n', ollama.body.size() - 2);
  const json end = json::parse(ollama.body.substr(last == std::string::npos ? 0 : last + 1));
  EXPECT_GT(end["load_duration"].get<int64_t>(), 0);
  EXPECT_GE(end["total_duration"].get<int64_t>(), end["load_duration"].get<int64_t>());
}

// One load at a time: who waits for the second model is told so, and gets its own answer.
TEST(Models, OneLoadAfterTheOther) {
  const ModelFolder folder({"a", "b"});
  std::vector<ModelSource> sources = models_in(folder.path()).value();
  ASSERT_TRUE(expect_digest("b=" + sha256_of(folder.file("b.gguf")), sources));
  Door door;
  door.shut();
  Serving serving(ModelRegistry::start(std::move(sources), small_terms(&door), {}).value());
  BareClient first = serving.client(), second = serving.client();
  ASSERT_TRUE(first.send(post_request(kChatPath, stream_of("a").dump())));
  EXPECT_TRUE(becomes_true([&] { return door.count() == 1; }));
  ASSERT_TRUE(second.send(post_request(kChatPath, stream_of("b").dump())));
  EXPECT_EQ(states(serving)["b"], "not-loaded");
  door.open();
  for (BareClient* client : {&first, &second}) {
    const BareReply reply = client->read_reply();
    EXPECT_NE(reply.body.find("Paris"), std::string::npos) << reply.body;
  }
  EXPECT_EQ(door.count(), 2);
}

// A load is given up when nobody waits any more; where somebody has come since, it is made after
// all.
TEST(Models, ALoadThatWasGivenUpIsMadeAgain) {
  const ModelFolder folder({"a", "b"});
  std::atomic<int> count = 0;
  LoadTerms terms = small_terms();
  terms.open = [&](const std::string& path) -> Result<gguf::File> {
    if (count++ == 0) return fail(ErrorCode::cancelled, "{}: nobody wants it any more", path);
    return gguf::File::open(path);
  };
  Serving serving(models_of(folder.path(), {}, std::move(terms)));
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("a"))), kParis);
  EXPECT_EQ(count, 2);
}

// The bodies of those who wait have a limit in all, which those who have gone leave to others.
TEST(Models, BodiesThatWaitAreCounted) {
  const ModelFolder folder({"a", "b"});
  Door door;
  door.shut();
  AppOptions options;
  options.waiting_bytes_max = 3000;
  Serving serving(models_of(folder.path(), {}, small_terms(&door)), std::move(options));
  json asked = greedy("a", std::string(2000, 'x'));
  asked["max_tokens"] = 4;
  const std::string body = asked.dump();
  {
    BareClient first = serving.client();
    ASSERT_TRUE(first.send(post_request(kChatPath, body)));
    EXPECT_TRUE(becomes_true([&] { return has_counts(serving, 1, 0); }));
    const BareReply refused = serving.post(kChatPath, body);
    EXPECT_EQ(refused.status, 429);
    EXPECT_NE(refused.body.find("wait for models"), std::string::npos) << refused.body;
  }
  EXPECT_TRUE(becomes_true([&] { return has_counts(serving, 0, 0); }));
  BareClient next = serving.client();
  ASSERT_TRUE(next.send(post_request(kChatPath, body)));
  EXPECT_TRUE(becomes_true([&] { return has_counts(serving, 1, 0); }));
  door.open();
  EXPECT_EQ(next.read_reply().status, 200);
}

// What has become of a session while its model was loaded.
TEST(Models, SessionsChangeWhileTheirModelIsLoaded) {
  const ModelFolder folder({"a", "b"});
  Door door;
  Serving serving(models_of(folder.path(), {}, small_terms(&door)), {}, kPatient);
  for (const char* id : {"busy", "gone"}) {
    serving.post_json("/v1/sessions", {{"id", id}, {"model", "b"}});
  }
  EXPECT_EQ(serving.post("/api/generate", R"({"model":"b","keep_alive":0})").status, 200);
  ASSERT_TRUE(becomes_true([&] { return !is_loaded(serving, "b"); }));
  door.shut();
  json body = question(kFrance);
  body.update({{"stream", true}, {"ignore_eos", true}});
  const auto generate = [&](const std::string& id) {
    BareClient asking = serving.client();
    EXPECT_TRUE(asking.send(post_request("/v1/sessions/" + id + "/generate", body.dump())));
    return asking;
  };
  BareClient gone = generate("gone"), first = generate("busy");
  EXPECT_TRUE(becomes_true([&] { return has_counts(serving, 2, 0); }));
  BareClient second = generate("busy");
  EXPECT_TRUE(becomes_true([&] { return has_counts(serving, 3, 0); }));
  EXPECT_EQ(serving.send("DELETE /v1/sessions/gone HTTP/1.1\r\nHost: localhost\r\n\r\n").status,
            200);
  door.open();
  EXPECT_NE(gone.read_reply().body.find("session_not_found"), std::string::npos);
  EXPECT_TRUE(first.wait_for("\"delta\""));
  EXPECT_NE(second.read_reply().body.find("session_busy"), std::string::npos);
}

// Attack 40.
TEST(Models, WhoGoesAwayIsNotWaitedFor) {
  const ModelFolder folder({"a", "b"});
  Door door;
  door.shut();
  Serving serving(models_of(folder.path(), {}, small_terms(&door)));
  BareClient first = serving.client(), second = serving.client();
  ASSERT_TRUE(first.send(post_request(kChatPath, greedy("a").dump())));
  EXPECT_TRUE(becomes_true([&] { return door.count() == 1; }));
  ASSERT_TRUE(second.send(post_request(kChatPath, greedy("b").dump())));
  EXPECT_TRUE(becomes_true([&] { return has_counts(serving, 2, 0); }));
  second.close();
  first.close();
  EXPECT_TRUE(becomes_true([&] { return has_counts(serving, 0, 0); }));
  door.open();
  // What is begun is given up, and begun anew for whoever asks then.
  EXPECT_TRUE(becomes_true([&] { return states(serving)["a"] != "loading"; }));
  EXPECT_EQ(states(serving)["a"], "not-loaded");
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("a"))), kParis);
  EXPECT_EQ(door.count(), 2);
}

// What one model takes, as it is counted.
size_t counted_bytes(const ModelFolder& folder) {
  Serving serving(models_of(folder.path()));
  serving.post_json(kChatPath, greedy("a"));
  return json::parse(serving.get("/api/ps").body)["models"][0]["size"];
}

RegistryOptions budget_of(size_t bytes) {
  return {.budget = {.bytes = bytes, .limited_by = "--models-budget"}};
}

TEST(Models, TheLeastUsedMakesRoom) {
  const ModelFolder folder({"a", "b", "c"});
  const size_t one = counted_bytes(folder);
  Serving serving(models_of(folder.path(), budget_of(one * 5 / 2)), {}, kPatient);
  // It was used first, and is used still.
  BareClient asking = begin_endless(serving, "a");
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("b"))), kParis);
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("c"))), kParis);
  EXPECT_EQ(states(serving), (std::map<std::string, std::string>{
                                 {"a", "loaded"}, {"b", "not-loaded"}, {"c", "loaded"}}));
  asking.close();
  EXPECT_TRUE(becomes_true([&] { return has_counts(serving, 0, 0); }));
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("c"))), kParis);
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("b"))), kParis);
  EXPECT_FALSE(is_loaded(serving, "a")) << "now it was the one used longest ago";
}

// No model goes under an answer: who needs its room waits.
TEST(Models, RoomIsWaitedFor) {
  const ModelFolder folder({"a", "b"});
  const size_t one = counted_bytes(folder);
  Serving serving(models_of(folder.path(), budget_of(one * 3 / 2)), {}, kPatient);
  BareClient asking = begin_endless(serving, "a");
  BareClient waiting = serving.client();
  ASSERT_TRUE(waiting.send(post_request(kChatPath, greedy("b").dump())));
  EXPECT_TRUE(becomes_true([&] { return states(serving)["a"] == "unloading"; }));
  EXPECT_EQ(states(serving)["b"], "loading");
  asking.close();
  const json reply = json::parse(waiting.read_reply().body);
  EXPECT_EQ(text_of(reply), kParis);
  EXPECT_EQ(states(serving)["a"], "not-loaded");
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("a"))), kParis);
  EXPECT_EQ(states(serving)["b"], "not-loaded");
}

// Who waited for room has gone: the model that was to make it stays.
TEST(Models, RoomThatNobodyWantsIsNotMade) {
  const ModelFolder folder({"a", "b"});
  const size_t one = counted_bytes(folder);
  Serving serving(models_of(folder.path(), budget_of(one * 3 / 2)), {}, kPatient);
  BareClient asking = begin_endless(serving, "a");
  {
    BareClient waiting = serving.client();
    ASSERT_TRUE(waiting.send(post_request(kChatPath, greedy("b").dump())));
    EXPECT_TRUE(becomes_true([&] { return states(serving)["a"] == "unloading"; }));
  }
  EXPECT_TRUE(becomes_true([&] { return states(serving)["a"] == "loaded"; }));
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("a"))), kParis);
}

TEST(Models, OneThatNeverFitsIsRefusedWithBothValues) {
  const ModelFolder folder({"a", "b"});
  const size_t one = counted_bytes(folder);
  Serving serving(models_of(folder.path(), budget_of(one - 1)));
  const BareReply reply = serving.post(kChatPath, greedy("a").dump());
  EXPECT_EQ(reply.status, 503);
  EXPECT_TRUE(reply.has("x-should-retry: false\r\n"));
  const json error = json::parse(reply.body)["error"];
  EXPECT_EQ(error["code"], "model_too_large");
  const std::string message = error["message"];
  EXPECT_NE(message.find("needs " + std::to_string(one) + " bytes"), std::string::npos) << message;
  EXPECT_NE(message.find("found " + std::to_string(one - 1)), std::string::npos) << message;
  EXPECT_EQ(message.find(folder.path()), std::string::npos) << message;
  EXPECT_EQ(serving.post("/api/chat", greedy("a").dump()).status, 503);
  EXPECT_EQ(serving.get("/health").status, 200);
}

// What is not said conversations get a part of the budget, and whatever the weights leave of it.
TEST(Models, SharesOfTheBudget) {
  const ModelFolder folder({"a", "b"});
  LoadTerms terms = small_terms();
  terms.engine.memory_budget = 0;
  const size_t budget = size_t(256) << 20;
  Serving serving(models_of(folder.path(), budget_of(budget), std::move(terms)));
  serving.post_json(kChatPath, greedy("a"));
  serving.post_json(kChatPath, greedy("b"));
  EXPECT_TRUE(is_loaded(serving, "a")) << "there is room for two";
  const json memory = json::parse(serving.get("/v1/memory?model=a").body);
  EXPECT_EQ(memory["conversations"]["budget"], budget / 4);
}

TEST(Models, AFailedLoadLeavesTheOthers) {
  const ModelFolder folder({"good"});
  test::write_to(folder.file("bad.gguf"), "GGUF and nothing that belongs there");
  Serving serving(models_of(folder.path()));
  for (int time = 0; time < 2; ++time) {
    const BareReply reply = serving.post(kChatPath, greedy("bad").dump());
    EXPECT_EQ(reply.status, 500);
    EXPECT_TRUE(reply.has("x-should-retry: false\r\n"));
    const json error = json::parse(reply.body)["error"];
    EXPECT_EQ(error["code"], "model_load_failed");
    EXPECT_TRUE(error["message"].get<std::string>().starts_with("model bad: bad.gguf: ")) << error;
  }
  const json ollama = json::parse(serving.post("/api/chat", greedy("bad").dump()).body);
  EXPECT_TRUE(ollama["error"].get<std::string>().starts_with("model bad: ")) << ollama;
  EXPECT_EQ(serving.post("/api/show", R"({"model":"bad"})").status, 500);
  EXPECT_EQ(json::parse(serving.get("/api/v0/models").body)["data"].size(), 2u);
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("good"))), kParis);
  // Another file in its place is tried again.
  folder.add("bad");
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("bad"))), kParis);
}

TEST(Models, AWrongDigestIsRefusedBeforeTheFileIsRead) {
  const ModelFolder folder({"a", "b"});
  const std::string right = sha256_of(folder.file("a.gguf"));
  std::vector<ModelSource> sources = models_in(folder.path()).value();
  const std::string wrong(64, '0');
  ASSERT_TRUE(expect_digest("a.gguf=" + wrong, sources));
  ASSERT_TRUE(expect_digest("b=" + right, sources));
  Door door;
  Serving serving(ModelRegistry::start(std::move(sources), small_terms(&door), {}).value());
  const BareReply reply = serving.post(kChatPath, greedy("a").dump());
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(json::parse(reply.body)["error"]["message"],
            "model a: a.gguf: expected SHA-256 " + wrong + ", found " + right);
  EXPECT_EQ(door.count(), 0);
  EXPECT_EQ(serving.post("/api/show", R"({"model":"a"})").status, 404) << "nor is it shown";
  // A stream that was told of the check is told of its end as an event.
  BareClient asking = serving.client();
  folder.add("a");
  ASSERT_TRUE(asking.send(post_request(kChatPath, stream_of("a").dump())));
  const BareReply streamed = asking.read_reply();
  EXPECT_NE(streamed.body.find(right), std::string::npos);
  EXPECT_TRUE(streamed.is_whole);
  EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("b"))), kParis);
  EXPECT_EQ(states(serving)["a"], "not-loaded");
}

// Attack 40: Ollama's keep_alive: what is said with a request holds until the next one.
TEST(Models, KeepAlive) {
  const ModelFolder folder({"a", "b"});
  Serving serving(models_of(folder.path()));
  const auto ask = [&](const char* path, const json& keep, const json& more) {
    json body = {{"model", "a"}, {"stream", false}, {"keep_alive", keep}};
    body.update(more);
    return serving.post_json(path, body);
  };
  const auto running = [&] { return json::parse(serving.get("/api/ps").body)["models"]; };
  // Load, and unload, by empty questions.
  EXPECT_EQ(ask("/api/generate", "5m", {{"prompt", ""}})["done_reason"], "load");
  ASSERT_EQ(running().size(), 1u);
  EXPECT_LT(running()[0]["expires_at"].get<std::string>(), "2200");
  EXPECT_EQ(ask("/api/chat", -1, json::object())["done_reason"], "load");
  EXPECT_EQ(running()[0]["expires_at"], "2200-01-01T00:00:00Z");
  EXPECT_EQ(ask("/api/generate", 0, {{"prompt", ""}})["done_reason"], "unload");
  EXPECT_TRUE(becomes_true([&] { return running().empty(); }));
  EXPECT_EQ(ask("/api/generate", 0, json::object())["done_reason"], "unload");
  EXPECT_TRUE(running().empty()) << "nothing is loaded to be unloaded";
  // Behind an answer.
  EXPECT_EQ(ask("/api/chat", "0s", question(kFrance))["done_reason"], "stop");
  EXPECT_TRUE(becomes_true([&] { return running().empty(); }));
  EXPECT_EQ(ask("/api/chat", "1ms", question(kFrance))["done_reason"], "stop");
  EXPECT_TRUE(becomes_true([&] { return running().empty(); }));
  for (const json& wrong : {json("5 minutes"), json("m"), json(true), json("1h30"), json("-")}) {
    json body = greedy("a");
    body["keep_alive"] = wrong;
    EXPECT_EQ(serving.post("/api/chat", body.dump()).status, 400) << wrong;
  }
}

TEST(Models, IdleOnesGoByThemselves) {
  const ModelFolder folder({"a", "b"});
  Serving serving(models_of(folder.path(), {.idle_max = std::chrono::milliseconds(20)}), {},
                  kPatient);
  {
    BareClient asking = begin_endless(serving, "a");
    EXPECT_EQ(text_of(serving.post_json(kChatPath, greedy("b"))), kParis);
    EXPECT_TRUE(becomes_true([&] { return !is_loaded(serving, "b"); }));
    EXPECT_TRUE(is_loaded(serving, "a")) << "it is not idle";
  }
  EXPECT_TRUE(becomes_true([&] { return !is_loaded(serving, "a"); }));
}

// Whoever watches a model's memory keeps it from nothing, and sees the end.
TEST(Models, WatchingIsNotUsing) {
  const ModelFolder folder({"a", "b"});
  Serving serving(models_of(folder.path()));
  serving.post_json(kChatPath, greedy("a"));
  BareClient watching = serving.client();
  ASSERT_TRUE(watching.send(get_request("/v1/memory/events?model=a")));
  ASSERT_TRUE(watching.wait_for("data: "));
  json body = greedy("a");
  body["keep_alive"] = 0;
  EXPECT_EQ(serving.post("/api/chat", body.dump()).status, 200);
  const BareReply reply = watching.read_reply();
  EXPECT_TRUE(reply.is_whole);
  EXPECT_TRUE(becomes_true([&] { return !is_loaded(serving, "a"); }));
}

// What a model had read is found again when it is loaded the next time.
TEST(Models, TheStoreOutlivesTheModel) {
  const ModelFolder folder({"a", "b"});
  const test::ScratchFolder cache;
  LoadTerms terms = small_terms();
  terms.engine.cache_dir = cache.file("store");
  Serving serving(models_of(folder.path(), {}, std::move(terms)));
  std::string text = "Please remember these numbers:";
  for (int number = 0; number < 60; ++number) text += " " + std::to_string(number * 7 % 100);
  json body = greedy("a", text);
  body["max_tokens"] = 8;
  EXPECT_EQ(serving.post_json(kChatPath, body)["memory"]["source"], "none");
  EXPECT_EQ(serving.post("/api/generate", R"({"model":"a","keep_alive":0})").status, 200);
  ASSERT_TRUE(becomes_true([&] { return !is_loaded(serving, "a"); }));
  const json memory = serving.post_json(kChatPath, body)["memory"];
  EXPECT_EQ(memory["source"], "disk");
  EXPECT_GT(memory["reused"].get<int>(), 60);
}

// Attack 46.
TEST(Models, AreLabelsOfMetrics) {
  const ModelFolder folder({"a", "b \"x\""});
  Serving serving(models_of(folder.path()));
  serving.post_json(kChatPath, greedy("a"));
  serving.post_json(kChatPath, greedy("b \"x\""));
  EXPECT_TRUE(becomes_true([&] {
    const std::string text = serving.get("/metrics").body;
    const auto has = [&](std::string_view line) { return text.find(line) != std::string::npos; };
    return has("cairn_answers_total{model=\"a\",finished_reason=\"stop\"} 1\n") &&
           has("cairn_e2e_request_latency_seconds_count{model=\"b \\\"x\\\"\"} 1\n") &&
           has("cairn_memory_bytes{model=\"a\",kind=\"pages\"} ");
  }));
}

// Engines of one process make their steps one by one, and who waits is not passed over.
TEST(Models, EnginesTakeTurns) {
  session::Turns turns;
  int inside = 0, wrong = 0;
  std::vector<int> counts(3);
  std::vector<std::thread> engines;
  for (int& count : counts) {
    engines.emplace_back([&] {
      for (; count < 1000; ++count) {
        const std::lock_guard turn(turns);
        wrong += ++inside != 1;
        --inside;
      }
    });
  }
  for (std::thread& engine : engines) engine.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(counts, (std::vector<int>{1000, 1000, 1000}));
}

// A reply that waits: notes, then what was made, and refusals in the form that is possible still.
class Waits : public ::testing::Test {
 protected:
  std::unique_ptr<LoadingReply> begin(bool is_stream, ErrorForm form = ErrorForm::openai) {
    pending_ = std::make_shared<PendingModel>([form](const Checked<ModelHandle>& model) {
      return refusal_reply(model ? Refusal{.message = "made"} : model.error(), form);
    });
    auto reply = std::make_unique<LoadingReply>(pending_, is_stream, form);
    reply->listen([this] { ++wakes_; });
    return reply;
  }
  std::shared_ptr<PendingModel> pending_;
  int wakes_ = 0;
};

TEST_F(Waits, NotesAreComments) {
  const auto reply = begin(true);
  std::string out;
  EXPECT_EQ(reply->read(out), http::Reply::State::waiting);
  EXPECT_EQ(reply->head(), nullptr);
  EXPECT_EQ(reply->idle_text(), "");
  pending_->add_progress("loading 41 %");
  pending_->add_progress("loading 42 %");
  EXPECT_EQ(wakes_, 2);
  EXPECT_EQ(reply->read(out), http::Reply::State::waiting);
  EXPECT_EQ(out, ": loading 42 %\n\n");
  EXPECT_EQ(reply->head()->status, 200);
  EXPECT_EQ(reply->idle_text(), ": waiting\n\n");
  out.clear();
  pending_->end(Refusal{.status = 500, .type = "server_error", .message = "wrong"});
  EXPECT_EQ(wakes_, 3);
  EXPECT_EQ(reply->read(out), http::Reply::State::ended);
  EXPECT_EQ(out,
            "data: {\"error\":{\"message\":\"wrong\",\"type\":\"server_error\",\"param\":null,"
            "\"code\":null}}\n\n");
}

TEST_F(Waits, OtherFormsOfErrors) {
  const auto reply = begin(true, ErrorForm::anthropic);
  std::string out;
  pending_->add_progress("loading 1 %");
  reply->read(out);
  out.clear();
  pending_->end(Refusal{.status = 503, .message = "no"});
  EXPECT_EQ(reply->read(out), http::Reply::State::ended);
  EXPECT_TRUE(out.starts_with("event: error\ndata: {\"type\":\"error\"")) << out;
}

TEST_F(Waits, WholeRepliesAreToldNothing) {
  const auto reply = begin(false);
  std::string out;
  pending_->add_progress("loading 42 %");
  EXPECT_EQ(reply->read(out), http::Reply::State::waiting);
  EXPECT_EQ(out, "");
  pending_->end(ModelHandle());
  EXPECT_EQ(reply->read(out), http::Reply::State::ended);
  EXPECT_EQ(reply->head()->status, 400);
}

TEST_F(Waits, NothingIsMadeForWhoHasGone) {
  begin(true).reset();
  pending_->end(ModelHandle());
  EXPECT_EQ(pending_->take().reply, nullptr);
  EXPECT_EQ(wakes_, 0);
}

}  // namespace
}  // namespace cairn::serve::models_test
