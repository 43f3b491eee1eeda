// What names say. The answers are those of the usual converter.
#include "convert/model_name.h"

#include <gtest/gtest.h>

namespace cairn::convert::model_name_test {
namespace {

TEST(ModelName, SaysWhatTheUsualConverterReads) {
  const struct {
    const char* id;
    int64_t weights;
    const char *full, *organization, *basename, *finetune, *version, *size;
  } cases[] = {
      {"meta-llama/Llama-3.1-8B-Instruct", 8030261248, "Llama-3.1-8B-Instruct", "meta-llama",
       "Llama-3.1", "Instruct", "", "8B"},
      {"Mistral/Mixtral-8x7B-Instruct-v0.1", 46702792704, "Mixtral-8x7B-Instruct-v0.1", "Mistral",
       "Mixtral", "Instruct", "v0.1", "8x7B"},
      {"Qwen3-30B-A3B-Instruct-2507", 30532122624, "Qwen3-30B-A3B-Instruct-2507", "", "Qwen3",
       "Instruct", "2507", "30B-A3B"},
      {"google/gemma-2-9b-it", 9241705984, "gemma-2-9b-it", "google", "gemma-2", "it", "", "9B"},
      {"Phi-3-mini-4k-instruct", 3821079552, "Phi-3-mini-4k-instruct", "", "Phi-3", "4k-instruct",
       "", "mini"},
      {"Phi-3-mini-128k-instruct", 3821079552, "Phi-3-mini-128k-instruct", "", "Phi-3",
       "128k-instruct", "", "mini"},
      {"bigscience/bloom-7b1-petals", 7069016064, "bloom-7b1-petals", "bigscience", "bloom",
       "petals", "", "7.1B"},
      {"SmolLM3-3B", 3075098624, "SmolLM3-3B", "", "SmolLM3", "", "", "3B"},
      {"allenai/OLMo-2-1124-7B-Instruct", 7298617344, "OLMo-2-1124-7B-Instruct", "allenai",
       "OLMo-2-1124", "Instruct", "", "7B"},
      {"granite-3.1-1b-a400m-instruct", 1334628352, "granite-3.1-1b-a400m-instruct", "",
       "granite-3.1", "instruct", "", "1B-a400M"},
      {"NousResearch/Hermes-2-Theta-Llama-3-8B", 8030261248, "Hermes-2-Theta-Llama-3-8B",
       "NousResearch", "Hermes-2-Theta-Llama-3", "", "", "8B"},
      {"tiny-llama", 123456, "tiny-llama", "", "", "", "", ""},
      {"model", 1000, "model", "", "", "", "", ""},
      {"./somewhere", 1000, "somewhere", "", "", "", "", ""},
      {"an ordinary name", 7, "an ordinary name", "", "", "", "", ""},
      {"TinyLlama-1.1B-Chat-v1.0", 1100048384, "TinyLlama-1.1B-Chat-v1.0", "", "TinyLlama", "Chat",
       "v1.0", "1.1B"},
      {"Qwen2.5-Coder-0.5B-Q4_K_M", 494032768, "Qwen2.5-Coder-0.5B-Q4_K_M", "", "Qwen2.5-Coder", "",
       "", "0.5B"},
      {"starcoder2-15b-iter2.5-lora", 15957889024, "starcoder2-15b-iter2.5-lora", "", "starcoder2",
       "lora", "iter2.5", "15B"},
      {"v1.5-thing-xl-large", 1000000000, "v1.5-thing-xl-large", "", "v1.5-thing", "", "",
       "xl-large"},
      {"--a--b--", 10, "--a--b--", "", "", "", "", ""},
      {"x-7b-bf16", 7000000000, "x-7b-bf16", "", "x", "", "", "7B"},
  };
  for (const auto& c : cases) {
    const ModelName name = parse_model_name(c.id, c.weights);
    EXPECT_EQ(name.full, c.full) << c.id;
    EXPECT_EQ(name.organization, c.organization) << c.id;
    EXPECT_EQ(name.basename, c.basename) << c.id;
    EXPECT_EQ(name.finetune, c.finetune) << c.id;
    EXPECT_EQ(name.version, c.version) << c.id;
    EXPECT_EQ(name.size_label, c.size) << c.id;
  }
}

TEST(ModelName, MakesTitles) {
  EXPECT_EQ(title_of("Mixtral-8x7B-Instruct-v0.1"), "Mixtral 8x7B Instruct v0.1");
  EXPECT_EQ(title_of("gemma-2-9b-it"), "Gemma 2 9b It");
  EXPECT_EQ(title_of("qwen2.5-coder"), "Qwen2.5 Coder");
  EXPECT_EQ(title_of("GPT-neox"), "GPT Neox");
}

TEST(ModelName, RoundsSizes) {
  EXPECT_EQ(size_label({.total = 8'030'261'248}), "8.0B");
  EXPECT_EQ(size_label({.total = 596'049'920}), "596M");
  EXPECT_EQ(size_label({.total = 70'553'706'496}), "71B");
  EXPECT_EQ(size_label({.total = 1'500'000'000'000}), "1.5T");
  EXPECT_EQ(size_label({.total = 123'456}), "123K");
  EXPECT_EQ(size_label({.total = 123}), "0.12K");
  EXPECT_EQ(size_label({.total = 46'702'792'704,
                        .shared = 1'605'644'288,
                        .of_expert = 5'637'144'576,
                        .expert_count = 8}),
            "8x7.2B");
}

}  // namespace
}  // namespace cairn::convert::model_name_test
