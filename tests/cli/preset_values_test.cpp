// Presets from outside: what `cairn run NAME` and `cairn serve NAME` do with the file of that name,
// and what is said where it is wrong; all listed models served, and their contexts. Commands that
// need no process of their own run in this one.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/env.h"
#include "cli/commands/commands.h"
#include "cli/commands/serve.h"
#include "tests/cli/run_program.h"
#include "tests/serve/many_models.h"
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
  const std::string body = R"({"model":"short","messages":[{"role":"user",)"
                           R"("content":"What is the capital of France?"}]})";
  const json answer =
      ask(server, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                      std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "The capital of France is Paris.")
      << answer;
}

// The same environment in this process, but for a home that is not among the models.
class NamesTest : public PresetsTest {
 protected:
  NamesTest() {
    for (const auto& [name, value] : environment()) {
      before_[name] = env(name.c_str());
      ::setenv(name.c_str(), value.c_str(), 1);
    }
    ::setenv("HOME", home_.path().c_str(), 1);
    std::filesystem::copy_file(kNano, home("x.gguf"));
  }
  ~NamesTest() override {
    for (const auto& [name, value] : before_) {
      if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }

  std::string home(const std::string& file) const { return home_.file(file); }
  static Finished call_here(std::vector<std::string> words) {
    static constexpr const command_line::Command* kCommands[] = {&kRunCommand, &kListCommand,
                                                                 &kShowCommand, &kCpCommand};
    words.insert(words.begin(), "cairn");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Finished done;
    done.exit_code = command_line::run_command_line({.doc = "",
                                                     .commands = kCommands,
                                                     .examples = {},
                                                     .version = "",
                                                     .version_text = nullptr,
                                                     .welcome = nullptr},
                                                    int(arguments.size()), arguments.data());
    done.out = testing::internal::GetCapturedStdout();
    done.err = testing::internal::GetCapturedStderr();
    return done;
  }

 private:
  ScratchFolder home_;
  std::map<std::string, std::optional<std::string>> before_;
};

// What clients of a server of one model read before and after it is loaded.
std::vector<int> contexts_of(const ServeOptions& options) {
  serve::Serving serving(start_models(options).value());
  const auto context = [&] {
    const json model = json::parse(serving.get("/v1/models").body)["data"][0];
    EXPECT_EQ(model["max_model_len"], model["context_length"]);
    EXPECT_EQ(model["meta"]["n_ctx"], model["context_length"]);
    return model["context_length"].get<int>();
  };
  const int before = context();
  const std::string name = json::parse(serving.get("/v1/models").body)["data"][0]["id"];
  serving.post_json("/v1/chat/completions", serve::greedy(name));
  return {before, context()};
}

TEST_F(NamesTest, ContextsOfModelsThatAreNotLoaded) {
  ServeOptions options;
  options.model_path = home("");
  options.engine.thread_count = 1;
  options.engine.memory_budget = size_t(64) << 20;
  EXPECT_EQ(contexts_of(options), (std::vector<int>{1 << 17, 1 << 17}));
  options.engine.context_tokens = 4096;
  EXPECT_EQ(contexts_of(options), (std::vector<int>{4096, 4096}));
  // Models that were trained for less get less.
  options.engine.context_tokens = 1 << 24;
  EXPECT_EQ(contexts_of(options), (std::vector<int>{1 << 20, 1 << 20}));
}

TEST_F(NamesTest, AliasesOfFilesAloneAreServed) {
  ASSERT_EQ(call_here({"cp", home("x.gguf"), "mine"}).exit_code, 0);
  ASSERT_EQ(call_here({"cp", "mine", "other"}).exit_code, 0);
  // What is gone, or no model, is left out.
  write_to(home("text.gguf"), "no model");
  std::filesystem::copy_file(kNano, home("gone.gguf"));
  ASSERT_EQ(call_here({"cp", home("text.gguf"), "a-text"}).exit_code, 0);
  ASSERT_EQ(call_here({"cp", home("gone.gguf"), "gone"}).exit_code, 0);
  std::filesystem::remove(home("gone.gguf"));
  ServeOptions options;
  options.models.takes_all = true;
  options.models.listed = list_all_models().value();
  options.engine.thread_count = 1;
  options.engine.memory_budget = size_t(64) << 20;
  // The sandbox lets the server read these.
  std::vector<std::string> paths;
  for (const hub::KeptModel& kept : options.models.listed.kept) paths.push_back(kept.paths.front());
  EXPECT_EQ(paths, (std::vector<std::string>{home("text.gguf"), home("x.gguf")}));
  serve::Serving serving(start_models(options).value());
  const json models = json::parse(serving.get("/v1/models").body)["data"];
  ASSERT_EQ(models.size(), 1u) << models;
  EXPECT_EQ(models[0]["id"], "mine");
  EXPECT_EQ(models[0]["aliases"], json::array({"other"}));
  for (const char* name : {"mine", "other"}) {
    const json answer = serving.post_json("/v1/chat/completions", serve::greedy(name));
    EXPECT_EQ(answer["choices"][0]["message"]["content"], serve::kParis) << name;
  }
}

TEST_F(NamesTest, ShowAndCpKnowPresets) {
  write_preset("poet", "model = \"~/x.gguf\"\nmax-tokens = 2\n");
  write_preset("bare", "max-tokens = 2\n");
  const Finished shown = call_here({"show", "poet", "--json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const json model = json::parse(shown.out);
  EXPECT_EQ(model["path"], home("x.gguf"));
  EXPECT_EQ(model["fetched_by"], "");
  EXPECT_EQ(model["architecture"], "granitehybrid");
  EXPECT_EQ(model["bytes"], std::filesystem::file_size(kNano));
  ASSERT_EQ(call_here({"cp", "poet", "other"}).exit_code, 0);
  EXPECT_NE(call_here({"list"}).out.find("other -> " + home("x.gguf") + "\n"), std::string::npos);
  EXPECT_EQ(json::parse(call_here({"show", "other", "--json"}).out)["path"], home("x.gguf"));
  // A preset without a model, and a file without a name, are nothing that the list shows.
  EXPECT_EQ(call_here({"show", "bare"}).exit_code, 1);
  EXPECT_EQ(call_here({"show", home("x.gguf")}).exit_code, 1);
  // Of a model that the list shows it is known who has fetched it.
  std::filesystem::create_directories(models_.path() / "hf/acme/nano");
  std::filesystem::copy_file(kNano, models_.path() / "hf/acme/nano/nano-Q8_0.gguf");
  write_preset("poet", "model = \"hf:acme/nano\"\n");
  EXPECT_EQ(json::parse(call_here({"show", "poet", "--json"}).out)["fetched_by"], "cairn");
  ASSERT_EQ(call_here({"cp", "poet", "other"}).exit_code, 0);
  EXPECT_NE(call_here({"list"}).out.find("other -> hf:acme/nano:nano-Q8_0.gguf\n"),
            std::string::npos);
}

TEST_F(NamesTest, FilesOfPresetsMayLieInTheHomeFolder) {
  const auto error_of = [&](const std::string& text) {
    write_preset("mine", text);
    return call_here({"run", "mine", "-p", "x", "--sandbox", "off"}).err;
  };
  EXPECT_NE(error_of("model = \"~/none.gguf\"\n").find(home("none.gguf") + ": cannot open"),
            std::string::npos);
  for (const std::string option : {"json-schema", "grammar"}) {
    const std::string error = error_of("model = \"~/x.gguf\"\n" + option + " = \"~/none\"\n");
    EXPECT_NE(error.find(home("none") + ": cannot open"), std::string::npos) << error;
  }
  write_to(home("form.json"), R"({"enum": [7]})");
  write_preset("mine", "model = \"~/x.gguf\"\njson-schema = \"~/form.json\"\n");
  const Finished run = call_here({"run", "mine", "-p", "x", "--sandbox", "off"});
  EXPECT_EQ(run.out, "7\n") << run.err;
}

}  // namespace
}  // namespace cairn::cli::preset_values_test
