// `cairn inspect` on good and broken files: what must stand in the text, and that the JSON is
// whole.
#include "cli/commands/inspect.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/gguf/raw_file.h"
#include "tests/sanitized.h"

namespace cairn::cli::inspect_test {
namespace {

using gguf::File;
using gguf::OpenMode;
using gguf::ValueType;
using gguf::raw::array_field;
using gguf::raw::Bytes;
using gguf::raw::number_field;
using gguf::raw::RawFile;
using gguf::raw::text_field;

std::string report(const std::vector<std::byte>& bytes, bool json = false) {
  auto file = File::from_bytes(bytes, "x.gguf", OpenMode::inspect);
  EXPECT_TRUE(file) << file.error().message;
  return inspect_report(*file, json);
}

void expect_lines(const std::string& text, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << "\"" << line << "\" in:\n" << text;
  }
}

std::vector<std::byte> small_model() {
  Bytes tokens;
  tokens.text("tokenizer.ggml.tokens").put(uint32_t(ValueType::array));
  tokens.put(uint32_t(ValueType::string)).put(uint64_t(3)).text("a").text("b\n").text("<|end|>");
  return RawFile{
      .fields = {text_field("general.architecture", "llama"), text_field("general.name", "Small"),
                 number_field("llama.rope.freq_base", ValueType::f32, 10000.0f),
                 array_field<int32_t>("llama.heads", ValueType::i32, {1, 2, 3, 4, 5, 6, 7}),
                 text_field("tokenizer.ggml.model", "gpt2"), tokens,
                 array_field<int32_t>("tokenizer.ggml.token_type", ValueType::i32, {1, 1, 3}),
                 number_field("tokenizer.ggml.eos_token_id", ValueType::u32, 2u),
                 number_field("tokenizer.ggml.bos_token_id", ValueType::u32, 9u),
                 text_field("tokenizer.chat_template", "{{ a }}\n{{ b }}")},
      .tensors = {{.name = "token_embd.weight", .dims = {32, 3}, .type = 8},
                  {.name = "norm", .dims = {32}, .offset = 128}},
      .data_bytes = 256}
      .build();
}

TEST(Inspect, TextSaysAll) {
  expect_lines(report(small_model()),
               {"x.gguf", "  name          Small", "  architecture  llama", "  parameters    128",
                "  weights       230 B in 2 tensors, 14.38 bits each",
                "  F32         1          32  128 B  55.7 %", "  tokens  3: 2 normal, 1 control",
                "  eos     2 \"<|end|>\"", "  bos     9 (not in the vocabulary)",
                "  llama.rope.freq_base         f32        10000",
                "  llama.heads                  i32[7]     [1, 2, 3, 4, 5, 6, …]",
                "  tokenizer.ggml.tokens        string[3]  [\"a\", \"b\\n\", \"<|end|>\"]",
                "  token_embd.weight  Q8_0  [32, 3]  102 B", "Chat template (15 bytes)",
                "  {{ a }}", "  {{ b }}"});
  EXPECT_EQ(report(small_model()).find("Problems"), std::string::npos);
}

TEST(Inspect, LayersThatOnlyGuessAreCountedApart) {
  const auto model = [](uint32_t guessing) {
    return RawFile{
        .fields = {text_field("general.architecture", "glm4moe"),
                   number_field("glm4moe.block_count", ValueType::u32, 47u),
                   number_field("glm4moe.nextn_predict_layers", ValueType::u32, guessing)}}
        .build();
  };
  expect_lines(report(model(1)),
               {"  layers        46, and behind them 1 that only guess further tokens (not used)"});
  EXPECT_EQ(report(model(0)).find("layers   "), std::string::npos);
}

TEST(Inspect, JsonSaysTheSame) {
  const auto json = nlohmann::json::parse(report(small_model(), true));
  EXPECT_EQ(json["architecture"], "llama");
  EXPECT_EQ(json["parameters"], 128);
  EXPECT_EQ(json["tensors"][0]["shape"], (std::vector<int>{32, 3}));
  EXPECT_EQ(json["tensors"][0]["bytes"], 102);
  EXPECT_EQ(json["metadata"]["llama.rope.freq_base"]["value"], 10000.0);
  EXPECT_EQ(json["metadata"]["llama.heads"]["value"].size(), 7u);
  EXPECT_EQ(json["tokenizer"]["special_tokens"]["eos"]["piece"], "<|end|>");
  EXPECT_FALSE(json["tokenizer"]["special_tokens"]["bos"].contains("piece"));
  EXPECT_EQ(json["chat_templates"]["tokenizer.chat_template"], "{{ a }}\n{{ b }}");
  EXPECT_EQ(json["problem_count"], 0);
}

TEST(Inspect, JsonShortensLongArraysAndSpellsWhatJsonLacks) {
  std::vector<float> many(65, 0.5f);
  many[0] = -std::numeric_limits<float>::infinity();
  const auto bytes = RawFile{.fields = {array_field<float>("many", ValueType::f32, many),
                                        text_field("bytes", "\xff\x1b\xe2\x80\xae")}}
                         .build();
  const std::string text = report(bytes, true);
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["metadata"]["many"]["count"], 65);
  EXPECT_EQ(json["metadata"]["many"]["first"].size(), 8u);
  EXPECT_EQ(json["metadata"]["many"]["first"][0], "-inf");
}

