// Headers that lie: every range is compared with the file.
#include "convert/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>

#include "tests/scratch_folder.h"

namespace cairn::convert::safetensors_test {
namespace {

std::string file_of(const std::string& header, size_t data_bytes) {
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  for (size_t i = 0; i < data_bytes; ++i) file += char(i);
  return file;
}

Result<std::vector<SourceTensor>> read(const std::string& file) {
  return read_safetensors(std::as_bytes(std::span(file)), "file", 0);
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

TEST(Safetensors, ReadsTensorsByName) {
  const std::string file =
      file_of("{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "F32", "[2,3]", "[0,24]") +
                  "," + entry("a", "BF16", "[]", "[24,26]") + "}",
              26);
  auto tensors = read(file);
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 2u);
  const SourceTensor &a = (*tensors)[0], &b = (*tensors)[1];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.number, Number::bf16);
  EXPECT_EQ(a.number_count(), 1);
  EXPECT_EQ(a.bytes.size(), 2u);
  EXPECT_EQ(a.bytes[0], std::byte(24));
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(b.bytes.size(), 24u);
}

TEST(Safetensors, RefusesHeadersThatLie) {
  const struct {
    const char* what;
    std::string header;
  } cases[] = {
      {"beyond the file", "{" + entry("a", "F32", "[2]", "[4,12]") + "}"},
      {"backwards", "{" + entry("a", "F32", "[1]", "[4,0]") + "}"},
      {"negative", "{" + entry("a", "F32", "[1]", "[-4,0]") + "}"},
      {"fewer bytes than the shape", "{" + entry("a", "F32", "[2]", "[0,4]") + "}"},
      {"overflow", "{" + entry("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}"},
      {"overflow to what is there",
       "{" + entry("a", "F32", "[2305843009213693953,8]", "[0,8]") + "}"},
      {"negative dimension", "{" + entry("a", "F32", "[-1]", "[0,4]") + "}"},
      {"real dimension", "{" + entry("a", "F32", "[0.5]", "[0,4]") + "}"},
      {"unknown type", "{" + entry("a", "F31", "[1]", "[0,4]") + "}"},
      {"no shape", R"({"a":{"dtype":"F32","data_offsets":[0,4]}})"},
      {"no offsets", R"({"a":{"dtype":"F32","shape":[1]}})"},
      {"one offset", "{" + entry("a", "F32", "[1]", "[0]") + "}"},
      {"no object", R"({"a":7})"},
      {"overlap",
       "{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("b", "F32", "[1]", "[2,6]") + "}"},
      {"a name twice",
       "{" + entry("a", "F32", "[1]", "[0,4]") + "," + entry("a", "F32", "[1]", "[4,8]") + "}"},
      {"an array", "[]"},
      {"no JSON", "{"},
  };
  for (const auto& [what, header] : cases) {
    const auto tensors = read(file_of(header, 8));
    ASSERT_FALSE(tensors) << what;
    EXPECT_EQ(tensors.error().code, ErrorCode::invalid_data) << what;
    EXPECT_TRUE(tensors.error().message.starts_with("file: ")) << tensors.error().message;
  }
}

TEST(Safetensors, RefusesEveryCut) {
  const std::string file = file_of("{" + entry("a", "F32", "[2]", "[0,8]") + "}", 8);
  ASSERT_TRUE(read(file));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(read(file.substr(0, size))) << size;
  }
  std::string long_header = file;
  std::memset(long_header.data(), 0xff, 8);
  EXPECT_FALSE(read(long_header));
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Checkpoint, FollowsTheIndexNowhereElse) {
  const test::ScratchFolder folder;
  write(folder.file("model-1.safetensors"),
        file_of("{" + entry("a", "F32", "[1]", "[0,4]") + "}", 4));
  write(folder.file("model-2.safetensors"),
        file_of("{" + entry("b", "F16", "[1]", "[0,2]") + "}", 2));
  const auto open_with = [&](const std::string& map) {
    write(folder.file("model.safetensors.index.json"), "{\"weight_map\":" + map + "}");
    return Checkpoint::open(folder.path().string());
  };
  auto good = open_with(R"({"b":"model-2.safetensors","a":"model-1.safetensors"})");
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->tensors().size(), 2u);
  EXPECT_NE(good->find("a"), nullptr);
  EXPECT_EQ(good->find("c"), nullptr);
  EXPECT_FALSE(open_with(R"({"a":"../model-1.safetensors"})"));
  EXPECT_FALSE(open_with(R"({"a":"model-3.safetensors"})"));
  EXPECT_FALSE(open_with(R"({"a":7})"));
  const auto missing = open_with(R"({"a":"model-1.safetensors","b":"model-1.safetensors"})");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("tensor b"), std::string::npos);
}

}  // namespace
}  // namespace cairn::convert::safetensors_test
