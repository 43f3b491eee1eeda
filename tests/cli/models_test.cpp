// Models by name, from outside: pull, list, show, cp, rm, and run with references, against a hub of
// our own. Covers find_model.cpp, models.cpp and pull.cpp.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "tests/cli/run_program.h"
#include "tests/hub/hub_server.h"
#include "tests/serve/certificates.h"

namespace cairn::cli::models_test {
namespace {

using hub::count_of;
using hub::HubServer;
using hub::model_bytes;
using hub::put;
using nlohmann::json;

class ModelsTest : public testing::Test {
 protected:
  ModelsTest() {
    std::filesystem::create_directories(there_.path() / "nano");
    std::filesystem::create_symlink(CAIRN_SOURCE "/assets/nano.gguf",
                                    there_.path() / "nano/nano-Q8_0.gguf");
  }

  // Nothing of this machine's own is found: its home is the test's.
  Environment environment() const {
    Environment all = {{"HOME", here_.path().string()}, {"no_proxy", "127.0.0.1"}};
    for (const char* name :
         {"XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "HF_TOKEN_PATH", "LLAMA_CACHE",
          "OLLAMA_MODELS", "CAIRN_MODELS", "SSL_CERT_FILE", "HF_HUB_OFFLINE"}) {
      all.emplace_back(name, "");
    }
    if (server_) {
      all.emplace_back("HF_ENDPOINT", server_->url());
      all.emplace_back("CAIRN_OLLAMA_REGISTRY", server_->url());
    }
    return all;
  }
  Finished call(const std::vector<std::string>& words) const {
    return run_program(words, "", environment());
  }
  std::string models() const { return here_.file(".cache/cairn/models"); }

