// The attacks on the loader that docs/formats.md lists under "Attacks", and
// the mistakes of other readers, rebuilt as files. Each must be refused, with an error that names
// the place and both values.
#include <gtest/gtest.h>

#include <ctime>
#include <limits>

#include "tests/gguf/raw_file.h"

namespace cairn::gguf::raw::security_test {
namespace {

constexpr uint64_t kHuge = uint64_t(1) << 63;

// Of this process, so that a busy machine does not count.
double processor_seconds() {
  return double(std::clock()) / double(CLOCKS_PER_SEC);
}

void expect_refused(const RawFile& file, const std::vector<std::string>& words) {
  const std::vector<std::byte> bytes = file.build();
  const double start = processor_seconds();
  const std::string error = open_error(bytes);
  EXPECT_LT(processor_seconds() - start, 2);  // 0.01 on a quiet machine without sanitizers.
  EXPECT_LE(error.size(), 2048u);
  for (const std::string& word : words) {
    EXPECT_NE(error.find(word), std::string::npos) << "\"" << word << "\" in: " << error;
  }
}

RawFile with_field(const Bytes& field) {
  return {.fields = {field}};
}

RawFile with_tensor(const RawTensor& tensor, size_t data_bytes = 4096) {
  return {.tensors = {tensor}, .data_bytes = data_bytes};
}

Bytes alignment_field(uint32_t alignment) {
  return number_field("general.alignment", ValueType::u32, alignment);
}

TEST(Security, AnHonestFileOfTheSameMakingOpens) {
  EXPECT_EQ(open_error(RawFile{.fields = {text_field("a", "b"), alignment_field(64)},
                               .tensors = {{.name = "w"}, {.name = "v", .offset = 128}},
                               .data_bytes = 256,
                               .alignment = 64}),
            "opened");
}

// Attack 1.
TEST(Security, HugeCounts) {
  for (const uint64_t count : {kHuge, kHuge + 1, UINT64_MAX, uint64_t(1) << 32}) {
    const std::string number = std::to_string(count);
    expect_refused({.fields = {text_field("a", "b")}, .field_count = count},
                   {"metadata count: declares " + number, "22 bytes remain"});
    expect_refused({.fields = {text_field("a", "b")}, .tensor_count = count},
                   {"tensor count: declares " + number, "22 bytes remain"});
    expect_refused(with_field(Bytes().put(count).raw("some key and more bytes")),
                   {"the key of metadata entry 0: declares " + number, "23 bytes remain"});
    expect_refused(with_field(Bytes().text("k").put(uint32_t(ValueType::string)).put(count)),
                   {"k: declares " + number, "0 bytes remain"});
    for (const ValueType element : {ValueType::u8, ValueType::f64, ValueType::string}) {
      Bytes field;
      field.text("k").put(uint32_t(ValueType::array)).put(uint32_t(element)).put(count);
      expect_refused(with_field(field.raw("12345678")),
                     {"k: declares " + number, "8 bytes remain"});
    }
    Bytes strings;
    strings.text("k").put(uint32_t(ValueType::array)).put(uint32_t(ValueType::string));
    expect_refused(with_field(strings.put(uint64_t(1)).put(count).raw("abc")),
                   {"k: string 0 of 1: declares " + number, "3 bytes remain"});
  }
}

TEST(Security, TensorNameLength) {
  RawFile file{.tensors = {{.name = "weight.name"}}, .data_bytes = 256};
  std::vector<std::byte> bytes = file.build();
  const uint64_t length = kHuge;
  std::memcpy(bytes.data() + 24, &length, sizeof length);
  EXPECT_NE(open_error(bytes).find("tensor entry 0 of 1: declares 9223372036854775808 bytes"),
            std::string::npos)
      << open_error(bytes);
}

// Attack 2.
TEST(Security, Shapes) {
  expect_refused(with_tensor({.dims = {4, 0}}), {"tensor w", "1 to 2^40", "found 0"});
  expect_refused(with_tensor({.dims = {(uint64_t(1) << 42) + 1, 2}}),
                 {"tensor w", "1 to 2^40", "4398046511105"});
  expect_refused(with_tensor({.dims = {kHuge - 1, 2}}), {"tensor w", "9223372036854775807"});
  // Each dimension fits, the product does not; then a product that wraps round to 0.
  expect_refused(with_tensor({.dims = {uint64_t(1) << 40, 512}}), {"tensor w", "2^48"});
  expect_refused(with_tensor({.dims = {uint64_t(1) << 32, 1, 1, uint64_t(1) << 32}}),
                 {"tensor w", "2^48", "4294967296 * 4294967296"});
  expect_refused(with_tensor({.dims = {1, 1, 1, 1, 1}}), {"tensor w", "1 to 4", "found 5"});
  expect_refused(with_tensor({.dims = {}}), {"tensor w", "1 to 4", "found 0"});
  expect_refused(with_tensor({.dims = {1}, .dim_count = UINT32_MAX}), {"tensor w", "4294967295"});
}

// Attack 2.
TEST(Security, Types) {
  expect_refused(with_tensor({.type = 255}), {"tensor w", "type 255 (unknown)"});
  expect_refused(with_tensor({.type = UINT32_MAX}), {"tensor w", "type 4294967295 (unknown)"});
  expect_refused(with_tensor({.type = 31}), {"tensor w", "Q4_0_4_4"});
  expect_refused(with_tensor({.dims = {33}, .type = 8}), {"tensor w", "blocks of 32", "of 33"});
}

// Attack 3.
TEST(Security, Ranges) {
  expect_refused(with_tensor({.dims = {32}, .offset = 4096}),
                 {"tensor w", "128 bytes at offset 4096", "found 4096 bytes"});
  expect_refused(with_tensor({.dims = {32}, .offset = 3968 + 32}), {"tensor w", "offset 4000"});
  expect_refused(with_tensor({.dims = {1025}}), {"tensor w", "expected 4100 bytes", "found 4096"});
  expect_refused(with_tensor({.dims = {32}, .offset = UINT64_MAX - 31}),
                 {"tensor w", "at offset 18446744073709551584"});
  expect_refused(with_tensor({.dims = {32}, .offset = 16}), {"tensor w", "multiple of 32", "16"});
  expect_refused(with_tensor({.dims = {32}}, 0), {"tensor w", "found 0 bytes"});
  expect_refused(
      {.tensors = {{.name = "a", .dims = {64}}, {.name = "b", .offset = 224}}, .data_bytes = 4096},
      {"tensor b", "after the end of a at 256", "found at offset 224"});
  expect_refused(
      {.tensors = {{.name = "a", .offset = 32}, {.name = "b", .offset = 32}}, .data_bytes = 4096},
      {"tensor b", "after the end of a at 160", "found at offset 32"});
}

// Attack 3.
TEST(Security, Alignment) {
  for (const uint32_t alignment : {0u, 1u, 3u, 4u, 24u, 65537u, 131072u, UINT32_MAX}) {
    expect_refused(with_field(alignment_field(alignment)),
                   {"general.alignment", "8 to 65536", "found " + std::to_string(alignment)});
  }
  expect_refused(with_field(number_field("general.alignment", ValueType::i32, int32_t(32))),
                 {"general.alignment: expected u32, found i32 32"});
  expect_refused(with_field(text_field("general.alignment", "32")),
                 {"general.alignment: expected u32, found string \"32\""});
}

// Attack 4.
TEST(Security, Names) {
  expect_refused({.fields = {text_field("a", "x"), text_field("b", "y"), text_field("a", "z")}},
                 {"a: expected once in the metadata, found twice"});
  expect_refused(
      {.tensors = {{.name = "w"}, {.name = "v"}, {.name = "w", .offset = 128}}, .data_bytes = 4096},
      {"tensor w: expected once, found twice"});
  expect_refused(with_field(text_field("", "x")), {"metadata entry 0", "1 to 65535", "found 0"});
  expect_refused(with_field(text_field(std::string(65536, 'k'), "x")), {"found 65536"});
  expect_refused(with_field(text_field("a\x01z", "x")), {"printable ASCII"});
  expect_refused(with_field(text_field("\xc3\xa9", "x")), {"printable ASCII"});
  expect_refused(with_tensor({.name = "w\xff"}), {"tensor entry 0 of 1", "printable ASCII"});
  expect_refused(with_tensor({.name = ""}), {"tensor entry 0 of 1", "1 to 64", "found 0"});
  expect_refused(with_tensor({.name = std::string(65, 'n')}), {"1 to 64", "found 65"});
}

// Attack 4.
TEST(Security, NestedArrays) {
  Bytes field;
  field.text("deep").put(uint32_t(ValueType::array));
  for (int depth = 0; depth < 10000; ++depth) {
    field.put(uint32_t(ValueType::array)).put(uint64_t(1));
  }
  field.put(uint32_t(ValueType::u8)).put(uint64_t(1)).put(uint8_t(0));
  expect_refused(with_field(field), {"deep: expected an array of plain values"});
}

// Attack 5.
TEST(Security, HyperParameters) {
  struct Case {
    Bytes field;
    std::string name;
    std::vector<std::string> words;
  };
  const auto u32 = [](std::string_view key, uint32_t value) {
    return number_field(key, ValueType::u32, value);
  };
  const auto f32 = [](std::string_view key, float value) {
    return number_field(key, ValueType::f32, value);
  };
  const std::vector<Case> counts = {
      {u32("llama.attention.head_count", 0), "attention.head_count", {"1 to 1024", "found 0"}},
      {u32("llama.attention.key_length", 3000000000u), "attention.key_length", {"3000000000"}},
      {u32("llama.block_count", 0), "block_count", {"1 to 1024", "found 0"}},
      {u32("llama.block_count", 1025), "block_count", {"found 1025"}},
      {u32("llama.embedding_length", 65537), "embedding_length", {"found 65537"}},
      {u32("llama.vocab_size", (1u << 21) + 1), "vocab_size", {"found 2097153"}},
      {u32("llama.context_length", (1u << 24) + 1), "context_length", {"found 16777217"}},
      {u32("llama.expert_count", 4097), "expert_count", {"0 to 4096", "found 4097"}},
      {number_field("llama.block_count", ValueType::i32, int32_t(-1)), "block_count", {"-1"}},
      {number_field("llama.block_count", ValueType::u64, UINT64_MAX),
       "block_count",
       {"18446744073709551615"}},
      {f32("llama.block_count", 2.0f), "block_count", {"f32 2"}},
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::string epsilon = "attention.layer_norm_rms_epsilon";
  const std::vector<Case> reals = {
      {f32(fmt::format("llama.{}", epsilon), nan), epsilon, {"found nan"}},
      {f32(fmt::format("llama.{}", epsilon), -1e-5f), epsilon, {"found -1e-05"}},
      {f32("llama.rope.freq_base", 0.0f), "rope.freq_base", {"found 0"}},
      {f32("llama.rope.freq_base", infinity), "rope.freq_base", {"found inf"}},
      {f32("llama.unheard_of", nan), "unheard_of", {"found nan"}},
      {number_field("llama.rope.freq_base", ValueType::f64, 1e300), "rope.freq_base", {"inf"}},
  };
  const auto check = [](const Case& wrong, bool is_real) {
    const auto bytes =
        RawFile{.fields = {text_field("general.architecture", "llama"), wrong.field}}.build();
    auto file = File::from_bytes(bytes, "x.gguf");
    ASSERT_TRUE(file);
    auto metadata = file->metadata();
    ASSERT_TRUE(metadata);
    std::string error;
    if (is_real) {
      auto value = metadata->real(wrong.name);
      error = value ? "accepted" : value.error().message;
    } else {
      auto value = metadata->count(wrong.name);
      error = value ? "accepted" : value.error().message;
    }
    EXPECT_EQ(error.find(fmt::format("llama.{}: expected", wrong.name)), 0u) << error;
    for (const std::string& word : wrong.words) {
      EXPECT_NE(error.find(word), std::string::npos) << word << " in: " << error;
    }
  };
  for (const Case& wrong : counts) check(wrong, false);
  for (const Case& wrong : reals) check(wrong, true);
}

// Attack 5.
TEST(Security, Relations) {
  const auto relation_error = [](std::vector<Bytes> fields) -> std::string {
    fields.push_back(text_field("general.architecture", "moe"));
    const auto bytes = RawFile{.fields = std::move(fields)}.build();
    auto file = File::from_bytes(bytes, "x.gguf");
    EXPECT_TRUE(file);
    auto metadata = file->metadata();
    return metadata ? "accepted" : metadata.error().message;
  };
  const auto u32 = [](std::string_view key, uint32_t value) {
    return number_field(key, ValueType::u32, value);
  };
  EXPECT_EQ(relation_error({u32("moe.expert_count", 8), u32("moe.expert_used_count", 8)}),
            "accepted");
  EXPECT_EQ(relation_error({u32("moe.expert_count", 8), u32("moe.expert_used_count", 9)}),
            "x.gguf: moe.expert_used_count: expected at most the 8 experts, found 9");
  EXPECT_EQ(
      relation_error({u32("moe.attention.head_count", 8), u32("moe.attention.head_count_kv", 3)}),
      "x.gguf: moe.attention.head_count_kv: expected a divisor of the 8 heads, found 3");
  EXPECT_EQ(
      relation_error({u32("moe.attention.head_count", 8), u32("moe.attention.head_count_kv", 2)}),
      "accepted");
  EXPECT_NE(relation_error({u32("moe.expert_count", 8), u32("moe.expert_group_count", 3)})
                .find("moe.expert_group_count: expected a divisor of the 8 experts"),
            std::string::npos);
  EXPECT_EQ(relation_error({u32("moe.expert_count", 8), u32("moe.expert_group_used_count", 1)}),
            "accepted");
  EXPECT_NE(relation_error({u32("moe.expert_count", 8), u32("moe.expert_group_used_count", 2)})
                .find("at least the 2 used groups, found 0"),
            std::string::npos);
}

// A tensor that claims 2^40 bytes in a file of 4 KiB: refused by the table, nothing is read or
// taken for it.
TEST(Security, DeclaredSizeIsNotBelieved) {
  expect_refused(with_tensor({.dims = {uint64_t(1) << 38}}),
                 {"tensor w", "expected 1099511627776 bytes", "found 4096 bytes"});
}

// Numbers as in the public reports: the size of all tensors wraps round to something small.
TEST(Security, Peers_SizeOverflow_CVE_2025_53630_and_CVE_2026_27940) {
  RawFile file{.data_bytes = 4096};
  for (int tensor = 0; tensor < 20; ++tensor) {
    file.tensors.push_back({.name = fmt::format("t{}", tensor),
                            .dims = {uint64_t(1) << 40, 256},
                            .offset = uint64_t(tensor) << 50});
  }
  expect_refused(file, {"tensor t0", "expected 1125899906842624 bytes", "found 4096"});
}

TEST(Security, Peers_TensorBeyondTheFile_CVE_2026_7482) {
  expect_refused(with_tensor({.dims = {1024, 1024}, .type = 1}),
                 {"tensor w", "expected 2097152 bytes at offset 0", "found 4096 bytes"});
}

TEST(Security, Peers_CountTimesSize_CVE_2024_21836_and_CVE_2024_23496) {
  // 2^61 + 1 elements of 8 bytes are 8 bytes, modulo 2^64.
  const uint64_t count = (uint64_t(1) << 61) + 1;
  Bytes field;
  field.text("k").put(uint32_t(ValueType::array)).put(uint32_t(ValueType::u64)).put(count);
  expect_refused(with_field(field.put(uint64_t(0))), {"k: declares 2305843009213693953"});
}

TEST(Security, Peers_StringLengthPlusOne_CVE_2024_21825_and_CVE_2024_23605) {
  expect_refused(with_field(Bytes().put(UINT64_MAX).raw("kkkkkkkkkkkkkk")),
                 {"declares 18446744073709551615"});
  expect_refused(with_field(Bytes().text("k").put(uint32_t(8)).put(UINT64_MAX)), {"k: declares"});
}

TEST(Security, Peers_ValueTypes) {
  expect_refused(with_field(Bytes().text("k").put(uint32_t(13)).put(uint64_t(0))),
                 {"k: expected a value of type 0 to 12, found type 13"});
  expect_refused(with_field(Bytes().text("k").put(uint32_t(9)).put(uint32_t(99)).put(uint64_t(0))),
                 {"k: expected an array of type 0 to 12, found type 99"});
  expect_refused(with_field(number_field("k", ValueType::boolean, uint8_t(2))),
                 {"k: expected a bool, 0 or 1, found 2"});
  expect_refused(with_field(array_field<uint8_t>("k", ValueType::boolean, {0, 1, 7})),
                 {"k: expected a bool, 0 or 1, found 7"});
}

TEST(Security, Peers_LongStrings) {
  const std::string text((size_t(1) << 20) + 1, 'x');
  expect_refused(with_field(text_field("tokenizer.chat_template", text)),
                 {"tokenizer.chat_template", "at most 1048576", "found 1048577"});
  EXPECT_EQ(open_error(with_field(text_field("other", text))), "opened");
  expect_refused(with_field(text_field("other", std::string((size_t(16) << 20) + 1, 'x'))),
                 {"other", "at most 16777216", "found 16777217"});
}

TEST(Security, Peers_LongArrays) {
  Bytes strings;
  strings.text("k").put(uint32_t(ValueType::array)).put(uint32_t(ValueType::string));
  strings.put(uint64_t(1)).text(std::string((size_t(16) << 20) + 1, 'x'));
  expect_refused(with_field(strings), {"k: string 0 of 1", "at most 16777216", "16777217"});
  const uint64_t count = (uint64_t(1) << 26) + 1;
  Bytes numbers;
  numbers.text("k").put(uint32_t(ValueType::array)).put(uint32_t(ValueType::u8)).put(count);
  numbers.pad(1, count);
  const std::vector<std::byte> bytes = RawFile{.fields = {numbers}}.build();
  EXPECT_NE(open_error(bytes).find("k: expected an array of at most 67108864 elements, found "
                                   "67108865"),
            std::string::npos);
  EXPECT_EQ(open_error(bytes, OpenMode::inspect), "opened");
}

// Any file of 1 MiB is accepted or refused in less than 100 ms; the bar here leaves room
// for sanitizers and busy machines.
TEST(Security, OneMebibyteOfSmallestEntriesIsQuick) {
  RawFile fields;
  while (fields.fields.size() < (size_t(1) << 20) / 18) {
    std::string key = std::to_string(fields.fields.size());
    fields.fields.push_back(number_field(key, ValueType::u8, uint8_t(0)));
  }
  RawFile tensors;
  while (tensors.tensors.size() < (size_t(1) << 20) / 37) {
    tensors.tensors.push_back({.name = std::to_string(tensors.tensors.size()), .dims = {1}});
  }
  for (const RawFile& file : {fields, tensors}) {
    const auto bytes = file.build();
    const double start = processor_seconds();
    (void)open_error(bytes);
    (void)open_error(bytes, OpenMode::inspect);
    EXPECT_LT(processor_seconds() - start, 20);
  }
}

// The reader's part: what an error repeats of a file cannot steer a terminal.
TEST(Security, ErrorsShowControlCharacters) {
  for (const std::string evil : {"\x1b]52;c;aGk=\x07", "\x1b[2J", "a\nb", "\xe2\x80\xae!"}) {
    for (const RawFile& file :
         {with_field(text_field(evil, "x")), with_tensor({.name = evil, .type = 255}),
          with_field(text_field("general.alignment", evil))}) {
      const std::string error = open_error(file);
      EXPECT_NE(error, "opened");
      for (const char* raw : {"\x1b", "\x07", "\n", "\xe2\x80\xae"}) {
        EXPECT_EQ(error.find(raw), std::string::npos) << error;
      }
    }
  }
}

}  // namespace
}  // namespace cairn::gguf::raw::security_test
