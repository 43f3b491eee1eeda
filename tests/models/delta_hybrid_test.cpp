// The metadata of Qwen3-Next and Qwen 3.5 as files have it in several ways: which layers recur,
// layers that predict further tokens, sizes that do not fit together.
#include "models/common/delta_hybrid.h"

#include <gtest/gtest.h>

#include <functional>

#include "gguf/gguf.h"
#include "gguf/writer.h"

namespace cairn::models::delta_hybrid_test {
namespace {

using Fill = std::function<void(gguf::Writer& writer)>;

// A file of eight layers; `fill` adds what the case is about.
Result<std::unique_ptr<Model>> create(uint32_t head_count, const Fill& fill) {
  gguf::Writer writer;
  writer.add("general.architecture", "qwen35");
  const std::pair<const char*, uint32_t> counts[] = {{"block_count", 8},
                                                     {"context_length", 512},
                                                     {"embedding_length", 64},
                                                     {"feed_forward_length", 160},
                                                     {"vocab_size", 384},
                                                     {"attention.head_count", 4},
                                                     {"attention.head_count_kv", 2},
                                                     {"attention.key_length", 32},
                                                     {"attention.value_length", 32},
                                                     {"rope.dimension_count", 8},
                                                     {"ssm.conv_kernel", 4},
                                                     {"ssm.state_size", 16},
                                                     {"ssm.group_count", 2},
                                                     {"ssm.time_step_rank", head_count},
                                                     {"ssm.inner_size", 96}};
  for (const auto& [name, value] : counts) writer.add(std::string("qwen35.") + name, value);
  writer.add("qwen35.attention.layer_norm_rms_epsilon", 1e-6f);
  fill(writer);
  std::vector<std::byte> bytes;
  CAIRN_TRY(gguf::TensorStream stream, writer.open_memory(bytes));
  CAIRN_TRY(stream.finish());
  CAIRN_TRY(const gguf::File file, gguf::File::from_bytes(bytes, "test"));
  CAIRN_TRY(const gguf::Metadata meta, file.metadata());
  CAIRN_TRY(const Architecture* architecture, find_architecture("qwen35"));
  return architecture->create(meta);
}

// One letter a layer: r recurs, a attends.
std::string layers_of(const Fill& fill) {
  Result<std::unique_ptr<Model>> model = create(6, fill);
  if (!model) return model.error().message;
  std::string text;
  for (int32_t layer = 0; layer < (*model)->size().layer_count; ++layer) {
    const std::vector<State> states = (*model)->layer_states(layer);
    EXPECT_EQ(states.size(), 1u);
    text += states[0].kind == State::Kind::recurrent ? 'r' : 'a';
  }
  return text;
}

TEST(DeltaHybrid, LayersAttendAsTheFileSays) {
  EXPECT_EQ(layers_of([](gguf::Writer&) {}), "rrrarrra");
  EXPECT_EQ(layers_of([](gguf::Writer& writer) {
              writer.add("qwen35.full_attention_interval", uint32_t(3));
            }),
            "rrarrarr");
  EXPECT_EQ(layers_of([](gguf::Writer& writer) {
              writer.add_booleans("qwen35.attention.recurrent_layers",
                                  {true, false, true, true, true, true, true, false});
            }),
            "rarrrrra");
}

TEST(DeltaHybrid, PredictingLayersAreLeftOut) {
  EXPECT_EQ(layers_of([](gguf::Writer& writer) {
              writer.add("qwen35.nextn_predict_layers", uint32_t(1));
            }),
            "rrrarrr");
  EXPECT_EQ(layers_of([](gguf::Writer& writer) {
              writer.add("qwen35.nextn_predict_layers", uint32_t(8));
            }),
            "qwen35.nextn_predict_layers: expected less than 8 layers, found 8");
}

TEST(DeltaHybrid, StatesHaveTheShapeOfTheHeads) {
  auto model = create(6, [](gguf::Writer&) {});
  ASSERT_TRUE(model) << model.error().message;
  // 3 inputs of 2 * 2 * 16 + 96 channels; 6 heads of 16 keys and 16 values.
  EXPECT_EQ((*model)->layer_states(0)[0].tensor_floats, (std::vector<int64_t>{3 * 160, 6 * 256}));
}

TEST(DeltaHybrid, HeadsThatDoNotFitAreNamed) {
  auto model = create(3, [](gguf::Writer&) {});
  ASSERT_FALSE(model);
  EXPECT_EQ(
      model.error().message,
      "qwen35.ssm.time_step_rank: expected a divisor of 96 and a multiple of 2 groups, found 3");
}

}  // namespace
}  // namespace cairn::models::delta_hybrid_test
