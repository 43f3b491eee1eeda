// What is recorded for workers: the numbers as they are decoded here, in a file that nobody can
// change, and by name what is not recorded.
#include "runtimes/worker/recorded_model.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "quant/quant.h"
#include "quantize/quantize.h"
#include "tests/scratch_folder.h"

namespace cairn::recorded_model_test {
namespace {

Result<gguf::File> open(const std::string& name) {
  return gguf::File::open(std::string(CAIRN_FIXTURES) + "/golden/" + name + ".gguf");
}

TEST(RecordedModel, HoldsTheNumbersOfTheFile) {
  auto file = open("llama");
  ASSERT_TRUE(file);
  auto recorded = runtimes::record_model(*file);
  ASSERT_TRUE(recorded);
  EXPECT_EQ(recorded->vocabulary_count, 384);
  EXPECT_EQ(recorded->context_tokens, 512);
  std::vector<std::byte> bytes(recorded->weights_bytes);
  ASSERT_EQ(::pread(recorded->weights.number(), bytes.data(), bytes.size(), 0),
            ssize_t(bytes.size()));
  const auto json = nlohmann::json::parse("{" + recorded->json + "}");
  EXPECT_EQ(json["planes"].size(), 4u);
  EXPECT_EQ(json["planes"][0], nlohmann::json::parse("[2,16,16,false]"));
  size_t matmul_count = 0;
  const gguf::Tensor* const output = file->find("output.weight");
  for (const auto& op : json["ops"]) {
    if (op[0] != "MatMul") continue;
    ++matmul_count;
    if (op[1]["weight"][2][0] != 384) continue;
    EXPECT_EQ(op[1]["weight"][1], "f2");
    EXPECT_EQ(std::memcmp(bytes.data() + size_t(op[1]["weight"][0]), output->bytes.data(),
                          output->bytes.size()),
              0);
  }
  EXPECT_EQ(matmul_count, 4u * 7 + 1);
  EXPECT_LT(::pwrite(recorded->weights.number(), "x", 1, 0), 0);
  EXPECT_NE(::ftruncate(recorded->weights.number(), 0), 0);
}

// As f32, decoded as for cairn's own kernels.
TEST(RecordedModel, DecodesQuantizedWeights) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("q8.gguf");
  ASSERT_TRUE(quantize::quantize({.in_path = std::string(CAIRN_FIXTURES) + "/golden/llama.gguf",
                                  .out_path = path,
                                  .mix = "Q8_0",
                                  .thread_count = 2}));
  auto file = gguf::File::open(path);
  ASSERT_TRUE(file);
  auto recorded = runtimes::record_model(*file);
  ASSERT_TRUE(recorded);
  std::vector<std::byte> bytes(recorded->weights_bytes);
  ASSERT_EQ(::pread(recorded->weights.number(), bytes.data(), bytes.size(), 0),
            ssize_t(bytes.size()));
  const auto json = nlohmann::json::parse("{" + recorded->json + "}");
  const gguf::Tensor* const output = file->find("output.weight");
  ASSERT_EQ(output->type->name, "Q8_0");
  std::vector<float> expected(size_t(output->weight_count));
  quant::decode_row(*output->type, output->bytes, expected);
  size_t found_count = 0;
  for (const auto& op : json["ops"]) {
    EXPECT_NE(op[0], "Quantize");
    if (op[0] != "MatMul") continue;
    EXPECT_EQ(op[1]["weight"][1], "f4");
    EXPECT_EQ(op[1]["x"].size(), 3u);
    if (op[1]["weight"][2][0] != 384) continue;
    ++found_count;
    EXPECT_EQ(std::memcmp(bytes.data() + size_t(op[1]["weight"][0]), expected.data(),
                          expected.size() * sizeof(float)),
              0);
  }
  EXPECT_EQ(found_count, 1u);
}

TEST(RecordedModel, NamesWhatOthersDoNotCompute) {
  const std::pair<const char*, const char*> cases[] = {
      {"mixtral", "experts"}, {"mamba2", "recurrent layers"}, {"gptoss", "attention sinks"}};
  for (const auto& [name, what] : cases) {
    auto file = open(name);
    ASSERT_TRUE(file);
    const Status status = runtimes::check_recordable(*file);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::unsupported);
    EXPECT_EQ(status.error().message,
              "the model has " + std::string(what) + ", which other runtimes do not compute");
  }
}

}  // namespace
}  // namespace cairn::recorded_model_test
