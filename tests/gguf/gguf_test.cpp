// Files on disk: opening, moving, finding tensors, split models.
#include "gguf/gguf.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/output_file.h"
#include "tests/gguf/raw_file.h"
#include "tests/scratch_folder.h"

namespace cairn::gguf::raw::gguf_test {
namespace {

namespace fs = std::filesystem;

Bytes u16_field(std::string_view key, uint16_t value) {
  return number_field(key, ValueType::u16, value);
}

// Part `part` (from 0) of a split model of three, with one tensor "t<part>".
RawFile part_file(uint16_t part, uint16_t part_count = 3) {
  RawFile file{.fields = {u16_field("split.no", part), u16_field("split.count", part_count),
                          number_field("split.tensors.count", ValueType::i32, int32_t(3))},
               .tensors = {{.name = fmt::format("t{}", part)}},
               .data_bytes = 128};
  if (part == 0) file.fields.push_back(text_field("general.architecture", "llama"));
  return file;
}

class SplitFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(CAIRN_FIXTURES).parent_path() / "split_test" /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(std::string_view name) const { return (folder_ / name).string(); }
  void write(std::string_view name, const RawFile& file) const {
    ASSERT_TRUE(write_file(path(name), file.build()));
  }
  void write_three() const {
    write("m-00001-of-00003.gguf", part_file(0));
    write("m-00002-of-00003.gguf", part_file(1));
    write("m-00003-of-00003.gguf", part_file(2));
  }
  // The end of the error, after the folder's name.
  std::string open_first_error() const {
    auto file = File::open(path("m-00001-of-00003.gguf"));
    return file ? "opened" : file.error().message;
  }

  fs::path folder_;
};

TEST_F(SplitFileTest, OpeningTheFirstFindsTheOthers) {
  write_three();
  auto file = File::open(path("m-00001-of-00003.gguf"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->part_count(), 3);
  ASSERT_EQ(file->tensors().size(), 3u);
  for (int32_t part = 0; part < 3; ++part) {
    const Tensor* tensor = file->find(fmt::format("t{}", part));
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->part, part);
    EXPECT_EQ(tensor->bytes.size(), 128u);
    file->drop(tensor->bytes);
    EXPECT_EQ(tensor->bytes[127], std::byte{0});  // Still readable.
  }
  EXPECT_EQ(file->file_bytes(), part_file(0).build().size() + 2 * part_file(1).build().size());
  EXPECT_TRUE(file->metadata());
}

TEST_F(SplitFileTest, AnotherPartThanTheFirstIsNamed) {
  write_three();
  auto file = File::open(path("m-00002-of-00003.gguf"));
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("expected the first part, found part 2 of 3; open "),
            std::string::npos);
  EXPECT_NE(file.error().message.find("m-00001-of-00003.gguf"), std::string::npos);
}

TEST_F(SplitFileTest, AMissingPartIsNamed) {
  write_three();
  fs::remove(path("m-00003-of-00003.gguf"));
  EXPECT_NE(open_first_error().find("m-00003-of-00003.gguf: cannot open"), std::string::npos)
      << open_first_error();
  auto file = File::open(path("m-00001-of-00003.gguf"), OpenMode::inspect);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->problems().count, 2u);  // The part, and the count of tensors.
}

TEST_F(SplitFileTest, PartsMustBeWhatTheirNamesSay) {
  write_three();
  write("m-00002-of-00003.gguf", part_file(2));
  EXPECT_NE(open_first_error().find("expected split.no 1 of split.count 3, found 2 of 3"),
            std::string::npos)
      << open_first_error();
  write("m-00002-of-00003.gguf", part_file(1, 4));
  EXPECT_NE(open_first_error().find("found 1 of 4"), std::string::npos);
  RawFile twice = part_file(1);
  twice.tensors[0].name = "t0";
  write("m-00002-of-00003.gguf", twice);
  EXPECT_NE(open_first_error().find("tensor t0: expected once in all parts, found twice"),
            std::string::npos);
  RawFile two = part_file(1);
  two.tensors.push_back({.name = "more", .offset = 128});
  two.data_bytes = 256;
  write("m-00002-of-00003.gguf", two);
  EXPECT_NE(open_first_error().find("split.tensors.count: expected 3, found 4 tensors"),
            std::string::npos);
}

TEST_F(SplitFileTest, TheNameMustAgreeWithTheFile) {
  write("m.gguf", part_file(0));
  auto file = File::open(path("m.gguf"));
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("expected a file name like NAME-00001-of-00003.gguf"),
            std::string::npos)
      << file.error().message;
  RawFile many;
  many.fields = {u16_field("split.count", 1001)};
  write("n.gguf", many);
  auto refused = File::open(path("n.gguf"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("split.count: expected 1 to 1000, found 1001"),
            std::string::npos);
}

TEST_F(SplitFileTest, ANameOfAnotherModelIsRefused) {
  write_three();
  fs::rename(path("m-00001-of-00003.gguf"), path("m-00001-of-00004.gguf"));
  fs::rename(path("m-00002-of-00003.gguf"), path("m-00001-of-00003.gguf"));
  for (const char* name : {"m-00001-of-00004.gguf", "m-00001-of-00003.gguf"}) {
    auto file = File::open(path(name));
    ASSERT_FALSE(file) << name;
    EXPECT_NE(file.error().message.find("expected a file name like NAME-"), std::string::npos)
        << file.error().message;
  }
}

