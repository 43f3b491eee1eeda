// The seeds of the fuzz target (fuzz/corpus/gguf) are made here: small files that reach each branch
// of the reader, good ones by the writer, bad ones byte by byte. The test writes them under the
// build folder and compares; after a change, copy them from there.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/output_file.h"
#include "base/text/byte_text.h"
#include "gguf/writer.h"
#include "quant/quant.h"
#include "tests/gguf/raw_file.h"

namespace cairn::gguf::raw::corpus_test {
namespace {

using Seeds = std::map<std::string, std::vector<std::byte>>;

std::vector<std::byte> written(const Writer& writer, uint64_t data_bytes) {
  std::vector<std::byte> bytes;
  auto stream = writer.open_memory(bytes);
  EXPECT_TRUE(stream) << stream.error().message;
  for (uint64_t at = 0; at < data_bytes; ++at) {
    const std::byte byte{uint8_t(at * 37)};
    EXPECT_TRUE(stream->append(std::span(&byte, 1)));
  }
  EXPECT_TRUE(stream->finish());
  return bytes;
}

std::vector<std::byte> all_values() {
  Writer writer;
  writer.add("u8", uint8_t(200));
  writer.add("i8", int8_t(-100));
  writer.add("u16", uint16_t(50000));
  writer.add("i16", int16_t(-20000));
  writer.add("u32", uint32_t(4000000000));
  writer.add("i32", int32_t(-2000000000));
  writer.add("f32", 0.5f);
  writer.add("bool", true);
  writer.add("string", "text");
  writer.add("u64", uint64_t(1) << 63);
  writer.add("i64", -(int64_t(1) << 62));
  writer.add("f64", 0.25);
  return written(writer, 0);
}

std::vector<std::byte> all_arrays() {
  Writer writer;
  const auto add = [&]<class T>(std::string_view key, const std::vector<T>& values) {
    writer.add_array(key, std::span<const T>(values));
  };
  add("u8", std::vector<uint8_t>{1, 2});
  add("i8", std::vector<int8_t>{-1, 2});
  add("u16", std::vector<uint16_t>{1, 2});
  add("i16", std::vector<int16_t>{-1, 2});
  add("u32", std::vector<uint32_t>{1, 2});
  add("i32", std::vector<int32_t>{-1, 2});
  add("u64", std::vector<uint64_t>{1, UINT64_MAX});
  add("i64", std::vector<int64_t>{-1, 2});
  add("f32", std::vector<float>{0.5f, -2.0f});
  add("f64", std::vector<double>{0.5, -2.0});
  add("empty", std::vector<int32_t>{});
  writer.add_array("string", std::vector<std::string>{"", "a", "bc"});
  writer.add_array("strings", std::vector<std::string>{});
  writer.add_booleans("bool", {true, false});
  return written(writer, 0);
}

std::vector<std::byte> all_types() {
  Writer writer(64);
  uint64_t data_bytes = 0;
  for (const quant::Type* type : quant::all()) {
    const int64_t dims[] = {type->block_weights, 2};
    writer.declare(type->name, dims, type->gguf_id);
    data_bytes += 2 * uint64_t(type->block_bytes);
  }
  return written(writer, data_bytes);
}

std::vector<std::byte> model() {
  const std::vector<int32_t> kv_heads = {0, 2, 0, 2};
  const std::vector<int32_t> token_types = {1, 1, 1, 3};
  Writer writer;
  writer.add("general.architecture", "moe");
  writer.add("general.name", "seed");
  writer.add("moe.block_count", uint32_t(4));
  writer.add("moe.embedding_length", uint32_t(32));
  writer.add("moe.attention.head_count", uint32_t(4));
  writer.add_array("moe.attention.head_count_kv", std::span<const int32_t>(kv_heads));
  writer.add("moe.attention.layer_norm_rms_epsilon", 1e-5f);
  writer.add("moe.expert_count", uint32_t(8));
  writer.add("moe.expert_used_count", uint32_t(2));
  writer.add("moe.rope.freq_base", 10000.0f);
  writer.add_booleans("moe.attention.sliding_window_pattern", {true, false, true, false});
  writer.add("tokenizer.ggml.model", "gpt2");
  writer.add("tokenizer.ggml.pre", "llama-bpe");
  writer.add_array("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "ab", "<|end|>"});
  writer.add_array("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  writer.add_array("tokenizer.ggml.token_type", std::span<const int32_t>(token_types));
  writer.add("tokenizer.ggml.eos_token_id", uint32_t(3));
  writer.add("tokenizer.chat_template", "{{ messages[0].content }}");
  writer.declare("token_embd.weight", std::vector<int64_t>{32, 4}, 8);
  writer.declare("blk.0.attn_norm.weight", std::vector<int64_t>{32}, 0);
  return written(writer, 4 * 34 + 32 * 4);
}

Seeds good_seeds() {
  Seeds seeds;
  seeds["empty"] = RawFile{}.build();
  seeds["version2"] = RawFile{.version = 2,
                              .fields = {text_field("k", "v")},
                              .tensors = {{.dims = {8, 2, 2, 1}}},
                              .data_bytes = 128}
                          .build();
  seeds["values"] = all_values();
  seeds["arrays"] = all_arrays();
  seeds["types"] = all_types();
  seeds["model"] = model();
  seeds["alignment"] = RawFile{.fields = {number_field("general.alignment", ValueType::u32, 8u)},
                               .tensors = {{.name = "a", .dims = {2}}, {.name = "b", .offset = 8}},
                               .data_bytes = 136,
                               .alignment = 8}
                           .build();
  seeds["plain_numbers"] =
      RawFile{.tensors = {{.dims = {4}, .type = 26}}, .data_bytes = 16}.build();
  return seeds;
}

Seeds bad_seeds() {
  Seeds seeds;
  Bytes nested;
  nested.text("k").put(uint32_t(ValueType::array)).put(uint32_t(ValueType::array));
  seeds["bad_nested"] = RawFile{.fields = {nested.put(uint64_t(1)).put(uint64_t(0))}}.build();
  seeds["bad_big_endian"] = RawFile{.version = 0x03000000}.build();
  seeds["bad_version1"] = RawFile{.version = 1}.build();
  seeds["bad_magic"] = Bytes().raw("GGML").put(uint64_t(3)).put(uint64_t(0)).get();
  seeds["bad_count"] = RawFile{.field_count = uint64_t(1) << 63}.build();
  seeds["bad_keys"] = RawFile{.fields = {text_field("k", "v"), text_field("", "v"),
                                         text_field("\x1b[2J", "v"), text_field("k", "w")}}
                          .build();
  seeds["bad_bool"] =
      RawFile{.fields = {number_field("k", ValueType::boolean, uint8_t(2))}}.build();
  seeds["bad_alignment"] =
      RawFile{.fields = {number_field("general.alignment", ValueType::i32, 3)}}.build();
  seeds["bad_tensors"] = RawFile{.tensors = {{.name = "type", .type = 255},
                                             {.name = "zero", .dims = {4, 0}},
                                             {.name = "product", .dims = {1ull << 40, 1ull << 40}},
                                             {.name = "block", .dims = {33}, .type = 2},
                                             {.name = "beyond", .dims = {4096}},
                                             {.name = "misaligned", .offset = 4},
                                             {.name = "overlap", .offset = 32},
                                             {.name = "overlap", .offset = 64}},
                                 .data_bytes = 256}
                             .build();
  seeds["bad_split"] = RawFile{.fields = {number_field("split.no", ValueType::u16, uint16_t(1)),
                                          number_field("split.count", ValueType::u16, uint16_t(2))}}
                           .build();
  seeds["bad_relations"] =
      RawFile{.fields = {text_field("general.architecture", "m"),
                         number_field("m.expert_used_count", ValueType::u32, 9u),
                         number_field("m.rope.freq_base", ValueType::f32, 0.0f),
                         number_field("m.block_count", ValueType::u64, UINT64_MAX)}}
          .build();
  return seeds;
}

TEST(Corpus, SeedsAreWhatTheGeneratorWrites) {
  const std::filesystem::path made =
      std::filesystem::path(CAIRN_FIXTURES).parent_path() / "gguf_seeds";
  const std::filesystem::path kept = CAIRN_SOURCE "/fuzz/corpus/gguf";
  std::filesystem::create_directories(made);
  Seeds seeds = good_seeds();
  for (const auto& [name, bytes] : seeds) EXPECT_EQ(open_error(bytes), "opened") << name;
  for (const auto& [name, bytes] : bad_seeds()) {
    // Wrong hyper-parameters are for the model to refuse; the file opens.
    EXPECT_EQ(open_error(bytes) == "opened", name == "bad_relations") << name;
    seeds[name] = bytes;
  }
  for (const auto& [name, bytes] : seeds) {
    ASSERT_TRUE(write_file((made / (name + ".gguf")).string(), bytes));
  }
  size_t kept_count = 0;
  for (const auto& [name, bytes] : seeds) {
    auto found = read_file((kept / (name + ".gguf")).string(), size_t(1) << 20);
    ASSERT_TRUE(found) << "copy " << made << " to " << kept;
    EXPECT_EQ(*found, std::string(as_text(bytes))) << name;
  }
  for (const auto& entry : std::filesystem::directory_iterator(kept)) {
    kept_count += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(kept_count, seeds.size());
}

}  // namespace
}  // namespace cairn::gguf::raw::corpus_test
