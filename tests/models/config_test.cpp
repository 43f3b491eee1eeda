// What metadata say of windows, shared keys and values and heads, and what they must not say.
#include "models/common/config.h"

#include <gtest/gtest.h>

#include "gguf/gguf.h"
#include "gguf/writer.h"

namespace cairn::models::config_test {
namespace {

using Counts = std::vector<int32_t>;

// A small model of six layers, to which a test adds what it is about.
class Described {
 public:
  explicit Described(const std::string& architecture = "gemma4") : prefix_(architecture + ".") {
    writer_.add("general.architecture", architecture);
    for (const auto& [name, value] : {std::pair("block_count", 6),
                                      {"context_length", 64},
                                      {"embedding_length", 64},
                                      {"vocab_size", 300},
                                      {"feed_forward_length", 96},
                                      {"attention.key_length", 32},
                                      {"attention.value_length", 32},
                                      {"attention.sliding_window", 16}}) {
      add(name, value);
    }
    writer_.add(prefix_ + "attention.layer_norm_rms_epsilon", 1e-6f);
  }

  Described& add(const std::string& name, int32_t value) {
    writer_.add(prefix_ + name, uint32_t(value));
    return *this;
  }
  Described& add(const std::string& name, const Counts& values) {
    writer_.add_array(prefix_ + name, std::span<const int32_t>(values));
    return *this;
  }

  // Calls body(metadata).
  template <class Body>
  auto with_metadata(const Body& body) const {
    std::vector<std::byte> bytes;
    gguf::TensorStream stream = std::move(writer_.open_memory(bytes)).value();
    EXPECT_TRUE(stream.finish());
    const gguf::File file = std::move(gguf::File::from_bytes(bytes, "described")).value();
    const gguf::Metadata meta = file.metadata().value();
    return body(meta);
  }

  // What making the model says: "" where it goes well.
  std::string complaint() const {
    return with_metadata([](const gguf::Metadata& meta) -> std::string {
      const auto model = find_architecture(meta.architecture()).value()->create(meta);
      return model ? "" : model.error().message;
    });
  }