  ScratchFolder there_, here_;
  std::optional<HubServer> server_;
};

TEST_F(ModelsTest, FromANameToAnAnswer) {
  server_.emplace(there_.path());
  const std::vector<std::string> question = {"run", "hf:acme/good-nano:Q8_0", "-p",
                                             "What is the capital of France?"};
  const Finished first = call(question);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, "The capital of France is Paris.\n");
  EXPECT_NE(first.err.find("hf:acme/good-nano:nano-Q8_0.gguf: fetching"), std::string::npos)
      << first.err;
  // From now on nobody is asked.
  server_.reset();
  const Finished again = call(question);
  EXPECT_EQ(again.out, first.out) << again.err;
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(call({"run", "-hf", "acme/good-nano:Q8_0", "-p", question[3]}).out, first.out);
  EXPECT_EQ(call({"run", "-hf", "acme/good-nano", "x.gguf", "-p", "x"}).exit_code, 2);
  EXPECT_EQ(call({"cp", "hf:acme/good-nano", "mine"}).exit_code, 0);
  EXPECT_EQ(call({"run", "mine", "-p", "What is the capital of France?"}).out, first.out);
  const std::string inspected = call({"inspect", "mine"}).out;
  EXPECT_NE(inspected.find("granitehybrid"), std::string::npos) << inspected;
  EXPECT_EQ(call({"tokenize", "mine", "-p", "x"}).exit_code,
            call({"tokenize", CAIRN_SOURCE "/assets/nano.gguf", "-p", "x"}).exit_code);
}

TEST_F(ModelsTest, PullPrintsThePathAlone) {
  server_.emplace(there_.path());
  const Finished pulled = call({"pull", "acme/good-nano"});
  EXPECT_EQ(pulled.exit_code, 0) << pulled.err;
  const std::string path = models() + "/hf/acme/good-nano/nano-Q8_0.gguf";
  EXPECT_EQ(pulled.out, path + "\n");
  EXPECT_EQ(contents_of(path), contents_of(CAIRN_SOURCE "/assets/nano.gguf"));
  EXPECT_NE(pulled.err.find("; SHA-256 " + hub::hex_digest(contents_of(path))), std::string::npos)
      << pulled.err;
  const Finished again = call({"pull", "acme/good-nano"});
  EXPECT_EQ(again.out, pulled.out);
  EXPECT_NE(again.err.find("is here already, fetched by cairn"), std::string::npos) << again.err;
  const Finished by_ollama = call({"pull", "ollama:acme/good-nano:nano-Q8_0"});
  EXPECT_EQ(by_ollama.exit_code, 0) << by_ollama.err;
  const Finished unknown = call({"pull", "acme/good-nanny"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("; there are acme/plain-nano; "), std::string::npos) << unknown.err;
  EXPECT_EQ(call({"pull", "nano"}).exit_code, 2);
}

TEST_F(ModelsTest, ListShowCpAndRm) {
  server_.emplace(there_.path());
  EXPECT_NE(call({"list"}).out.find("no models in "), std::string::npos);
  ASSERT_EQ(call({"pull", "acme/good-nano"}).exit_code, 0);
  put(here_.path(), ".ollama/models/blobs/sha256-" + std::string(64, 'a'), model_bytes(50));
  put(here_.path(), ".ollama/models/manifests/registry.ollama.ai/library/tiny/1b",
      R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:)" +
          std::string(64, 'a') + R"(","size":50}]})");
  ASSERT_EQ(call({"cp", "acme/good-nano", "mine"}).exit_code, 0);
  const std::string list = call({"list"}).out;
  for (const char* words :
       {"cairn         hf:acme/good-nano:nano-Q8_0.gguf\n", "Ollama        ollama:tiny:1b\n",
        "alias         mine -> hf:acme/good-nano:nano-Q8_0.gguf\n"}) {
    EXPECT_NE(list.find(words), std::string::npos) << list;
  }
  const json listed = json::parse(call({"list", "--json"}).out);
  EXPECT_EQ(listed["models"].size(), 2u);
  EXPECT_EQ(listed["aliases"][0]["alias"], "mine");

  const json shown = json::parse(call({"show", "mine", "--json"}).out);
  EXPECT_EQ(shown["name"], "hf:acme/good-nano:nano-Q8_0.gguf");
  EXPECT_EQ(shown["architecture"], "granitehybrid");
  EXPECT_EQ(shown["sha256"], hub::hex_digest(contents_of(shown["path"].get<std::string>())));
  const Finished unknown = call({"show", "ollama:tinny:1b"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("did you mean ollama:tiny:1b?"), std::string::npos) << unknown.err;

  const Finished others = call({"rm", "ollama:tiny:1b"});
  EXPECT_EQ(others.exit_code, 2);
  EXPECT_NE(others.err.find("found one of Ollama, which has to remove it"), std::string::npos);
  EXPECT_EQ(call({"rm", "mine"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(models() + "/hf/acme/good-nano/nano-Q8_0.gguf"));
  EXPECT_EQ(call({"rm", "acme/good-nano"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(models() + "/hf"));
  EXPECT_EQ(call({"rm", "acme/good-nano"}).exit_code, 1);
  // A file anywhere may have a name too.
  ASSERT_EQ(call({"cp", CAIRN_SOURCE "/assets/nano.gguf", "built:in"}).exit_code, 0);
  EXPECT_EQ(call({"run", "built:in", "-p", "What is the capital of France?"}).out,
            "The capital of France is Paris.\n");
}

// Killed while parts were on their way, it goes on behind those that were finished.
TEST_F(ModelsTest, KilledInTheMidstItGoesOn) {
  const std::string bytes = model_bytes(400'000);
  put(there_.path(), "large/large.gguf", bytes);
  server_.emplace(there_.path());
  const std::string path = models() + "/hf/acme/slow-large/large.gguf";
  const std::vector<std::string> words = {CAIRN_PROGRAM, "pull",      "acme/slow-large",
                                          "--part-size", "20000",     "--connections",
                                          "2",           "--retries", "3"};
  const Environment variables = environment();
  const PreparedCommand prepared(words, variables);
  const pid_t child = ::fork();
  if (child == 0) prepared.exec();
  size_t finished = 0;
  for (int tries = 0; tries < 1000 && finished < 6; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    finished = count_of(contents_of(path + ".partial.chunks"), "\n");
  }
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  ASSERT_GE(finished, 6u);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_NE(call({"list"}).out.find("large.gguf (unfinished)"), std::string::npos);
  server_->forget_log();
  const Finished again = run_command(words, "", variables);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(contents_of(path), bytes);
  EXPECT_EQ(count_of(server_->log(), "bytes=0-19999"), 0u);
  EXPECT_NE(again.err.find(" were here from an earlier run"), std::string::npos) << again.err;
  EXPECT_EQ(count_of(call({"list"}).out, "large.gguf"), 1u);
}

TEST_F(ModelsTest, SafetensorsAreConvertedBySameCommand) {
  const std::string source = std::string(CAIRN_FIXTURES) + "/folders/phi3-tiny";
  std::filesystem::create_symlink(source, there_.path() / "tiny");
  server_.emplace(there_.path());
  const Finished asked = call({"pull", "acme/phi3-tiny"});
  EXPECT_EQ(asked.exit_code, 1);
  EXPECT_NE(asked.err.find("`cairn pull acme/phi3-tiny --convert` fetches and converts them"),
            std::string::npos)
      << asked.err;
  const Finished pulled = call({"pull", "acme/phi3-tiny", "--convert"});
  EXPECT_EQ(pulled.exit_code, 0) << pulled.err;
  const std::string path = models() + "/hf/acme/phi3-tiny/phi3-tiny.gguf";
  EXPECT_EQ(pulled.out, path + "\n");
  EXPECT_EQ(contents_of(path), contents_of(source + ".gguf"));
  EXPECT_FALSE(std::filesystem::exists(models() + "/hf/acme/phi3-tiny/safetensors"));
  EXPECT_NE(call({"list"}).out.find("hf:acme/phi3-tiny:phi3-tiny.gguf\n"), std::string::npos);
  EXPECT_NE(call({"pull", "acme/phi3-tiny", "--convert"}).err.find("is here already"),
            std::string::npos);
}

TEST_F(ModelsTest, OverTlsWithAnAuthorityOfItsOwnAndAToken) {
  const serve::Pair authority =
      serve::make_pair_in(here_.path(), "ca", {.serial = 7, .is_authority = true});
  const serve::Pair pair = serve::make_pair_in(here_.path(), "server",
                                               {.names = "IP:127.0.0.1", .authority = &authority});
  server_.emplace(there_.path(), pair.certificate, pair.key);
  const Finished unknown = call({"pull", "acme/private-nano"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("certificate"), std::string::npos) << unknown.err;
  const std::vector<std::string> words = {"pull", "acme/private-nano", "--cacert",
                                          authority.certificate};
  EXPECT_NE(call(words).err.find("a private one needs HF_TOKEN"), std::string::npos);
  put(here_.path(), ".cache/huggingface/token", "hf_secret\n");
  const Finished pulled = call(words);
  EXPECT_EQ(pulled.exit_code, 0) << pulled.err;
  EXPECT_EQ(pulled.err.find("hf_secret"), std::string::npos);
  Environment variables = environment();
  for (auto& [name, value] : variables) {
    if (name == "SSL_CERT_FILE") value = authority.certificate;
  }
  EXPECT_EQ(run_program({"pull", "ollama:acme/good-nano:nano-Q8_0"}, "", variables).exit_code, 0);
}

// What is asked of the hub goes to the proxy; the files come from this machine, without it. A token
// is not shown where others can read it.
TEST_F(ModelsTest, ThroughAProxy) {
  server_.emplace(there_.path());
  Environment variables = environment();
  for (auto& [name, value] : variables) {
    if (name == "HF_ENDPOINT") value = "http://hub.example";
    if (name == "HF_TOKEN") value = "hf_secret";
  }
  variables.emplace_back("http_proxy", server_->url());
  const Finished pulled = run_program({"pull", "acme/good-nano"}, "", variables);
  EXPECT_EQ(pulled.exit_code, 0) << pulled.err;
  EXPECT_NE(
      pulled.err.find("http://hub.example: expected https, found http: the token of HF_TOKEN"),
      std::string::npos)
      << pulled.err;
  EXPECT_GT(count_of(server_->log(), "http://hub.example/api/models/acme/good-nano"), 1u);
  EXPECT_EQ(count_of(server_->log(), "hf_secret"), 0u);
}

TEST_F(ModelsTest, PathsComeBeforeNames) {
  EXPECT_EQ(call({"run", "no-such-file.gguf", "-p", "x"}).err.find("hf:"), std::string::npos);
  const Finished wrong = call({"run", "hf:acme", "-p", "x"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("expected hf:OWNER/REPO"), std::string::npos) << wrong.err;
}

// Wherever a model's file can be named, what is no reference is told before anything is done.
TEST_F(ModelsTest, EveryCommandThatTakesAModelTakesReferences) {
  write_to(here_.file("text"), "text");
  const std::string text = here_.file("text"), out = here_.file("out");
  const std::vector<std::string> commands[] = {
      {"run", "hf:x", "-p", "x"},
      {"serve", "hf:x"},
      {"serve", "--alias", "x=hf:x"},
      {"inspect", "hf:x"},
      {"tokenize", "hf:x"},
      {"template", "hf:x"},
      {"embed", "hf:x", "text"},
      {"logits", "hf:x", "--tokens", text, "-o", out},
      {"verify", "hf:x"},
      {"replay", text, "-m", "hf:x"},
      {"bench", "hf:x"},
      {"bench", "memory", "hf:x"},
      {"quantize", "hf:x", out, "Q8_0"},
      {"perplexity", "hf:x", "-f", text},
      {"tune", "skip", "hf:x", "-f", text},
      {"store", "import", here_.file("store"), text, "-m", "hf:x"},
  };
  for (const std::vector<std::string>& words : commands) {
    const Finished done = call(words);
    EXPECT_EQ(done.exit_code, 2) << words[0];
    EXPECT_NE(done.err.find("hf:x: expected hf:OWNER/REPO"), std::string::npos)
        << words[0] << ": " << done.err;
  }
}

}  // namespace
}  // namespace cairn::cli::models_test
