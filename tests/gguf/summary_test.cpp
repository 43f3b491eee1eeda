// The summary of a file that has a bit of everything, and of one that has nothing.
#include "gguf/summary.h"

#include <gtest/gtest.h>

#include "gguf/writer.h"
#include "quant/quant.h"

namespace cairn::gguf::summary_test {
namespace {

TEST(Summary, SaysWhatStandsInTheFile) {
  Writer writer;
  writer.add("general.architecture", "llama");
  writer.add("general.name", "A model");
  writer.add("tokenizer.ggml.model", "gpt2");
  const std::vector<std::string> tokens{"<s>", "a", "b"}, merges{"a b"};
  writer.add_array("tokenizer.ggml.tokens", std::span<const std::string>(tokens));
  writer.add_array("tokenizer.ggml.merges", std::span<const std::string>(merges));
  const std::vector<int32_t> types{3, 1, 1};
  writer.add_array("tokenizer.ggml.token_type", std::span<const int32_t>(types));
  writer.add("tokenizer.ggml.bos_token_id", uint32_t(0));
  writer.add("tokenizer.ggml.eos_token_id", uint32_t(7));
  writer.add("tokenizer.ggml.add_bos_token", true);
  writer.add("tokenizer.chat_template", "{{ messages }}");
  const quant::Type& f32 = *quant::find("F32");
  const quant::Type& q8 = *quant::find("Q8_0");
  const int64_t vector_dims[] = {32}, matrix_dims[] = {32, 64};
  writer.declare("norm", vector_dims, f32.gguf_id);
  writer.declare("matrix", matrix_dims, q8.gguf_id);
  std::vector<std::byte> bytes;
  TensorStream stream = writer.open_memory(bytes).value();
  ASSERT_TRUE(stream.append(std::vector<std::byte>(32 * 4)));
  ASSERT_TRUE(stream.append(std::vector<std::byte>(64 * 34)));
  ASSERT_TRUE(stream.finish());
  const File file = File::from_bytes(bytes, "test").value();

  const Summary summary = summarise(file);
  EXPECT_EQ(summary.architecture, "llama");
  EXPECT_EQ(summary.name, "A model");
  EXPECT_EQ(summary.weight_count, 32u + 32 * 64);
  EXPECT_EQ(summary.tensor_bytes, 32u * 4 + 64 * 34);
  EXPECT_DOUBLE_EQ(summary.bits_per_weight, 8.0 * (32 * 4 + 64 * 34) / (32 + 32 * 64));
  ASSERT_EQ(summary.types.size(), 2u);
  EXPECT_EQ(summary.types[0].type_id, q8.gguf_id) << "the largest first";
  EXPECT_EQ(summary.types[0].tensor_count, 1u);
  ASSERT_TRUE(summary.tokenizer);
  EXPECT_EQ(summary.tokenizer->model, "gpt2");
  EXPECT_EQ(summary.tokenizer->token_count, 3u);
  EXPECT_EQ(summary.tokenizer->merge_count, 1u);
  const std::vector<std::pair<std::string, uint64_t>> kinds{{"control", 1}, {"normal", 2}};
  EXPECT_EQ(summary.tokenizer->kinds, kinds);
  ASSERT_EQ(summary.tokenizer->specials.size(), 2u);
  EXPECT_EQ(summary.tokenizer->specials[0].piece, "<s>");
  EXPECT_EQ(summary.tokenizer->specials[1].id, 7);
  EXPECT_FALSE(summary.tokenizer->specials[1].piece) << "beyond the vocabulary";
  ASSERT_EQ(summary.tokenizer->flags.size(), 1u);
  EXPECT_EQ(summary.tokenizer->flags[0].first, "add_bos_token");
  ASSERT_EQ(summary.templates.size(), 1u);
  EXPECT_EQ(summary.templates[0].second, "{{ messages }}");
}

TEST(Summary, OfAnEmptyFileIsEmpty) {
  std::vector<std::byte> bytes;
  TensorStream stream = Writer().open_memory(bytes).value();
  ASSERT_TRUE(stream.finish());
  const File file = File::from_bytes(bytes, "test").value();
  const Summary summary = summarise(file);
  EXPECT_EQ(summary.architecture, "");
  EXPECT_EQ(summary.bits_per_weight, 0);
  EXPECT_FALSE(summary.tokenizer);
  EXPECT_TRUE(summary.types.empty());
}

}  // namespace
}  // namespace cairn::gguf::summary_test
