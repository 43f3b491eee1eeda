// The reader of one file: headers, versions, and what it gives for good files; bad ones are in
// tests/gguf/security_test.cpp.
#include "gguf/part.h"

#include <gtest/gtest.h>

#include "tests/gguf/raw_file.h"

namespace cairn::gguf::raw::part_test {
namespace {

Result<Part> read(const std::vector<std::byte>& bytes, OpenMode mode = OpenMode::strict) {
  Problems problems;
  return read_part(bytes, mode, problems);
}

TEST(Part, ReadsHeaderFieldsAndTensors) {
  const auto bytes =
      RawFile{.version = 2,
              .fields = {text_field("a", "x"), number_field("b", ValueType::u8, uint8_t(1))},
              .tensors = {{.name = "w", .dims = {32, 2}, .type = 8, .offset = 0},
                          {.name = "v", .dims = {3}, .type = 26, .offset = 96}},
              .data_bytes = 128}
          .build();
  auto part = read(bytes);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(part->version, 2u);
  EXPECT_EQ(part->alignment, 32u);
  EXPECT_EQ(part->fields.all().size(), 2u);
  ASSERT_EQ(part->tensors.size(), 2u);
  const Tensor& weight = part->tensors[0];
  EXPECT_EQ(weight.name, "w");
  EXPECT_EQ(weight.dims, (std::array<int64_t, 4>{32, 2, 1, 1}));
  EXPECT_EQ(weight.dim_count, 2);
  EXPECT_EQ(weight.type, quant::find("Q8_0"));
  EXPECT_EQ(weight.weight_count, 64);
  EXPECT_EQ(weight.bytes.size(), 68u);
  EXPECT_EQ(weight.bytes.data(), bytes.data() + part->data_offset);
  const Tensor& numbers = part->tensors[1];
  EXPECT_EQ(numbers.type, nullptr);  // I32 is no type of weights.
  EXPECT_EQ(numbers.bytes.size(), 12u);
  EXPECT_EQ(numbers.bytes.data(), bytes.data() + part->data_offset + 96);
}

TEST(Part, HeadersAreRefusedByName) {
  const auto error = [](const std::vector<std::byte>& bytes) {
    auto part = read(bytes);
    return part ? "read" : part.error().message;
  };
  EXPECT_EQ(error({}), "the header: declares 4 bytes, 0 bytes remain (at byte 0)");
  EXPECT_EQ(error(Bytes().raw("GGML").put(uint64_t(0)).get()),
            "the header: expected \"GGUF\", found \"GGML\"");
  EXPECT_EQ(error(Bytes()
                      .raw("\x7f"
                           "ELF")
                      .put(uint64_t(0))
                      .get()),
            "the header: expected \"GGUF\", found \"\\x7fELF\"");
  EXPECT_EQ(error(RawFile{.version = 1}.build()),
            "the header: expected GGUF version 2 or 3, found 1");
  EXPECT_EQ(error(RawFile{.version = 4}.build()),
            "the header: expected GGUF version 2 or 3, found 4");
  EXPECT_EQ(error(RawFile{.version = 0}.build()),
            "the header: expected GGUF version 2 or 3, found 0");
  EXPECT_EQ(error(RawFile{.version = 0x03000000}.build()),
            "the header: expected a little-endian file, found a big-endian one (version 3)");
  auto swapped = read(RawFile{.version = 0x03000000}.build());
  EXPECT_EQ(swapped.error().code, ErrorCode::unsupported);
}

TEST(Part, MetadataAloneNeedsNoPadding) {
  const auto bytes = RawFile{.fields = {text_field("a", "x")}}.build();
  EXPECT_NE(bytes.size() % 32, 0u);
  EXPECT_TRUE(read(bytes));
}

TEST(Part, InspectionCollectsProblemsAndGoesOn) {
  Problems problems;
  const auto bytes = RawFile{.fields = {text_field("a", "x"), text_field("a", "y")},
                             .tensors = {{.name = "unknown", .type = 255},
                                         {.name = "far", .offset = 1 << 20},
                                         {.name = "good", .offset = 32}},
                             .data_bytes = 160}
                         .build();
  auto part = read_part(bytes, OpenMode::inspect, problems);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(problems.count, 3u);
  EXPECT_EQ(problems.lines.size(), 3u);
  EXPECT_TRUE(part->tensors[0].bytes.empty());
  EXPECT_TRUE(part->tensors[1].bytes.empty());
  EXPECT_EQ(part->tensors[2].bytes.size(), 128u);
}

TEST(Part, ProblemLinesAreBounded) {
  Problems problems;
  RawFile file;
  for (int tensor = 0; tensor < 500; ++tensor) {
    file.tensors.push_back({.name = fmt::format("t{}", tensor), .type = 255});
  }
  ASSERT_TRUE(read_part(file.build(), OpenMode::inspect, problems));
  EXPECT_EQ(problems.count, 500u);
  EXPECT_EQ(problems.lines.size(), kProblemLinesMax);
}

}  // namespace
}  // namespace cairn::gguf::raw::part_test
