// What hubs answer, and what liars do.
#include "hub/answers.h"

#include <gtest/gtest.h>

namespace cairn::hub::answers_test {
namespace {

const std::string kDigest(64, 'a');

TEST(Answers, PagesOfFiles) {
  std::vector<ListedFile> files;
  const std::string page =
      R"([{"type":"directory","path":"d","size":0,"oid":"x"},)"
      R"({"type":"file","path":"README.md","size":12,"oid":"y"},)"
      R"({"type":"file","path":"d/a.gguf","size":134,"oid":"z","lfs":{"oid":")" +
      std::string(64, 'A') + R"(","size":5000000000,"pointerSize":134}}])";
  ASSERT_TRUE(parse_tree_page(page, files));
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, "README.md");
  EXPECT_EQ(files[0].bytes, 12u);
  EXPECT_EQ(files[0].sha256, "");
  EXPECT_EQ(files[1].bytes, 5'000'000'000u);
  EXPECT_EQ(files[1].sha256, kDigest);
}

TEST(Answers, PagesThatMakeNoSense) {
  for (const char* page :
       {"", "{", "{}", "null", R"([{"type":"file","size":1}])", R"([{"type":"file","path":"a"}])",
        R"([{"type":"file","path":"a","size":-1}])", R"([{"type":"file","path":"a","size":1e300}])",
        R"([{"type":"file","path":"a","size":"7"}])",
        R"([{"type":"file","path":"a","size":1,"lfs":{"oid":"zz","size":1}}])",
        R"([{"type":"file","path":"a","size":1,"lfs":7}])"}) {
    std::vector<ListedFile> files;
    const Status status = parse_tree_page(page, files);
    ASSERT_FALSE(status) << page;
    EXPECT_EQ(status.error().code, ErrorCode::invalid_data) << page;
  }
  std::vector<ListedFile> files;
  EXPECT_EQ(parse_tree_page(std::string(kAnswerBytesMax + 1, ' '), files).error().code,
            ErrorCode::no_room);
}

TEST(Answers, ModelInfo) {
  const std::string commit = "0123456789abcdef0123456789abcdef01234567";
  EXPECT_EQ(parse_model_info(R"({"sha":")" + commit + R"("})")->commit, commit);
  // It becomes part of a URL: anything else is not believed.
  EXPECT_EQ(parse_model_info(R"({"sha":"../../x"})")->commit, "");
  EXPECT_FALSE(parse_model_info("[]"));
}

TEST(Answers, Manifests) {
  Result<std::vector<ManifestLayer>> layers = parse_manifest(
      R"({"layers":[{"mediaType":"m","digest":"sha256:)" + kDigest + R"(","size":7}]})");
  ASSERT_TRUE(layers);
  ASSERT_EQ(layers->size(), 1u);
  EXPECT_EQ(layers->front().media_type, "m");
  EXPECT_EQ(layers->front().sha256, kDigest);
  EXPECT_EQ(layers->front().bytes, 7u);
  for (const std::string& manifest :
       {std::string("{}"), std::string(R"({"layers":{}})"),
        std::string(R"({"layers":[{"mediaType":"m","digest":"sha256:../../x","size":7}]})"),
        R"({"layers":[{"mediaType":"m","digest":"md5:)" + kDigest + R"(","size":7}]})",
        R"({"layers":[{"mediaType":"m","digest":"sha256:)" + kDigest + R"("}]})"}) {
    EXPECT_FALSE(parse_manifest(manifest)) << manifest;
  }
}

TEST(Answers, NextLinks) {
  EXPECT_EQ(next_link(R"(<https://h/x?a=1,2>; rel="next")"), "https://h/x?a=1,2");
  EXPECT_EQ(next_link(R"(<https://h/p>; rel="prev", <https://h/n>; rel="next")"), "https://h/n");
  for (const char* header :
       {"", "<", ">", "<a", "<a>", R"(<a>; rel="prev")", R"(rel="next")", R"(>; rel="next" <)"}) {
    EXPECT_EQ(next_link(header), "") << header;
  }
}

TEST(Answers, ContentRanges) {
  Result<ContentRange> range = parse_content_range("bytes 5-9/1234");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 5u);
  EXPECT_EQ(range->last, 9u);
  EXPECT_EQ(range->total, 1234u);
  for (const char* header :
       {"", "bytes", "bytes 5-9/*", "bytes 9-5/12", "bytes 0-12/12", "bytes -1-2/9", "items 0-1/2",
        "bytes 0-1", "bytes 0/1-2", "bytes 0-99999999999999999999/1", "bytes +0-1/2"}) {
    EXPECT_FALSE(parse_content_range(header)) << header;
  }
}

TEST(Answers, Searches) {
  EXPECT_EQ(parse_search(R"([{"id":"a/b"},{"x":1},{"id":"c/d"}])")->size(), 2u);
  EXPECT_TRUE(parse_search("{}")->empty());
}

}  // namespace
}  // namespace cairn::hub::answers_test