TEST(Inspect, BrokenFilesAreShownWithTheirProblems) {
  const auto bytes = RawFile{.tensors = {{.name = "odd", .type = 255},
                                         {.name = "far", .dims = {4096}},
                                         {.name = "good", .offset = 32}},
                             .data_bytes = 160}
                         .build();
  const std::string text = report(bytes);
  expect_lines(
      text,
      {"  architecture  (not said)", "Problems (2): this file can be read, but not run",
       "  tensor odd: expected a type that can be read, found type 255 (unknown)",
       "  odd   type 255 (unknown)  [32]        ?", "  good  F32                 [32]    128 B"});
}

// Nothing of a file reaches the terminal as a command.
// Files of many keys, special tokens, templates and types: what looks at each for each of them
// takes minutes here, so a bound of ten seconds is far from both.
TEST(Inspect, ManyEntriesOfAnyKindTakeNoLonger) {
  constexpr int kCount = test::kIsSanitized ? 30'000 : 100'000;
  RawFile keys, specials, templates, types;
  specials.fields = {text_field("tokenizer.ggml.model", "gpt2")};
  for (int i = 0; i < kCount; ++i) {
    keys.fields.push_back(number_field(fmt::format("k{}", i), ValueType::u8, uint8_t(0)));
    specials.fields.push_back(
        number_field(fmt::format("tokenizer.ggml.k{}_token_id", i), ValueType::u8, uint8_t(0)));
    templates.fields.push_back(text_field(fmt::format("tokenizer.chat_template.{}", i), ""));
    types.tensors.push_back({.name = fmt::format("t{}", i), .dims = {1}, .type = uint32_t(i)});
  }
  const std::clock_t begin = std::clock();
  for (const RawFile& file : {keys, specials, templates, types}) {
    const std::vector<std::byte> bytes = file.build();
    EXPECT_FALSE(report(bytes, true).empty());
    EXPECT_FALSE(report(bytes, false).empty());
    EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, 10 * 4);
  }
}

TEST(Inspect, OfAKeyThatStandsTwiceTheFirstCounts) {
  const RawFile file{.fields = {number_field("tokenizer.ggml.bos_token_id", ValueType::u32, 1u),
                                text_field("tokenizer.ggml.model", "gpt2"),
                                number_field("tokenizer.ggml.bos_token_id", ValueType::u32, 2u)}};
  const auto json = nlohmann::json::parse(report(file.build(), true));
  EXPECT_EQ(json["tokenizer"]["special_tokens"]["bos"]["id"], 1);
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.bos_token_id"]["value"], 1);
}

TEST(Inspect, Attack46_ControlCharactersAreVisible) {
  const std::string evil = "\x1b]52;c;aGk=\x07\x1b[2J\xe2\x80\xae\xc2\x9b";
  const auto bytes =
      RawFile{.fields = {text_field("general.architecture", evil), text_field("general.name", evil),
                         text_field(evil, evil), text_field("tokenizer.ggml.model", evil),
                         text_field("tokenizer.ggml.pre", evil),
                         text_field("tokenizer.chat_template", evil),
                         text_field("tokenizer.chat_template." + evil, evil)},
              .tensors = {{.name = evil}, {.name = evil + "2", .type = 99}},
              .data_bytes = 128}
          .build();
  for (const bool json : {false, true}) {
    const std::string text = report(bytes, json);
    for (const char* raw : {"\x1b", "\x07", "\xe2\x80\xae", "\xc2\x9b"}) {
      EXPECT_EQ(text.find(raw), std::string::npos) << text;
    }
  }
}

TEST(Inspect, EveryGoldenModelIsShown) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CAIRN_FIXTURES "/golden")) {
    if (entry.path().extension() != ".gguf") continue;
    auto file = File::open(entry.path().string(), OpenMode::inspect);
    ASSERT_TRUE(file) << file.error().message;
    const std::string text = inspect_report(*file, false);
    EXPECT_NE(text.find("\nTensors ("), std::string::npos);
    EXPECT_NE(text.find("\nTokenizer\n"), std::string::npos);
    const auto json = nlohmann::json::parse(inspect_report(*file, true));
    EXPECT_EQ(json["tensors"].size(), file->tensors().size());
    EXPECT_EQ(json["metadata"].size(), file->fields().all().size());
    ++count;
  }
  EXPECT_GE(count, 82u);
}

}  // namespace
}  // namespace cairn::cli::inspect_test
