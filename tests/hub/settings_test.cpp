// Which variables mean what.
#include "hub/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/env.h"
#include "tests/hub/hub_server.h"

namespace cairn::hub::settings_test {
namespace {

using test::ScratchFolder;
using test::write_to;

// The environment is this test's alone until it ends.
class SettingsTest : public testing::Test {
 protected:
  SettingsTest() {
    for (const char* name : kNames) {
      before_.emplace_back(name, env(name).value_or(""));
      ::unsetenv(name);
    }
    ::setenv("HOME", folder_.path().c_str(), 1);
  }
  ~SettingsTest() override {
    for (const auto& [name, value] : before_) {
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    }
  }

  static constexpr const char* kNames[] = {
      "HOME",          "XDG_CACHE_HOME", "CAIRN_MODELS",         "HF_HOME",     "HF_HUB_CACHE",
      "HF_TOKEN",      "HF_TOKEN_PATH",  "HF_ENDPOINT",          "LLAMA_CACHE", "OLLAMA_MODELS",
      "SSL_CERT_FILE", "HF_HUB_OFFLINE", "CAIRN_OLLAMA_REGISTRY"};
  ScratchFolder folder_;
  std::vector<std::pair<std::string, std::string>> before_;
};

TEST_F(SettingsTest, FoldersWithoutVariables) {
  const std::string home = folder_.path().string();
  Result<HubSettings> settings = read_settings();
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->folder, home + "/.cache/cairn/models");
  EXPECT_EQ(settings->hub_cache, home + "/.cache/huggingface/hub");
  EXPECT_EQ(settings->llama_cache, home + "/.cache/llama.cpp");
  EXPECT_EQ(settings->ollama_folders.front(), home + "/.ollama/models");
  EXPECT_EQ(settings->hub_url, "https://huggingface.co");
  EXPECT_EQ(settings->ollama_url, "https://registry.ollama.ai");
  EXPECT_EQ(settings->token, "");
  EXPECT_FALSE(settings->is_offline);
}

TEST_F(SettingsTest, LmStudioSaysWhereItIs) {
  EXPECT_EQ(read_settings()->lm_studio_folders.front(), folder_.file(".lmstudio/models"));
  write_to(folder_.file(".lmstudio-home-pointer"), "/big/lm\n");
  EXPECT_EQ(read_settings()->lm_studio_folders.front(), "/big/lm/models");
}

TEST_F(SettingsTest, VariablesSayOtherwise) {
  ::setenv("XDG_CACHE_HOME", "/caches", 1);
  ::setenv("HF_ENDPOINT", "https://mirror.example/", 1);
  EXPECT_EQ(read_settings()->folder, "/caches/cairn/models");
  EXPECT_EQ(read_settings()->hub_cache, "/caches/huggingface/hub");
  EXPECT_EQ(read_settings()->hub_url, "https://mirror.example");
  ::setenv("HF_HOME", "/hf", 1);
  EXPECT_EQ(read_settings()->hub_cache, "/hf/hub");
  ::setenv("HF_HUB_CACHE", "~/hub", 1);
  EXPECT_EQ(read_settings()->hub_cache, folder_.file("hub"));
  ::setenv("LLAMA_CACHE", "/llama", 1);
  ::setenv("OLLAMA_MODELS", "/ollama", 1);
  ::setenv("CAIRN_MODELS", "/models", 1);
  ::setenv("HF_HUB_OFFLINE", "1", 1);
  EXPECT_EQ(read_settings()->llama_cache, "/llama");
  EXPECT_EQ(read_settings()->ollama_folders, std::vector<std::string>{"/ollama"});
  EXPECT_EQ(read_settings()->folder, "/models");
  EXPECT_TRUE(read_settings()->is_offline);
  ::setenv("HF_HUB_OFFLINE", "0", 1);
  EXPECT_FALSE(read_settings()->is_offline);
}

TEST_F(SettingsTest, TokensOfAVariableOrAFile) {
  put(folder_.path(), ".cache/huggingface/token", "hf_file\n");
  EXPECT_EQ(read_settings()->token, "hf_file");
  EXPECT_EQ(read_settings()->token_source, folder_.file(".cache/huggingface/token"));
  write_to(folder_.file("other"), " hf_other ");
  ::setenv("HF_TOKEN_PATH", folder_.file("other").c_str(), 1);
  EXPECT_EQ(read_settings()->token, "hf_other");
  ::setenv("HF_TOKEN", "hf_variable", 1);
  EXPECT_EQ(read_settings()->token, "hf_variable");
  EXPECT_EQ(read_settings()->token_source, "HF_TOKEN");
  // It would be a header of its own; and it is not repeated.
  ::setenv("HF_TOKEN", "hf_x\r\nHost: other", 1);
  Result<HubSettings> settings = read_settings();
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().message,
            "HF_TOKEN: expected a token of printable characters, found others in it");
}

}  // namespace
}  // namespace cairn::hub::settings_test