// A model cannot reach out of its folder through a link, unless the whole model is linked.
TEST_F(SplitFileTest, LinksAreFollowedOnlyWhereTheFirstIsOne) {
  write_three();
  fs::create_directories(folder_ / "elsewhere");
  fs::rename(path("m-00002-of-00003.gguf"), path("elsewhere/two"));
  fs::create_symlink("elsewhere/two", path("m-00002-of-00003.gguf"));
  EXPECT_NE(open_first_error().find("expected a regular file, found a symbolic link"),
            std::string::npos)
      << open_first_error();
  fs::rename(path("m-00001-of-00003.gguf"), path("elsewhere/one"));
  fs::create_symlink("elsewhere/one", path("m-00001-of-00003.gguf"));
  EXPECT_EQ(open_first_error(), "opened");
}

TEST(File, ViewsSurviveAMove) {
  const auto bytes = RawFile{.fields = {text_field("general.architecture", "llama"),
                                        number_field("llama.block_count", ValueType::u32, 2u)},
                             .tensors = {{}},
                             .data_bytes = 128}
                         .build();
  auto opened = File::from_bytes(bytes, "x");
  ASSERT_TRUE(opened);
  auto meta = opened->metadata();
  ASSERT_TRUE(meta);
  const Tensor* tensor = opened->find("w");
  const File file = std::move(opened).value();
  auto layers = meta->count("block_count");
  ASSERT_TRUE(layers);
  EXPECT_EQ(*layers, 2);
  EXPECT_EQ(file.find("w"), tensor);
  EXPECT_EQ(&meta->fields(), &file.fields());
  file.drop(tensor->bytes);  // Nothing to give back, and nothing breaks.
}

TEST(File, WeightsAreFoundOrNamed) {
  const auto bytes =
      RawFile{.tensors = {{}, {.name = "ids", .dims = {4}, .type = 26, .offset = 128}},
              .data_bytes = 160}
          .build();
  auto file = File::from_bytes(bytes, "x");
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->weight("w"));
  EXPECT_EQ(file->weight("absent").error().message,
            "tensor absent: expected in the file, found nothing");
  EXPECT_EQ(file->weight("absent").error().code, ErrorCode::not_found);
  EXPECT_EQ(file->weight("ids").error().message,
            "tensor ids: expected a type of weights, found I32");
  EXPECT_EQ(file->find("absent"), nullptr);
}

TEST(File, ASplitModelInMemoryIsRefused) {
  EXPECT_EQ(open_error(part_file(0)),
            "x.gguf: split.count: expected 1 for a model in memory, found 3");
}

TEST(File, SplitFieldsOfAnotherTypeAreRefused) {
  const RawFile odd{.fields = {text_field("split.count", "three")}};
  EXPECT_NE(open_error(odd).find("x.gguf: split.count: expected an integer"), std::string::npos);
  EXPECT_EQ(open_error(odd.build(), OpenMode::inspect), "opened");
}

TEST(File, SaysWhatItIs) {
  const std::string path = CAIRN_FIXTURES "/golden/llama.gguf";
  auto opened = File::open(path);
  ASSERT_TRUE(opened) << opened.error().message;
  const auto bytes = RawFile{}.build();
  auto other = File::from_bytes(bytes, "x");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->part_count(), 1);
  File file = std::move(other).value();
  file = std::move(opened).value();
  EXPECT_EQ(file.name(), path);
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(file.alignment(), 32u);
  EXPECT_EQ(file.part_count(), 1);
  EXPECT_EQ(file.file_bytes(), fs::file_size(path));
  EXPECT_EQ(file.problems().count, 0u);
  file.will_need(file.tensors()[0].bytes);
}

TEST(File, ADigestTellsModelsApart) {
  const RawFile raw{.fields = {text_field("general.architecture", "llama")},
                    .tensors = {{.dims = {4096}}},
                    .data_bytes = 4 * 4096};
  const auto digest_of = [](const auto& bytes) { return File::from_bytes(bytes, "x")->digest(); };
  auto bytes = raw.build();
  const uint64_t digest = digest_of(bytes);
  EXPECT_EQ(digest_of(bytes), digest);
  bytes.back() ^= std::byte(1);  // A weight.
  EXPECT_NE(digest_of(bytes), digest);
  RawFile other = raw;
  other.fields = {text_field("general.architecture", "lamma")};
  EXPECT_NE(digest_of(other.build()), digest);
}

TEST(File, ADigestSeesTheTimeOfChange) {
  const test::ScratchFolder folder;
  const fs::path path = folder.path() / "model.gguf";
  const auto bytes = RawFile{.tensors = {{}}, .data_bytes = 128}.build();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  const uint64_t digest = File::open(path.string())->digest();
  EXPECT_EQ(File::open(path.string())->digest(), digest);
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::nanoseconds(1000));
  EXPECT_NE(File::open(path.string())->digest(), digest);
}

TEST(File, AnInspectedTensorWithoutBytesIsNoWeight) {
  const auto bytes = RawFile{.tensors = {{.dims = {4096}}}, .data_bytes = 128}.build();
  auto file = File::from_bytes(bytes, "x", OpenMode::inspect);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->find("w")->bytes.empty());
  EXPECT_FALSE(file->weight("w"));
}

TEST(File, ErrorsOfTheSystemNameThePath) {
  auto file = File::open("/nonexistent/model.gguf");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::not_found);
  EXPECT_NE(file.error().message.find("/nonexistent/model.gguf"), std::string::npos);
}

}  // namespace
}  // namespace cairn::gguf::raw::gguf_test
