// Hollow models against the files they are of: whole, of the header alone, of other types, split.
#include "gguf/hollow.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"

namespace cairn::gguf::hollow_test {
namespace {

const std::string kPath = CAIRN_SOURCE "/assets/nano.gguf";

std::string bytes_of(const std::string& path) {
  return read_file(path, size_t(1) << 30).value();
}
File open_bytes(const std::string& bytes, OpenMode mode) {
  return File::from_bytes(std::as_bytes(std::span(bytes)), "nano.gguf", mode).value();
}

void expect_same_header(const File& hollow, const File& file) {
  ASSERT_EQ(hollow.tensors().size(), file.tensors().size());
  for (size_t at = 0; at < file.tensors().size(); ++at) {
    const Tensor& found = hollow.tensors()[at];
    EXPECT_EQ(found.name, file.tensors()[at].name);
    EXPECT_EQ(found.dims, file.tensors()[at].dims);
    EXPECT_EQ(found.type_id, file.tensors()[at].type_id);
    EXPECT_TRUE(std::all_of(found.bytes.begin(), found.bytes.end(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
  }
  EXPECT_EQ(hollow.fields().get<std::string_view>("general.architecture").value(),
            file.fields().get<std::string_view>("general.architecture").value());
}

TEST(Hollow, HasTheHeaderAndNoWeights) {
  const File file = File::open(kPath).value();
  const File* const parts[] = {&file};
  auto hollow = make_hollow(parts);
  ASSERT_TRUE(hollow) << hollow.error().message;
  expect_same_header(hollow->file, file);
  EXPECT_EQ(hollow->file.name(), kPath);
  EXPECT_EQ(hollow->file.file_bytes(), file.file_bytes());
}

TEST(Hollow, IsMadeOfAHeaderAlone) {
  const std::string whole = bytes_of(kPath);
  const File file = open_bytes(whole, OpenMode::strict);
  const size_t header_bytes =
      size_t(reinterpret_cast<const char*>(file.tensors().front().bytes.data()) - whole.data());
  const std::string header = whole.substr(0, header_bytes);
  const File cut = open_bytes(header, OpenMode::inspect);
  const File* const parts[] = {&cut};
  auto hollow = make_hollow(parts);
  ASSERT_TRUE(hollow) << hollow.error().message;
  expect_same_header(hollow->file, file);
}

TEST(Hollow, TakesOtherTypes) {
  const File file = File::open(kPath).value();
  const File* const parts[] = {&file};
  std::vector<const quant::Type*> types(file.tensors().size());
  types[0] = quant::find("F32");
  auto hollow = make_hollow(parts, types);
  ASSERT_TRUE(hollow) << hollow.error().message;
  EXPECT_EQ(hollow->file.tensors()[0].type, types[0]);
  EXPECT_EQ(hollow->file.tensors()[0].bytes.size(),
            size_t(file.tensors()[0].weight_count) * sizeof(float));
  EXPECT_EQ(hollow->file.tensors()[1].type, file.tensors()[1].type);
}

TEST(Hollow, RefusesATensorInTwoParts) {
  const File file = File::open(kPath).value();
  const File* const parts[] = {&file, &file};
  auto hollow = make_hollow(parts);
  ASSERT_FALSE(hollow);
  EXPECT_EQ(hollow.error().code, ErrorCode::invalid_data) << hollow.error().message;
}

}  // namespace
}  // namespace cairn::gguf::hollow_test
