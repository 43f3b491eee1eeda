// The writer against the reader, and round trips of every real file at hand: each must come back
// with identical metadata and tensor bytes.
#include "gguf/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "gguf/gguf.h"
#include "tests/gguf/raw_file.h"

namespace cairn::gguf::raw::writer_test {
namespace {

void copy_head(const File& file, Writer& writer) {
  for (const Field& field : file.fields().all()) writer.add(field.key, field.value);
  for (const Tensor& tensor : file.tensors()) {
    writer.declare(tensor.name, std::span(tensor.dims).first(size_t(tensor.dim_count)),
                   tensor.type_id);
  }
}

bool same_value(const Value& a, const Value& b) {
  return a.type == b.type && a.element == b.element && a.count == b.count &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

void expect_same(const File& a, const File& b) {
  ASSERT_EQ(a.fields().all().size(), b.fields().all().size());
  for (size_t field = 0; field < a.fields().all().size(); ++field) {
    EXPECT_EQ(a.fields().all()[field].key, b.fields().all()[field].key);
    EXPECT_TRUE(same_value(a.fields().all()[field].value, b.fields().all()[field].value));
  }
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (size_t index = 0; index < a.tensors().size(); ++index) {
    const Tensor& left = a.tensors()[index];
    const Tensor& right = b.tensors()[index];
    EXPECT_EQ(left.name, right.name);
    EXPECT_EQ(left.dims, right.dims);
    EXPECT_EQ(left.dim_count, right.dim_count);
    EXPECT_EQ(left.type_id, right.type_id);
    EXPECT_TRUE(
        std::equal(left.bytes.begin(), left.bytes.end(), right.bytes.begin(), right.bytes.end()))
        << left.name;
  }
}

void expect_round_trip(const std::string& path) {
  SCOPED_TRACE(path);
  auto file = File::open(path);
  ASSERT_TRUE(file) << file.error().message;
  Writer writer(uint32_t(file->alignment()));
  copy_head(*file, writer);
  std::vector<std::byte> bytes;
  auto stream = writer.open_memory(bytes);
  ASSERT_TRUE(stream) << stream.error().message;
  for (const Tensor& tensor : file->tensors()) ASSERT_TRUE(stream->append(tensor.bytes));
  ASSERT_TRUE(stream->finish());
  auto size = writer.file_bytes();
  ASSERT_TRUE(size);
  EXPECT_EQ(*size, bytes.size());
  auto copy = File::from_bytes(bytes, "copy");
  ASSERT_TRUE(copy) << copy.error().message;
  expect_same(*file, *copy);
}

size_t round_trip_folder(const std::string& folder) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".gguf") continue;
    expect_round_trip(entry.path().string());
    ++count;
  }
  return count;
}

TEST(Writer, RoundTripsEveryGoldenModel) {
  EXPECT_GE(round_trip_folder(CAIRN_FIXTURES "/golden"), 77u);
}

TEST(Writer, RoundTripsEveryTokenizerFixture) {
  if (!std::filesystem::exists(CAIRN_FIXTURES "/shared/tokenizers")) {
    GTEST_SKIP() << "other people's vocabularies are not in the repository";
  }
  EXPECT_EQ(round_trip_folder(CAIRN_FIXTURES "/shared/tokenizers"), 10u);
}

TEST(Writer, RoundTripsTheDemoModel) {
  EXPECT_GE(round_trip_folder(CAIRN_FIXTURES "/nano"), 1u);
}

// The writer's bytes are those of the other independent builder.
TEST(Writer, BytesAreTheFormats) {
  Writer writer;
  writer.add("s", "text");
  writer.add("n", int16_t(-3));
  writer.add_booleans("b", {true, false});
  const int64_t dims[] = {3, 2};
  writer.declare("w", dims, 0);
  std::vector<std::byte> bytes;
  auto stream = writer.open_memory(bytes);
  ASSERT_TRUE(stream);
  const std::vector<std::byte> zeros(24);
  ASSERT_TRUE(stream->append(zeros));
  ASSERT_TRUE(stream->finish());
  RawFile raw{.fields = {text_field("s", "text"), number_field("n", ValueType::i16, int16_t(-3)),
                         array_field<uint8_t>("b", ValueType::boolean, {1, 0})},
              .tensors = {{.name = "w", .dims = {3, 2}}},
              .data_bytes = 32};
  EXPECT_EQ(bytes, raw.build());
}

