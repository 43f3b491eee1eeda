// What is recorded for workers: the numbers as they are decoded here, in a file that nobody can
// change, and by name what is not recorded.
#include "runtimes/worker/recorded_model.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "quant/quant.h"

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
