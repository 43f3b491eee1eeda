// Folders as other programs leave them.
#include "hub/other_folders.h"

#include <gtest/gtest.h>

#include "tests/hub/hub_server.h"

namespace cairn::hub::other_folders_test {
namespace {

using test::ScratchFolder;

std::string names_of(const std::vector<KeptModel>& models) {
  std::string names;
  for (const KeptModel& model : models) {
    names += model.name + " " + std::to_string(model.paths.size()) + " " +
             std::to_string(model.bytes) + " " + model.sha256.substr(0, 4) + "\n";
  }
  return names;
}

TEST(OtherFolders, HuggingFacesLinksToBlobs) {
  const ScratchFolder scratch;
  const std::string digest = hex_digest("12345"), repo = "models--acme--tiny/";
  put(scratch.path(), repo + "refs/main", "new");
  put(scratch.path(), repo + "blobs/" + digest, "12345");
  put(scratch.path(), repo + "snapshots/old/a.gguf", "1");
  put(scratch.path(), repo + "snapshots/old/b.gguf", "12");
  put(scratch.path(), repo + "snapshots/new/s/c-00001-of-00002.gguf", "1");
  put(scratch.path(), repo + "snapshots/new/s/c-00002-of-00002.gguf", "1");
  put(scratch.path(), repo + "snapshots/new/mmproj-a.gguf", "1");
  std::filesystem::create_symlink("../../blobs/" + digest,
                                  scratch.path() / (repo + "snapshots/new/a.gguf"));
  std::filesystem::create_symlink("../../blobs/gone",
                                  scratch.path() / (repo + "snapshots/new/gone.gguf"));
  put(scratch.path(), "datasets--acme--x/snapshots/y/d.gguf", "1");
  EXPECT_EQ(names_of(in_hub_cache(scratch.path().string())),
            "hf:acme/tiny:a.gguf 1 5 " + digest.substr(0, 4) +
                "\n"
                "hf:acme/tiny:s/c-00001-of-00002.gguf 2 2 \n"
                "hf:acme/tiny:b.gguf 1 2 \n");
}

TEST(OtherFolders, WhatMayNotBeReadHidesNothingElse) {
  const ScratchFolder scratch;
  const std::filesystem::path snapshot = scratch.path() / "models--acme--tiny/snapshots/new";
  for (const char* name : {"0", "1", "2", "3"}) {
    std::filesystem::create_directories(snapshot / name);
    std::filesystem::permissions(snapshot / name, std::filesystem::perms::none);
    put(snapshot, std::string(name) + ".gguf", "1");
  }
  const std::vector<KeptModel> models = in_hub_cache(scratch.path().string());
  for (const char* name : {"0", "1", "2", "3"}) {
    std::filesystem::permissions(snapshot / name, std::filesystem::perms::owner_all);
  }
  EXPECT_EQ(models.size(), 4u);
}

TEST(OtherFolders, LlamaCppsNamesAndUrls) {
  const ScratchFolder scratch;
  put(scratch.path(), "acme_tiny_a.gguf", "1");
  put(scratch.path(), "acme_tiny_a.gguf.json",
      R"({"etag":"x","url":"https://huggingface.co/acme/tiny/resolve/main/sub/a.gguf"})");
  put(scratch.path(), "acme_tiny_b.gguf", "1");
  put(scratch.path(), "acme_tiny_b.gguf.json", "not JSON");
  put(scratch.path(), "deep/c.gguf", "1");
  EXPECT_EQ(names_of(in_llama_cache(scratch.path().string())),
            "hf:acme/tiny:sub/a.gguf 1 1 \n" + scratch.file("acme_tiny_b.gguf") + " 1 1 \n");
}

TEST(OtherFolders, LmStudiosFolders) {
  const ScratchFolder scratch;
  put(scratch.path(), "acme/tiny/a.gguf", "1");
  put(scratch.path(), "acme/tiny/mmproj-a.gguf", "1");
  put(scratch.path(), "acme/stray.gguf", "1");
  EXPECT_EQ(names_of(in_lm_studio(scratch.path().string())), "hf:acme/tiny:a.gguf 1 1 \n");
}

TEST(OtherFolders, OllamasManifests) {
  const ScratchFolder scratch;
  const std::string digest = hex_digest("12345");
  const std::string manifest =
      R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:)" + digest +
      R"(","size":5}]})";
  put(scratch.path(), "blobs/sha256-" + digest, "12345");
  put(scratch.path(), "manifests/registry.ollama.ai/library/tiny/1b", manifest);
  put(scratch.path(), "manifests/hf.co/acme/tiny/Q8_0", manifest);
  put(scratch.path(), "manifests/registry.ollama.ai/library/broken/1b", "{");
  put(scratch.path(), "manifests/stray", manifest);
  std::string gone = manifest;
  gone.replace(gone.find(digest), 4, "0000");
  put(scratch.path(), "manifests/registry.ollama.ai/library/gone/1b", gone);
  EXPECT_EQ(names_of(in_ollama(scratch.path().string())),
            "ollama:hf.co/acme/tiny:Q8_0 1 5 " + digest.substr(0, 4) + "\nollama:tiny:1b 1 5 " +
                digest.substr(0, 4) + "\n");
}

TEST(OtherFolders, NoFolderNoModels) {
  EXPECT_TRUE(in_hub_cache("/none").empty());
  EXPECT_TRUE(in_llama_cache("/none").empty());
  EXPECT_TRUE(in_lm_studio("/none").empty());
  EXPECT_TRUE(in_ollama("/none").empty());
}

}  // namespace
}  // namespace cairn::hub::other_folders_test
