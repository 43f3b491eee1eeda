// `cairn plan` from outside: tables, JSON, models that are not here, headers without a model.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/machine/machine_memory.h"
#include "tests/cli/run_program.h"
#include "tests/hub/hub_server.h"

namespace cairn::cli::plan_test {
namespace {

using nlohmann::json;

const std::string kNano = CAIRN_SOURCE "/assets/nano.gguf";

json plan_of(std::vector<std::string> words, const Environment& environment = {}) {
  words.insert(words.begin(), "plan");
  words.insert(words.end(), {"--json", "-t", "1"});
  const Finished run = run_program(words, "", environment);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.exit_code == 0 ? json::parse(run.out) : json();
}

TEST(Plan, SaysWhatItTakes) {
  const json plan = plan_of({kNano, "-c", "512", "-np", "3", "--skip-speed"});
  EXPECT_EQ(plan["context_tokens"], 512);
  const json& memory = plan["memory"];
  EXPECT_EQ(memory["conversations"], 3 * memory["conversation"].get<size_t>());
  EXPECT_EQ(memory["total"].get<size_t>(), memory["weights"].get<size_t>() +
                                               memory["steps"].get<size_t>() +
                                               memory["conversations"].get<size_t>());
  size_t groups = 0;
  for (const json& group : memory["groups"]) groups += group["bytes"].get<size_t>();
  EXPECT_GT(groups, 0u);
  EXPECT_LE(groups, memory["conversation"].get<size_t>());
  EXPECT_TRUE(plan["prompt_tokens_per_second"].is_null());
  EXPECT_EQ(plan["lengths"].size(), 1u);
  // Smaller than Q8_0, and smaller each time.
  uint64_t before = plan["file_bytes"];
  EXPECT_FALSE(plan["quantizations"].empty());
  for (const json& type : plan["quantizations"]) {
    EXPECT_LT(type["file_bytes"].get<uint64_t>(), before) << type["type"];
    before = type["file_bytes"];
  }
}

TEST(Plan, MeasuresSpeeds) {
  const json plan = plan_of({kNano, "-c", "512"});
  EXPECT_GT(plan["prompt_tokens_per_second"].get<double>(), 0);
  EXPECT_GT(plan["lengths"][0]["tokens_per_second"].get<double>(), 0);
  EXPECT_GT(plan["machine"]["read_bytes_per_second"].get<double>(), 0);
  for (const json& type : plan["quantizations"]) {
    EXPECT_GT(type["tokens_per_second"].get<double>(), 0);
  }
}

TEST(Plan, ATableForPeople) {
  const Finished run = run_program({"plan", "-c", "256", "--skip-speed"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* words : {"granitehybrid, 0.00 G weights", "weights ", "a conversation of 256",
                            "in all", "each further place to go back to", "one conversation"}) {
    EXPECT_NE(run.out.find(words), std::string::npos) << words << "\n" << run.out;
  }
  const Finished wrong = run_program({"plan", kNano, "-c", "100000000"});
  EXPECT_EQ(wrong.exit_code, 2);
  const Finished none = run_program({"plan", "no-such-model"});
  EXPECT_EQ(none.exit_code, 1);
}

TEST(Plan, OfAHeaderWithoutAModel) {
  const ScratchFolder folder;
  const std::string whole = contents_of(kNano);
  const std::string path = folder.file("head.gguf");
  write_to(path, whole.substr(0, whole.size() / 2));
  const json cut = plan_of({path, "-c", "512", "--skip-speed"});
  json all = plan_of({kNano, "-c", "512", "--skip-speed"});
  EXPECT_NE(cut["note"], "");
  EXPECT_EQ(cut["memory"]["weights"], all["memory"]["weights"]);
  EXPECT_EQ(cut["memory"]["conversation"], all["memory"]["conversation"]);
  EXPECT_EQ(cut["file_bytes"], all["file_bytes"]);
}

TEST(Plan, OfAModelThatIsNotHere) {
  const ScratchFolder there, here;
  std::filesystem::create_directories(there.path() / "nano");
  std::filesystem::create_symlink(kNano, there.path() / "nano/nano-Q8_0.gguf");
  const hub::HubServer server(there.path());
  const Environment environment = {{"HOME", here.path().string()}, {"no_proxy", "127.0.0.1"},
                                   {"HF_ENDPOINT", server.url()},  {"HF_TOKEN", ""},
                                   {"XDG_CACHE_HOME", ""},         {"CAIRN_MODELS", ""}};
  const json plan = plan_of({"hf:acme/good-nano", "-c", "512", "--skip-speed"}, environment);
  const json local = plan_of({kNano, "-c", "512", "--skip-speed"});
  EXPECT_EQ(plan["model"], "hf:acme/good-nano:nano-Q8_0.gguf");
  EXPECT_EQ(plan["memory"]["total"], local["memory"]["total"]);
  EXPECT_EQ(plan["file_bytes"], local["file_bytes"]);
  // Nothing is kept.
  EXPECT_FALSE(std::filesystem::exists(here.path() / ".cache/cairn"));
}

}  // namespace
}  // namespace cairn::cli::plan_test
