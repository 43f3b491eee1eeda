// Cairn's own folder: names, records, aliases, and what is removed.
#include "hub/model_folder.h"

#include <gtest/gtest.h>

#include "hub/partial_file.h"
#include "tests/hub/hub_server.h"

namespace cairn::hub::model_folder_test {
namespace {

using test::ScratchFolder;

std::string folder_for(const ModelFolder& folder, const char* text) {
  return folder.folder_of(parse_reference(text).value()).value();
}

TEST(ModelFolder, EachReferenceHasAPlace) {
  const ModelFolder folder("/m");
  EXPECT_EQ(folder_for(folder, "hf:acme/tiny:Q8_0"), "/m/hf/acme/tiny");
  EXPECT_EQ(folder_for(folder, "hf:acme/tiny@v1"), "/m/hf/acme/tiny@v1");
  EXPECT_EQ(folder_for(folder, "ollama:tiny:1b"), "/m/ollama/registry.ollama.ai/library/tiny");
  EXPECT_EQ(folder_for(folder, "ollama:h.example:50/a/b"), "/m/ollama/h.example+50/a/b");
  EXPECT_EQ(folder_for(folder, "https://h.example/a.gguf"), "/m/url/h.example");
  EXPECT_EQ(folder_for(folder, "http://h.example:81/a.gguf"), "/m/url/h.example+81");
}

TEST(ModelFolder, ListsWhatIsThereByNamesThatFindIt) {
  const ScratchFolder scratch;
  put(scratch.path(), "hf/acme/tiny/a-Q8_0.gguf", "1234");
  put(scratch.path(), "hf/acme/tiny/s/b-00001-of-00002.gguf", "12");
  put(scratch.path(), "hf/acme/tiny/s/b-00002-of-00002.gguf", "123");
  put(scratch.path(), "hf/acme/tiny@v1/c.gguf.partial", "1");
  put(scratch.path(), "ollama/registry.ollama.ai/library/tiny/1b.gguf", "1");
  put(scratch.path(), "url/h/x/d.gguf", "1");
  put(scratch.path(), "hf/acme/tiny/README.md", "1");
  const ModelFolder folder(scratch.path().string());
  ASSERT_TRUE(
      folder.write_record(scratch.file("url/h/x/d.gguf"),
                          {.name = "https://h/x/d.gguf",
                           .files = {{.path = "x/d.gguf", .sha256 = std::string(64, 'b')}}}));
  std::string names;
  for (const KeptModel& model : folder.list()) {
    names += model.name + " " + std::to_string(model.bytes) + (model.is_partial ? " partial" : "") +
             " " + model.sha256.substr(0, 3) + "\n";
  }
  EXPECT_EQ(names,
            "hf:acme/tiny:a-Q8_0.gguf 4 \n"
            "hf:acme/tiny:s/b-00001-of-00002.gguf 5 \n"
            "hf:acme/tiny@v1:c.gguf 1 partial \n"
            "https://h/x/d.gguf 1 bbb\n"
            "ollama:tiny:1b 1 \n");
  EXPECT_TRUE(ModelFolder(scratch.file("none")).list().empty());
}

// Who may read everything sees the same.
TEST(ModelFolder, WhatMayNotBeReadHidesNothingElse) {
  const ScratchFolder scratch;
  std::string expected;
  for (const char c : {'a', 'b', 'c', 'd', 'e', 'f'}) {
    put(scratch.path(), std::string("hf/acme/") + c + "/x.gguf", "1");
    std::filesystem::create_directories(scratch.path() / (std::string("hf/acme/0") + c));
    expected += std::string("hf:acme/") + c + ":x.gguf\n";
  }
  std::filesystem::create_directories(scratch.path() / "hf/acme/a/folder.gguf");
  std::filesystem::create_symlink("nowhere", scratch.path() / "hf/acme/a/link.gguf");
  const auto set_permissions = [&](std::filesystem::perms permissions) {
    for (const char c : {'a', 'b', 'c', 'd', 'e', 'f'}) {
      std::filesystem::permissions(scratch.path() / (std::string("hf/acme/0") + c), permissions);
    }
  };
  set_permissions(std::filesystem::perms::none);
  std::string names;
  for (const KeptModel& model : ModelFolder(scratch.path().string()).list()) {
    names += model.name + "\n";
  }
  set_permissions(std::filesystem::perms::owner_all);
  EXPECT_EQ(names, expected);
}

TEST(ModelFolder, RecordsAreReadAsTheyWereWritten) {
  const ModelRecord record{.name = "hf:acme/tiny:a.gguf",
                           .revision = "r",
                           .is_converted = true,
                           .files = {{.path = "a.gguf",
                                      .url = "https://h/a",
                                      .bytes = 12,
                                      .sha256 = std::string(64, 'a'),
                                      .etag = "e",
                                      .is_declared = true}}};
  Result<ModelRecord> again = parse_record("record", to_text(record));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_text(*again), to_text(record));
  EXPECT_TRUE(again->is_converted);
  EXPECT_EQ(again->files.at(0).bytes, 12u);
  EXPECT_TRUE(again->files.at(0).is_declared);
  for (const char* text : {"", "[]", "{}", R"({"name":"x"})", R"({"name":"","files":[]})"}) {
    EXPECT_FALSE(parse_record("record", text)) << text;
  }
}

TEST(ModelFolder, RemovesAModelAndNothingElse) {
  const ScratchFolder scratch;
  put(scratch.path(), "hf/acme/tiny/b-00001-of-00002.gguf", "12");
  put(scratch.path(), "hf/acme/tiny/b-00002-of-00002.gguf", "123");
  put(scratch.path(), "hf/acme/tiny/b-00001-of-00002.gguf.json", "{}");
  put(scratch.path(), "hf/acme/tiny/c.gguf.partial", "1");
  put(scratch.path(), "hf/acme/tiny/c.gguf.partial.chunks", "1");
  put(scratch.path(), "hf/acme/other/d.gguf", "1");
  const ModelFolder folder(scratch.path().string());
  for (const KeptModel& model : folder.list()) {
    if (model.repo == "acme/tiny") {
      ASSERT_TRUE(folder.remove(model));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(scratch.file("hf/acme/tiny")));
  EXPECT_TRUE(std::filesystem::exists(scratch.file("hf/acme/other/d.gguf")));
  const ScratchFolder elsewhere;
  put(elsewhere.path(), "x.gguf", "1");
  EXPECT_FALSE(folder.remove({.name = "x", .paths = {elsewhere.file("x.gguf")}}));
  EXPECT_TRUE(std::filesystem::exists(elsewhere.file("x.gguf")));
}

// Their gigabytes are seen, and can be removed.
TEST(ModelFolder, SafetensorsThatAreNotConvertedAreUnfinished) {
  const ScratchFolder scratch;
  put(scratch.path(), "hf/acme/new@v1/safetensors/new/config.json", "12");
  put(scratch.path(), "hf/acme/new@v1/safetensors/new/1_Pooling/config.json", "1");
  put(scratch.path(), "hf/acme/new@v1/safetensors/new/model.safetensors.partial", "123");
  put(scratch.path(), "hf/acme/done/safetensors/done/model.safetensors", "1");
  put(scratch.path(), "hf/acme/done/done.gguf", "1");
  put(scratch.path(), "hf/safetensors/repo/a.gguf", "1");
  put(scratch.path(), "hf/acme/safetensors/safetensors/other/a.txt", "1");
  const ModelFolder folder(scratch.path().string());
  std::string names;
  for (const KeptModel& model : folder.list()) {
    names += model.name + " " + std::to_string(model.bytes) + (model.is_partial ? " partial" : "") +
             "\n";
    if (model.is_partial) {
      ASSERT_TRUE(folder.remove(model));
    }
  }
  EXPECT_EQ(names,
            "hf:acme/done:done.gguf 1\n"
            "hf:acme/new@v1:new.gguf 6 partial\n"
            "hf:safetensors/repo:a.gguf 1\n");
  EXPECT_FALSE(std::filesystem::exists(scratch.file("hf/acme/new@v1")));
  EXPECT_TRUE(std::filesystem::exists(scratch.file("hf/acme/done/safetensors/done")));
}

TEST(ModelFolder, WhatIsBeingFetchedIsNotRemoved) {
  const ScratchFolder scratch;
  const std::string model_path = scratch.file("hf/acme/tiny/a.gguf");
  const std::string source_path = scratch.file("hf/acme/new/safetensors/new/model.safetensors");
  const ModelFolder folder(scratch.path().string());
  {
    const PartialFile::Terms terms{.bytes = 10, .chunk_bytes = 4, .identity = "x"};
    Result<PartialFile> model_file = PartialFile::open(model_path, terms);
    Result<PartialFile> source_file = PartialFile::open(source_path, terms);
    ASSERT_TRUE(model_file && source_file);
    ASSERT_EQ(folder.list().size(), 2u);
    for (const KeptModel& model : folder.list()) {
      const Status removed = folder.remove(model);
      ASSERT_FALSE(removed) << model.name;
      EXPECT_EQ(removed.error().code, ErrorCode::cancelled);
      EXPECT_NE(removed.error().message.find("another process is fetching it"), std::string::npos);
    }
  }
  for (const KeptModel& model : folder.list()) EXPECT_TRUE(folder.remove(model)) << model.name;
  EXPECT_FALSE(std::filesystem::exists(scratch.file("hf")));
}

TEST(ModelFolder, Aliases) {
  const ScratchFolder scratch;
  const ModelFolder folder(scratch.path().string());
  EXPECT_FALSE(folder.alias("mine").value());
  ASSERT_TRUE(folder.set_alias("mine", "hf:acme/tiny:a.gguf"));
  ASSERT_TRUE(folder.set_alias("llama3.2:1b", "/x/b.gguf"));
  ASSERT_TRUE(folder.set_alias("mine", "hf:acme/tiny:b.gguf"));
  EXPECT_EQ(*folder.alias("mine").value(), "hf:acme/tiny:b.gguf");
  EXPECT_EQ(folder.aliases().size(), 2u);
  for (const char* name : {"", "..", ".x", "a/b", "a.gguf", "hf:a", "-x", "a b", "a\n"}) {
    EXPECT_FALSE(folder.set_alias(name, "x")) << name;
    EXPECT_FALSE(folder.alias(name).value()) << name;
    EXPECT_FALSE(folder.remove_alias(name).value()) << name;
  }
  EXPECT_TRUE(folder.remove_alias("mine").value());
  EXPECT_FALSE(folder.remove_alias("mine").value());
  EXPECT_EQ(folder.aliases().size(), 1u);
}

TEST(ModelFolder, ANameMeansTheModelOfItsAliasElseOfItsPreset) {
  const ScratchFolder scratch;
  const ModelFolder folder(scratch.path().string());
  put(scratch.path(), "presets/poet.toml", "model = \"hf:acme/tiny\"\n");
  put(scratch.path(), "presets/bare.toml", "temp = 1\n");
  put(scratch.path(), "presets/wrong.toml", "model = 3\n");
  EXPECT_EQ(*folder.model_of("poet").value(), "hf:acme/tiny");
  EXPECT_FALSE(folder.model_of("bare").value());
  EXPECT_FALSE(folder.model_of("none").value());
  EXPECT_FALSE(folder.model_of("wrong"));
  ASSERT_TRUE(folder.set_alias("poet", "/x/b.gguf"));
  EXPECT_EQ(*folder.model_of("poet").value(), "/x/b.gguf");
}

}  // namespace
}  // namespace cairn::hub::model_folder_test
