// Presets from outside: what `cairn run NAME` and `cairn serve NAME` do with the file of that name,
// and what is said where it is wrong; all listed models served.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/serve/server_program.h"

namespace cairn::cli::preset_values_test {
namespace {

using nlohmann::json;

const std::string kNano = CAIRN_SOURCE "/assets/nano.gguf";

class PresetsTest : public testing::Test {
 protected:
  void write_preset(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(models_.path() / "presets");
    write_to((models_.path() / "presets" / (name + ".toml")).string(), text);
  }
  Environment environment() const {
    Environment all = {{"CAIRN_MODELS", models_.path().string()}, {"HOME", models_.file("home")}};
    for (const char* name : {"XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE",
                             "OLLAMA_MODELS", "CAIRN_TEMP"}) {
      all.emplace_back(name, "");
    }
    return all;
  }
  std::vector<std::string> variables() const {
    std::vector<std::string> all;
    for (const auto& [name, value] : environment()) all.push_back(name + "=" + value);
    return all;
  }
  Finished call(const std::vector<std::string>& words, const Environment& more = {}) const {
    Environment all = environment();
    all.insert(all.end(), more.begin(), more.end());
    return run_program(words, "", all);
  }
  // The settings under which the answer was made.
  json settings_of(std::vector<std::string> words, const Environment& more = {}) const {
    words.insert(words.begin(), "run");
    words.insert(words.end(), {"-p", "What is the capital of France?", "--json"});
    const Finished run = call(words, more);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.exit_code == 0 ? json::parse(run.out) : json();
  }

  static json ask(const serve::ServerProgram& server, const std::string& request) {
    serve::BareClient client = server.client();
    EXPECT_TRUE(client.send(request));
    return json::parse(client.read_reply().body);
  }
  static json get(const serve::ServerProgram& server, const std::string& path) {
    return ask(server, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }

  ScratchFolder models_;
};

TEST_F(PresetsTest, GiveWhatIsNotTyped) {
  write_preset("mine", "model = \"" + kNano + "\"\nmax-tokens = 2\ntop-k = 7\nstop = [\"zzz\"]\n");
  const json preset = settings_of({"mine"});
  EXPECT_EQ(preset["tokens"], 2) << preset;
  EXPECT_EQ(preset["sampling"]["top_k"], 7) << preset;
  EXPECT_EQ(settings_of({"mine", "-n", "3"})["tokens"], 3);
  EXPECT_EQ(settings_of({"mine"}, {{"CAIRN_MAX_TOKENS", "4"}})["tokens"], 4);
}

TEST_F(PresetsTest, BelongToAnAliasOfTheirName) {
  ASSERT_EQ(call({"cp", kNano, "other"}).exit_code, 0);
  write_preset("other", "max-tokens = 1\n");
  EXPECT_EQ(settings_of({"other"})["tokens"], 1);
  EXPECT_NE(call({"list"}).out.find("preset        other\n"), std::string::npos);
  EXPECT_EQ(json::parse(call({"list", "--json"}).out)["presets"][0], "other");
  // A file of that name here goes before it.
  EXPECT_GT(settings_of({kNano})["tokens"].get<int>(), 1);
}

TEST_F(PresetsTest, EveryMistakeHasItsLine) {
  const auto error_of = [&](const std::string& text) {
    write_preset("wrong", "model = \"" + kNano + "\"\n" + text);
    const Finished run = call({"run", "wrong", "-p", "x"});
    EXPECT_EQ(run.exit_code, 2) << text;
    return run.err;
  };
  const std::string at = "cairn: " + models_.file("presets/wrong.toml") + ":2: ";
  EXPECT_EQ(error_of("top_kk = 3\n"),
            at + "expected \"model\" or the name of an option that a preset may have, found "
                 "\"top_kk\"; did you mean top-k?\n");
  EXPECT_TRUE(error_of("prompt = \"x\"\n").starts_with(at + "expected \"model\" or")) << "prompt";
  EXPECT_TRUE(error_of("ctx-size = \"many\"\n").starts_with(at + "")) << "many";
  EXPECT_NE(error_of("ctx-size = -1\n").find("expected a whole number from 0"), std::string::npos);
  EXPECT_TRUE(error_of("[table]\n").starts_with(at + "table: expected a text")) << "table";
  // What is wrong only when it is used says where it comes from.
  EXPECT_NE(
      error_of("isa = \"none\"\n").find("(from " + models_.file("presets/wrong.toml") + ":2)"),
      std::string::npos);
}

TEST_F(PresetsTest, AreServedByTheirName) {
  // "system" is of `cairn run` alone: a server's clients say it themselves.
  write_preset("mine", "model = \"" + kNano + "\"\nsystem = \"x\"\ntop-k = 7\nctx-size = 512\n");
  serve::ServerProgram server({"mine"}, variables());
  const json models = get(server, "/v1/models");
  EXPECT_EQ(models["data"][0]["id"], "mine");
  EXPECT_EQ(models["data"][0]["meta"]["n_ctx"], 512);
  EXPECT_EQ(get(server, "/props")["default_generation_settings"]["params"]["top_k"], 7);
}

TEST_F(PresetsTest, AllListedModelsAreServed) {
  const Finished none = call({"serve", "--all-models", "--port", "0"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("--all-models: expected models that `cairn list` shows"),
            std::string::npos);
  std::filesystem::create_directories(models_.path() / "hf/acme/nano");
  std::filesystem::copy_file(kNano, models_.path() / "hf/acme/nano/nano-Q8_0.gguf");
  ASSERT_EQ(call({"cp", "hf:acme/nano", "short"}).exit_code, 0);
  serve::ServerProgram server({"--all-models"}, variables());
  const json models = get(server, "/v1/models");
  EXPECT_EQ(models["data"][0]["id"], "hf:acme/nano:nano-Q8_0.gguf");
  const std::string body =
      R"({"model":"short","messages":[{"role":"user",)"
      R"("content":"What is the capital of France?"}]})";
  const json answer =
      ask(server, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                      std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "The capital of France is Paris.")
      << answer;
}

}  // namespace
}  // namespace cairn::cli::preset_values_test
