// Files of presets: what is read, and what is refused, with file and line.
#include "hub/preset.h"

#include <gtest/gtest.h>

#include "base/env.h"

namespace cairn::hub::preset_test {
namespace {

std::string error_of(std::string_view text) {
  Result<Preset> preset = parse_preset("p.toml", text);
  return preset ? "it was read" : preset.error().message;
}

TEST(Preset, ValuesAreTheWordsOfACommandLine) {
  auto preset = parse_preset("p.toml", R"(# How it is run.
model = "hf:acme/good"
temp = 0.25
top-k = 10
system = """
Be brief.
"""
ignore-eos = true
stop = ["a", "b"]
lora = []
)");
  ASSERT_TRUE(preset) << preset.error().message;
  EXPECT_EQ(preset->model, "hf:acme/good");
  std::string all;
  for (const PresetValue& value : preset->values) {
    all += std::to_string(value.line) + " " + value.key;
    for (const std::string& text : value.texts) all += "=" + text;
    all += ";";
  }
  EXPECT_EQ(all,
            "3 temp=0.25;4 top-k=10;5 system=Be brief.\n;8 ignore-eos=true;9 stop=a=b;"
            "10 lora;");
}

TEST(Preset, RefusesWhatIsNoValue) {
  EXPECT_EQ(error_of("temp = 1\n[sampling]\ntemp = 2\n"),
            "p.toml:2: sampling: expected a text, a number, true, false, or a list of these, found "
            "another kind of value");
  EXPECT_TRUE(error_of("day = 2026-01-01\n").starts_with("p.toml:1: day: expected a text"));
  EXPECT_TRUE(error_of("stop = [[\"a\"]]\n").starts_with("p.toml:1: stop: expected a text"));
  EXPECT_EQ(error_of("\nmodel = 3\n"),
            "p.toml:2: model: expected a text, found another kind of value");
  EXPECT_TRUE(error_of("temp = 1\ntop-k 3\n").starts_with("p.toml:2: "));
  EXPECT_TRUE(error_of("temp = 1\ntemp = 2\n").starts_with("p.toml:2: "));
  EXPECT_TRUE(error_of("system = \"\xff\"\n").starts_with("p.toml:1: "));
}

TEST(Preset, AModelMayLieInTheHomeFolder) {
  ASSERT_NE(env("HOME").value_or(""), "");
  EXPECT_EQ(parse_preset("p.toml", "model = \"~/x.gguf\"\n").value().model,
            *env("HOME") + "/x.gguf");
  EXPECT_EQ(parse_preset("p.toml", "model = \"/~/x.gguf\"\n").value().model, "/~/x.gguf");
}

TEST(Preset, DeepNestingIsRefused) {
  EXPECT_NE(error_of("a = " + std::string(100'000, '[')), "it was read");
}

}  // namespace
}  // namespace cairn::hub::preset_test