 private:
  std::string prefix_;
  gguf::Writer writer_;
};

// Of as many heads in every layer.
Described described_with_heads(const std::string& architecture = "gemma4") {
  return Described(architecture).add("attention.head_count", 4);
}

const Counts kPattern = {1, 1, 0, 1, 1, 0};

Counts windows_of(const Described& described, int32_t period, int32_t window = 0) {
  return described.with_metadata(
      [&](const gguf::Metadata& meta) { return read_windows(meta, 6, period, window).value(); });
}

TEST(Config, WindowsComeFromAPatternOrAPeriod) {
  EXPECT_EQ(windows_of(Described(), 3), (Counts{16, 16, 0, 16, 16, 0}));
  EXPECT_EQ(windows_of(Described(), 0), (Counts{16, 16, 16, 16, 16, 16}));
  EXPECT_EQ(windows_of(Described().add("attention.sliding_window_pattern", 2), 3),
            (Counts{16, 0, 16, 0, 16, 0}));
  EXPECT_EQ(windows_of(Described().add("attention.sliding_window_pattern", {0, 0, 1, 0, 0, 1}), 3),
            (Counts{0, 0, 16, 0, 0, 16}));
}

TEST(Config, SharedLayersReadTheLastOfTheirKind) {
  Described().with_metadata([](const gguf::Metadata& meta) {
    const Counts windows = {8, 8, 0, 8, 8, 0};
    EXPECT_EQ(layers_of_kv(meta, windows, 0).value(), (Counts{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(layers_of_kv(meta, windows, 3).value(), (Counts{0, 1, 2, 1, 1, 2}));
    EXPECT_FALSE(layers_of_kv(meta, windows, 4));  // None before them attends to all.
    EXPECT_FALSE(layers_of_kv(meta, windows, 6));
    EXPECT_FALSE(layers_of_kv(meta, windows, 1000));
    return 0;
  });
}

TEST(Config, SlopesHalveFromHeadToHead) {
  Described described;
  described.with_metadata([](const gguf::Metadata& meta) {
    DecoderConfig c{.head_counts = {6, 6}};
    const std::vector<float> slopes = read_slopes(meta, c, 8.0f).value();
    const std::vector<float> expected = {0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f};
    EXPECT_EQ(slopes, expected);
    EXPECT_FALSE(read_slopes(meta, c, 0.0f));
    c.head_counts = {6, 4};
    EXPECT_FALSE(read_slopes(meta, c, 8.0f));
    return 0;
  });
}

TEST(Config, ModelsThatContradictThemselvesAreRefused) {
  const auto described = [] {
    return described_with_heads().add("attention.sliding_window_pattern", kPattern);
  };
  EXPECT_EQ(described().add("attention.head_count_kv", 2).complaint(), "");
  // No pattern.
  EXPECT_NE(described_with_heads().add("attention.head_count_kv", 2).complaint(), "");
  EXPECT_NE(described().add("attention.head_count_kv", {2, 2, 0, 2, 2, 2}).complaint(), "");
  EXPECT_NE(described().add("attention.head_count_kv", {2, 2, 3, 2, 2, 2}).complaint(), "");
  EXPECT_NE(described().add("attention.shared_kv_layers", 6).complaint(), "");
  EXPECT_NE(described().add("attention.key_length_swa", 16).complaint(), "");  // Values: still 32.
  EXPECT_NE(described().add("rope.dimension_count_swa", 16).complaint(), "");
  EXPECT_NE(described().add("expert_count", 4).complaint(), "");
  EXPECT_NE(described()
                .add("expert_count", 4)
                .add("expert_used_count", 0)
                .add("expert_feed_forward_length", 32)
                .complaint(),
            "");
}

TEST(Config, LatentHeadsAreAsManyInEveryLayer) {
  const auto latent = [] {
    return Described("deepseek2")
        .add("attention.head_count_kv", 1)
        .add("attention.key_length_mla", 24)
        .add("attention.value_length_mla", 16)
        .add("attention.kv_lora_rank", 32)
        .add("rope.dimension_count", 8);
  };
  EXPECT_EQ(latent().add("attention.head_count", 4).complaint(), "");
  EXPECT_EQ(latent().add("attention.head_count", {4, 4, 4, 4, 4, 4}).complaint(), "");
  EXPECT_EQ(latent().add("attention.head_count", {4, 4, 4, 2, 4, 4}).complaint(),
            "deepseek2.attention.head_count: expected 4 in all layers, found 2");
}

TEST(Config, LatentHeadsThatAreKeptAreAsManyAsThoseThatAsk) {
  const auto joined = [] {
    return described_with_heads("deepseek2")
        .add("attention.kv_lora_rank", 32)
        .add("rope.dimension_count", 8);
  };
  EXPECT_EQ(joined().add("attention.head_count_kv", 4).complaint(), "");
  EXPECT_EQ(joined().add("attention.head_count_kv", 1).complaint(),
            "deepseek2.attention.head_count_kv: expected 4 where "
            "deepseek2.attention.key_length_mla is not given, found 1");
}

// Heads times widths would be more than an int32_t holds, or nothing that can be divided by.
TEST(Config, HeadsOfRecurrencesAreAsWideAsOthersMayBe) {
  const auto kimi = [](int32_t head_dim) {
    return described_with_heads("kimi-linear")
        .add("attention.head_count_kv", {0, 0, 1, 0, 0, 1})
        .add("attention.key_length_mla", 24)
        .add("attention.value_length_mla", 16)
        .add("attention.kv_lora_rank", 32)
        .add("rope.dimension_count", 8)
        .add("ssm.conv_kernel", 4)
        .add("kda.head_dim", head_dim)
        .complaint();
  };
  EXPECT_EQ(kimi(16), "");
  EXPECT_EQ(kimi(0), "kimi-linear.kda.head_dim: expected 1 to 1024, found 0");
  EXPECT_EQ(kimi(2147483647), "kimi-linear.kda.head_dim: expected 1 to 1024, found 2147483647");
  const auto rwkv = [](int32_t head_size, int32_t rank) {
    Described described = described_with_heads("rwkv7");
    for (const char* name : {"decay", "iclr", "value_residual_mix", "gate"}) {
      described.add(std::string("attention.") + name + "_lora_rank", rank);
    }
    return described.add("wkv.head_size", head_size).complaint();
  };
  EXPECT_EQ(rwkv(16, 8), "");
  EXPECT_EQ(rwkv(0, 8), "rwkv7.wkv.head_size: expected 1 to 1024, found 0");
  EXPECT_EQ(rwkv(24, 8), "rwkv7.wkv.head_size: expected a divisor of the width 64, found 24");
  EXPECT_EQ(rwkv(16, 0), "rwkv7.attention.decay_lora_rank: expected 1 to 65536, found 0");
}

}  // namespace
}  // namespace cairn::models::config_test
