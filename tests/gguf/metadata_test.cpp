// Hyper-parameters by name; ranges are tested with the attacks (tests/gguf/security_test.cpp).
#include "gguf/metadata.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "tests/gguf/raw_file.h"

namespace cairn::gguf::raw::metadata_test {
namespace {

class MetadataTest : public ::testing::Test {
 protected:
  Result<Metadata> open(std::vector<Bytes> fields) {
    bytes_ = RawFile{.fields = std::move(fields)}.build();
    auto file = File::from_bytes(bytes_, "x");
    EXPECT_TRUE(file) << file.error().message;
    file_.emplace(std::move(file).value());
    return file_->metadata();
  }

 private:
  std::vector<std::byte> bytes_;
  std::optional<File> file_;
};

Bytes architecture() {
  return text_field("general.architecture", "llama");
}

template <class T>
std::string error_of(Result<T> result) {
  return result ? "found" : result.error().message;
}

TEST_F(MetadataTest, KeysCarryTheArchitecture) {
  auto meta = open({architecture(), number_field("llama.block_count", ValueType::u16, uint16_t(3)),
                    number_field("llama.rope.freq_base", ValueType::f32, 5e5f),
                    number_field("llama.attention.causal", ValueType::boolean, uint8_t(0)),
                    text_field("llama.rope.scaling.type", "yarn")});
  ASSERT_TRUE(meta) << meta.error().message;
  EXPECT_EQ(meta->architecture(), "llama");
  EXPECT_EQ(meta->key("block_count"), "llama.block_count");
  EXPECT_TRUE(meta->has("block_count"));
  EXPECT_FALSE(meta->has("llama.block_count"));
  auto layers = meta->count("block_count");
  auto base = meta->real("rope.freq_base");
  auto causal = meta->flag("attention.causal");
  auto scaling = meta->text("rope.scaling.type");
  ASSERT_TRUE(layers && base && causal && scaling);
  EXPECT_EQ(*layers, 3);
  EXPECT_EQ(*base, 5e5f);
  EXPECT_FALSE(*causal);
  auto absent = meta->flag_or("absent", true);
  ASSERT_TRUE(absent);
  EXPECT_TRUE(*absent);
  EXPECT_EQ(*scaling, "yarn");
}

TEST_F(MetadataTest, AbsentKeysGiveTheFallbackOrAnErrorWithTheFullKey) {
  auto meta = open({architecture()});
  ASSERT_TRUE(meta);
  EXPECT_EQ(error_of(meta->count("block_count")),
            "llama.block_count: expected in the metadata, found nothing");
  auto count = meta->count_or("expert_count", 5);
  auto real = meta->real_or("logit_scale", 2.0f);
  auto text = meta->text_or("rope.scaling.type", "none");
  auto layers = meta->per_layer_or("attention.head_count_kv", 3, 8);
  ASSERT_TRUE(count && real && text && layers);
  EXPECT_EQ(*count, 5);
  EXPECT_EQ(*real, 2.0f);
  EXPECT_EQ(*text, "none");
  EXPECT_EQ(*layers, (std::vector<int32_t>{8, 8, 8}));
}

TEST_F(MetadataTest, ACountMayBeReplaced) {
  auto meta = open({architecture(), number_field("llama.block_count", ValueType::u16, uint16_t(3)),
                    number_field("llama.expert_used_count", ValueType::u32, uint32_t(0))});
  ASSERT_TRUE(meta) << meta.error().message;
  const Metadata other = meta->with_count("expert_used_count", 5);
  EXPECT_EQ(meta->count("expert_used_count").value(), 0);
  EXPECT_EQ(other.count("expert_used_count").value(), 5);
  EXPECT_EQ(other.count_or("expert_used_count", 1).value(), 5);
  EXPECT_EQ(other.with_count("expert_used_count", 7).count("expert_used_count").value(), 7);
  EXPECT_EQ(other.count("block_count").value(), 3);
}

TEST_F(MetadataTest, AWrongTypeIsAnErrorEvenWithAFallback) {
  auto meta = open({architecture(), text_field("llama.expert_count", "many"),
                    number_field("llama.logit_scale", ValueType::u32, 3u)});
  ASSERT_TRUE(meta);
  EXPECT_EQ(error_of(meta->count_or("expert_count", 5)),
            "llama.expert_count: expected an integer of 64 bits with sign, found string \"many\"");
  EXPECT_EQ(error_of(meta->real_or("logit_scale", 1.0f)),
            "llama.logit_scale: expected f32, found u32 3");
}

TEST_F(MetadataTest, PerLayerTakesAScalarOrAnArray) {
  auto meta =
      open({architecture(), number_field("llama.attention.head_count", ValueType::u32, 4u),
            array_field<int32_t>("llama.attention.head_count_kv", ValueType::i32, {0, 2, 0}),
            array_field<uint8_t>("llama.pattern", ValueType::boolean, {1, 0, 1}),
            number_field("llama.all", ValueType::boolean, uint8_t(1)),
            array_field<int32_t>("llama.feed_forward_length", ValueType::i32, {8, -1, 8})});
  ASSERT_TRUE(meta) << meta.error().message;
  const auto layers = [&](std::string_view name) {
    auto values = meta->per_layer(name, 3);
    EXPECT_TRUE(values) << values.error().message;
    return std::move(values).value();
  };
  EXPECT_EQ(layers("attention.head_count"), (std::vector<int32_t>{4, 4, 4}));
  EXPECT_EQ(layers("attention.head_count_kv"), (std::vector<int32_t>{0, 2, 0}));
  EXPECT_EQ(layers("pattern"), (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(layers("all"), (std::vector<int32_t>{1, 1, 1}));
  EXPECT_EQ(error_of(meta->per_layer("attention.head_count_kv", 4)),
            "llama.attention.head_count_kv: expected 4 values, one for each layer, found 3");
  EXPECT_EQ(error_of(meta->per_layer("feed_forward_length", 3)),
            "llama.feed_forward_length: element 1: expected 0 to 1048576, found -1");
  EXPECT_EQ(error_of(meta->per_layer("absent", 3)),
            "llama.absent: expected in the metadata, found nothing");
}

TEST_F(MetadataTest, PerLayerRealsAllowInfinityButNotNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  auto meta =
      open({architecture(), array_field<float>("llama.scale", ValueType::f32, {1.5f, -infinity}),
            array_field<float>("llama.bad", ValueType::f32, {1.5f, nan}),
            number_field("llama.one", ValueType::f32, 0.5f)});
  ASSERT_TRUE(meta);
  auto values = meta->per_layer_reals("scale", 2);
  auto one = meta->per_layer_reals("one", 2);
  ASSERT_TRUE(values && one);
  EXPECT_EQ(*values, (std::vector<float>{1.5f, -infinity}));
  EXPECT_EQ(*one, (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(error_of(meta->per_layer_reals("scale", 3)),
            "llama.scale: expected 3 values, one for each layer, found 2");
  EXPECT_EQ(error_of(meta->per_layer_reals("absent", 3)),
            "llama.absent: expected in the metadata, found nothing");
  EXPECT_EQ(error_of(meta->per_layer_reals("bad", 2)),
            "llama.bad: layer 1: expected a number, found nan");
}

TEST_F(MetadataTest, TheArchitectureMustBeAName) {
  EXPECT_EQ(error_of(open({})), "x: general.architecture: expected in the metadata, found nothing");
  for (const char* name : {"", "a b", "a\n", "../x"}) {
    const std::string error = error_of(open({text_field("general.architecture", name)}));
    if (std::string_view(name) == "../x") {
      EXPECT_NE(error.find("found \"../x\""), std::string::npos) << error;
    } else {
      EXPECT_NE(error.find("expected 1 to 64 letters"), std::string::npos) << error;
    }
  }
}

TEST_F(MetadataTest, EveryLetterDigitAndMarkOfANameIsAllowed) {
  auto meta = open({text_field("general.architecture", "aZ09-_.x")});
  ASSERT_TRUE(meta) << meta.error().message;
  EXPECT_EQ(meta->architecture(), "aZ09-_.x");
  EXPECT_FALSE(open({text_field("general.architecture", std::string(65, 'a'))}));
}

// Honest models keep all ranges and relations.
TEST(Metadata, EveryGoldenModelPasses) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CAIRN_FIXTURES "/golden")) {
    if (entry.path().extension() != ".gguf") continue;
    auto file = File::open(entry.path().string());
    ASSERT_TRUE(file) << file.error().message;
    auto meta = file->metadata();
    ASSERT_TRUE(meta) << meta.error().message;
    auto layers = meta->count("block_count");
    auto width = meta->count("embedding_length");
    auto context = meta->count("context_length");
    ASSERT_TRUE(layers && width && context) << entry.path();
    auto heads = meta->per_layer_or("attention.head_count_kv", *layers, 0);
    auto inner = meta->per_layer_or("feed_forward_length", *layers, 0);
    ASSERT_TRUE(heads) << heads.error().message;
    ASSERT_TRUE(inner) << inner.error().message;
    auto weight = file->weight("token_embd.weight");
    ASSERT_TRUE(weight) << entry.path() << weight.error().message;
    EXPECT_EQ((*weight)->dims[0], *width);
    ++count;
  }
  EXPECT_GE(count, 77u);
}

}  // namespace
}  // namespace cairn::gguf::raw::metadata_test