TEST(Writer, StreamsPiecesAndPadsBetweenTensors) {
  Writer writer(64);
  const int64_t dims[] = {5};
  writer.declare("a", dims, 0);
  writer.declare("b", dims, 0);
  std::vector<std::byte> bytes;
  auto stream = writer.open_memory(bytes);
  ASSERT_TRUE(stream);
  for (int tensor = 0; tensor < 2; ++tensor) {
    for (int piece = 0; piece < 10; ++piece) {
      const std::byte two[] = {std::byte(tensor), std::byte(piece)};
      ASSERT_TRUE(stream->append(two));
    }
  }
  ASSERT_TRUE(stream->finish());
  auto file = File::from_bytes(bytes, "x");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->alignment(), 64u);
  EXPECT_EQ(file->find("b")->offset, 64u);
  EXPECT_EQ(file->find("b")->bytes[0], std::byte{1});
  EXPECT_EQ(file->find("b")->bytes[19], std::byte{9});
}

TEST(Writer, WritesAFileWholeOrNotAtAll) {
  const std::string path = std::string(CAIRN_FIXTURES) + "/../writer_test.gguf";
  std::filesystem::remove(path);
  Writer writer;
  writer.add("k", uint32_t(7));
  const int64_t dims[] = {2};
  writer.declare("w", dims, 0);
  const std::byte data[8] = {};
  {
    auto stream = writer.open_file(path);
    ASSERT_TRUE(stream) << stream.error().message;
    ASSERT_TRUE(stream->append(std::span(data).first(4)));
    auto early = stream->finish();
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().message, "tensor w: expected 8 bytes, found 4 at the end");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  auto stream = writer.open_file(path);
  ASSERT_TRUE(stream);
  ASSERT_TRUE(stream->append(data));
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(stream->finish());
  auto file = File::open(path);
  ASSERT_TRUE(file) << file.error().message;
  auto value = file->fields().get<uint32_t>("k");
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 7u);
  std::filesystem::remove(path);
}

TEST(Writer, AppendErrorsNameTheTensorAndBothSizes) {
  Writer writer;
  const int64_t dims[] = {2};
  writer.declare("w", dims, 0);
  std::vector<std::byte> bytes;
  auto stream = writer.open_memory(bytes);
  ASSERT_TRUE(stream);
  const std::byte data[9] = {};
  EXPECT_EQ(stream->append(data).error().message, "tensor w: expected 8 more bytes, found 9");
  ASSERT_TRUE(stream->append(std::span(data).first(8)));
  EXPECT_EQ(stream->append(data).error().message,
            "expected the end after 1 tensors, found 9 more bytes");
}

std::string open_error(const Writer& writer) {
  std::vector<std::byte> bytes;
  auto stream = writer.open_memory(bytes);
  return stream ? "opened" : stream.error().message;
}

TEST(Writer, RefusesWhatTheReaderWould) {
  const int64_t one[] = {32};
  const auto writer_error = [&](auto fill) {
    Writer writer;
    fill(writer);
    return open_error(writer);
  };
  EXPECT_EQ(writer_error([](Writer&) {}), "opened");
  EXPECT_EQ(writer_error([](Writer& w) { w.add("", true), w.add("k", true); }),
            "metadata entry 0: expected a key of 1 to 65535 bytes, found 0");
  EXPECT_EQ(writer_error([](Writer& w) { w.add("k", true), w.add("k", 1.0f); }),
            "k: expected once in the metadata, found twice");
  EXPECT_EQ(writer_error([&](Writer& w) { w.declare("t", one, 0), w.declare("t", one, 0); }),
            "tensor t: expected once, found twice");
  EXPECT_EQ(writer_error([&](Writer& w) { w.declare("", one, 0); }),
            "tensor entry 0: expected a name of 1 to 64 bytes, found 0");
  EXPECT_EQ(writer_error([&](Writer& w) { w.declare("t", one, 99); }),
            "tensor t: expected a type that can be read, found type 99 (unknown)");
  EXPECT_EQ(writer_error([&](Writer& w) { w.declare("t", std::vector<int64_t>{-4}, 0); }),
            "tensor t: expected dimensions of 1 to 2^40, found 18446744073709551612");
  EXPECT_EQ(writer_error([&](Writer& w) { w.declare("t", std::vector<int64_t>{33}, 8); }),
            "tensor t: expected rows of whole blocks of 32 (Q8_0), found rows of 33");
  EXPECT_EQ(writer_error([](Writer& w) { w.add("general.alignment", uint32_t(64)); }),
            "general.alignment: expected 32, found 64");
  EXPECT_EQ(open_error(Writer(24)),
            "general.alignment: expected a power of two from 8 to 65536, found 24");
}

}  // namespace
}  // namespace cairn::gguf::raw::writer_test
