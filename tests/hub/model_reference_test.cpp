// The forms of references, and what is none of them.
#include "hub/model_reference.h"

#include <gtest/gtest.h>

namespace cairn::hub::model_reference_test {
namespace {

TEST(ModelReference, FormsAreReadAndWrittenAlike) {
  struct Case {
    const char* text;
    SourceKind kind;
    const char *host, *repo, *revision, *pick;
    const char* written;  // Null: as it was read.
  };
  const Case cases[] = {
      {"hf:acme/tiny", SourceKind::hugging_face, "", "acme/tiny", "", "", nullptr},
      {"hf:acme/tiny:Q4_K_M", SourceKind::hugging_face, "", "acme/tiny", "", "Q4_K_M", nullptr},
      {"hf:acme/tiny@v1:sub/a.gguf", SourceKind::hugging_face, "", "acme/tiny", "v1", "sub/a.gguf",
       nullptr},
      {"https://huggingface.co/acme/tiny", SourceKind::hugging_face, "", "acme/tiny", "", "",
       "hf:acme/tiny"},
      {"https://huggingface.co/acme/tiny/blob/main/a.gguf", SourceKind::hugging_face, "",
       "acme/tiny", "", "a.gguf", "hf:acme/tiny:a.gguf"},
      {"https://huggingface.co/acme/tiny/resolve/v1/s/a.gguf?download=true",
       SourceKind::hugging_face, "", "acme/tiny", "v1", "s/a.gguf", "hf:acme/tiny@v1:s/a.gguf"},
      {"ollama:llama3.2", SourceKind::ollama, "", "library/llama3.2", "", "latest",
       "ollama:llama3.2:latest"},
      {"ollama:llama3.2:1b", SourceKind::ollama, "", "library/llama3.2", "", "1b", nullptr},
      {"ollama:acme/tiny:q4", SourceKind::ollama, "", "acme/tiny", "", "q4", nullptr},
      {"ollama:example.org:5000/acme/tiny:q4", SourceKind::ollama, "example.org:5000", "acme/tiny",
       "", "q4", nullptr},
      {"https://example.org/b.gguf?key=secret", SourceKind::url, "",
       "https://example.org/b.gguf?key=secret", "", "", "https://example.org/b.gguf"},
      {"https://example.org/a.gguf", SourceKind::url, "", "https://example.org/a.gguf", "", "",
       nullptr},
  };
  for (const Case& c : cases) {
    Result<ModelReference> reference = parse_reference(c.text);
    ASSERT_TRUE(reference) << c.text << ": " << reference.error().message;
    EXPECT_TRUE(is_reference(c.text));
    EXPECT_EQ(reference->kind, c.kind) << c.text;
    EXPECT_EQ(reference->host, c.host) << c.text;
    EXPECT_EQ(reference->repo, c.repo) << c.text;
    EXPECT_EQ(reference->revision, c.revision) << c.text;
    EXPECT_EQ(reference->pick, c.pick) << c.text;
    EXPECT_EQ(to_text(*reference), c.written == nullptr ? c.text : c.written);
  }
}

TEST(ModelReference, OthersAreRefused) {
  for (const char* text : {"hf:",
                           "hf:acme",
                           "hf:acme/",
                           "hf:/tiny",
                           "hf:acme/tiny/more",
                           "hf:../tiny",
                           "hf:acme/..",
                           "hf:acme/tiny:",
                           "hf:acme/tiny:../secret",
                           "hf:acme/tiny:/etc/passwd",
                           "hf:acme/tiny@",
                           "hf:acme/tiny@a/b",
                           "hf:.acme/tiny",
                           "hf:acme/ti ny",
                           "hf:acme/tiny:a\nb",
                           "ollama:",
                           "ollama:a/b/c",
                           "ollama:x:",
                           "ollama:../x",
                           "ollama:x:../y",
                           "ollama:example.org:/x",
                           "ollama:example.org:123456/a/x",
                           "https://huggingface.co/acme",
                           "https://huggingface.co/acme/tiny/discussions/1",
                           "model.gguf",
                           ""}) {
    Result<ModelReference> reference = parse_reference(text);
    ASSERT_FALSE(reference) << text;
    EXPECT_EQ(reference.error().code, ErrorCode::invalid_argument) << text;
  }
  EXPECT_FALSE(is_reference("model.gguf"));
  EXPECT_FALSE(is_reference("acme/tiny"));
  EXPECT_FALSE(is_reference("./hf:acme/tiny"));
}

TEST(ModelReference, PullTakesRepositoriesWithoutAPrefix) {
  Result<ModelReference> bare = parse_pull_reference("acme/tiny:Q8_0");
  ASSERT_TRUE(bare);
  EXPECT_EQ(to_text(*bare), "hf:acme/tiny:Q8_0");
  EXPECT_TRUE(parse_pull_reference("ollama:tiny"));
  EXPECT_FALSE(parse_pull_reference("tiny"));
}

TEST(ModelReference, PathsOfStrangersStayBelow) {
  for (const char* path : {"a.gguf", "sub/a-00001-of-00002.gguf", "a b+c.gguf", "1_Pooling/x"}) {
    EXPECT_TRUE(is_safe_path(path)) << path;
  }
  for (const char* path : {"", "/a", "a/", "a//b", "..", "../a", "a/../b", ".hidden", "a/.b",
                           "a\\b", "a:b", "a\x01", "a\x7f"}) {
    EXPECT_FALSE(is_safe_path(path)) << path;
  }
  EXPECT_FALSE(is_safe_path(std::string("a\0b", 3)));
  EXPECT_FALSE(is_safe_path(std::string(201, 'a')));
}

}  // namespace
}  // namespace cairn::hub::model_reference_test
