// Structures of pre-tokenizers and their names.
#include "convert/pretokenizer_name.h"

#include <gtest/gtest.h>

#include <string>

#include "convert/family.h"

namespace cairn::convert::pretokenizer_name_test {
namespace {

constexpr const char* kByteLevel = R"({"type": "ByteLevel", "add_prefix_space": false})";
constexpr const char* kBytesOnly =
    R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})";

std::string split(const std::string& expression) {
  return R"({"type": "Split", "behavior": "Isolated", "pattern": {"Regex": ")" + expression +
         R"("}})";
}

std::string name_of(const std::string& steps, const char* class_name,
                    const char* model = R"({"type": "BPE"})") {
  Result<Json> json = parse_json(R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [)" +
                                 steps + R"(]}, "model": )" + model + "}");
  EXPECT_TRUE(json) << json.error().message;
  Result<std::string_view> name = pretokenizer_name(*json, *find_family(class_name));
  return name ? std::string(*name) : "error: " + name.error().message;
}

TEST(PretokenizerName, TakesTheFamilysNameWhereSeveralCutAlike) {
  EXPECT_EQ(name_of(kByteLevel, "LlamaForCausalLM"), "gpt-2");
  EXPECT_EQ(name_of(kByteLevel, "PhiForCausalLM"), "phi-2");
  EXPECT_EQ(name_of(kByteLevel, "OlmoForCausalLM"), "olmo");
  const std::string digits =
      R"({"type": "Digits", "individual_digits": true}, )" + std::string(kByteLevel);
  EXPECT_EQ(name_of(digits, "Starcoder2ForCausalLM"), "starcoder");
  EXPECT_EQ(name_of(digits, "GraniteForCausalLM"), "refact");
  EXPECT_EQ(name_of(digits, "LlamaForCausalLM"), "smollm");
}

TEST(PretokenizerName, TellsExpressionsApart) {
  const std::string head = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|";
  const std::string tail =
      "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+";
  const std::string three = split(head + "\\\\p{N}{1,3}" + tail) + ", " + kBytesOnly;
  const std::string one = split(head + "\\\\p{N}" + tail) + ", " + kBytesOnly;
  const char* whole_words = R"({"type": "BPE", "ignore_merges": true})";
  EXPECT_EQ(name_of(three, "LlamaForCausalLM", whole_words), "llama-bpe");
  EXPECT_EQ(name_of(three, "Olmo2ForCausalLM"), "dbrx");
  EXPECT_EQ(name_of(one, "Qwen2ForCausalLM"), "qwen2");
}

TEST(PretokenizerName, KnowsSplitsInARow) {
  const std::string steps =
      split("\\\\p{N}{1,3}") + ", " + split("[一-龥\u3040-ゟ゠-ヿ]+") + ", " +
      split(
          "[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|"
          "[^\\r\\n\\\\p{L}\\\\p{P}\\\\p{S}]?[\\\\p{L}\\\\p{M}]+| "
          "?[\\\\p{P}\\\\p{S}]+[\\r\\n]*|\\\\s*[\\r\\n]+|\\\\s+(?!\\\\S)|\\\\s+") +
      ", " + kBytesOnly;
  EXPECT_EQ(name_of(steps, "DeepseekV3ForCausalLM"), "deepseek-v3");
  EXPECT_EQ(name_of(steps, "HunYuanDenseV1ForCausalLM"), "hunyuan-dense");
}

TEST(PretokenizerName, KnowsWhatIsKeptOfAWholeCover) {
  const std::string one =
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}"
      "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+";
  std::string steps = split(one) + ", " + kBytesOnly;
  EXPECT_EQ(name_of(steps, "Dots1ForCausalLM"), "qwen2");
  EXPECT_EQ(name_of(steps, "StableLmForCausalLM"), "stablelm2");
  const std::string isolated = R"("Isolated")", kept = R"("Removed", "invert": true)";
  steps.replace(steps.find(isolated), isolated.size(), kept);
  EXPECT_EQ(name_of(steps, "Dots1ForCausalLM"), "qwen2");
  EXPECT_EQ(
      name_of(split(" ?[^(\\\\s|[.,!?…。，、।۔،])]+") + ", " + kBytesOnly, "BloomForCausalLM"),
      "bloom");
}

TEST(PretokenizerName, NamesNothingThatItDoesNotKnow) {
  for (const std::string& steps :
       {split("\\\\p{L}+") + ", " + kBytesOnly, std::string(kBytesOnly),
        std::string(R"({"type": "ByteLevel", "add_prefix_space": true})"),
        std::string(R"({"type": "Whitespace"})"), std::string(R"({"type": "Split"})"),
        std::string("7")}) {
    EXPECT_TRUE(name_of(steps, "LlamaForCausalLM").starts_with("error: ")) << steps;
  }
}

}  // namespace
}  // namespace cairn::convert::pretokenizer_name_test
