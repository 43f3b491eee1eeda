// From references to files: the hub's and the registry's answers, other programs' folders, files in
// parts, folders to convert. Covers hugging_face, ollama_registry and remote_model.
#include "hub/pull.h"

#include <gtest/gtest.h>

#include "hub/model_folder.h"
#include "tests/hub/hub_server.h"

namespace cairn::hub::pull_test {
namespace {

using test::contents_of;
using test::ScratchFolder;

class PullTest : public testing::Test {
 protected:
  PullTest() {
    put(there_.path(), "tiny/README.md", "about");
    put(there_.path(), "tiny/a-Q4_K_M.gguf", model_bytes(70'000));
    put(there_.path(), "tiny/a-Q8_0.gguf", model_bytes(90'000, 2));
    put(there_.path(), "tiny/mmproj-a.gguf", model_bytes(100, 3));
    put(there_.path(), "split/b-00001-of-00003.gguf", model_bytes(5'000, 4));
    put(there_.path(), "split/b-00002-of-00003.gguf", model_bytes(6'000, 5));
    put(there_.path(), "split/b-00003-of-00003.gguf", model_bytes(7'000, 6));
    put(there_.path(), "folder/config.json", "{}");
    put(there_.path(), "folder/model.safetensors", "weights");
    put(there_.path(), "folder/README.md", "about");
    put(there_.path(), "torch/pytorch_model.bin", "weights");
    server_ = std::make_unique<HubServer>(there_.path());
    settings_.hub_url = settings_.ollama_url = server_->url();
    settings_.folder = here_.file("models");
    options_.web.patience = {.failures_max = 3,
                             .wait_first = std::chrono::milliseconds(5),
                             .wait_max = std::chrono::milliseconds(20)};
    options_.chunk_bytes = 20'000;
    options_.on_note = [this](std::string_view line) { notes_ += std::string(line) + "\n"; };
  }

  Result<Pulled> get(const std::string& text) {
    Result<ModelReference> reference = parse_pull_reference(text);
    if (!reference) return reference.error();
    return pull(settings_, *reference, options_);
  }
  std::string error_of(const std::string& text) {
    Result<Pulled> pulled = get(text);
    return pulled ? "it was fetched" : pulled.error().message;
  }
  void set_token(const std::string& token) {
    settings_.token = token;
    settings_.token_source = "HF_TOKEN";
  }

  ScratchFolder there_, here_;
  std::unique_ptr<HubServer> server_;
  HubSettings settings_;
  PullOptions options_;
  std::string notes_;
};

TEST_F(PullTest, TheUsualFileWithItsRecord) {
  Result<Pulled> pulled = get("acme/good-tiny");
  ASSERT_TRUE(pulled) << pulled.error().message;
  const std::string bytes = model_bytes(70'000);
  EXPECT_EQ(pulled->path, settings_.folder + "/hf/acme/good-tiny/a-Q4_K_M.gguf");
  EXPECT_EQ(pulled->name, "hf:acme/good-tiny:a-Q4_K_M.gguf");
  EXPECT_EQ(pulled->fetched_bytes, bytes.size());
  EXPECT_EQ(contents_of(pulled->path), bytes);
  EXPECT_NE(notes_.find("mmproj-a.gguf: left out"), std::string::npos) << notes_;
  Result<std::optional<ModelRecord>> record =
      ModelFolder(settings_.folder).read_record(pulled->path);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->files.at(0).sha256, hex_digest(bytes));
  EXPECT_TRUE((*record)->files.at(0).is_declared);
  EXPECT_EQ((*record)->revision, "0123456789abcdef0123456789abcdef01234567");
  // Signatures open a file: they are written nowhere.
  EXPECT_EQ(to_text(**record).find("signature"), std::string::npos);
}

TEST_F(PullTest, IsNotFetchedAgainWhileItIsTheSame) {
  ASSERT_TRUE(get("acme/good-tiny:Q8_0"));
  server_->forget_log();
  Result<Pulled> again = get("acme/good-tiny:Q8_0");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->was_kept_by, Keeper::cairn);
  EXPECT_EQ(count_of(server_->log(), "storage"), 0u);
  EXPECT_TRUE(find_kept(settings_, parse_reference("hf:Acme/Good-Tiny:q8_0").value()));
  EXPECT_FALSE(find_kept(settings_, parse_reference("hf:acme/good-tin:Q8_0").value()));
  put(there_.path(), "tiny/a-Q8_0.gguf", model_bytes(90'000, 9));
  again = get("acme/good-tiny:Q8_0");
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->was_kept_by);
  EXPECT_EQ(contents_of(again->path), model_bytes(90'000, 9));
}

TEST_F(PullTest, AllPartsOfASplitModelAndNoneTwice) {
  Result<Pulled> pulled = get("acme/good-split");
  ASSERT_TRUE(pulled) << pulled.error().message;
  const std::string base = settings_.folder + "/hf/acme/good-split/b-0000";
  EXPECT_EQ(pulled->path, base + "1-of-00003.gguf");
  EXPECT_EQ(contents_of(base + "3-of-00003.gguf"), model_bytes(7'000, 6));
  EXPECT_EQ(pulled->fetched_bytes, 18'000u);
  // A run that was killed between two parts: the first is kept, although there is no record yet.
  std::filesystem::remove(base + "1-of-00003.gguf.json");
  std::filesystem::remove(base + "2-of-00003.gguf");
  pulled = get("acme/good-split");
  ASSERT_TRUE(pulled);
  EXPECT_EQ(pulled->fetched_bytes, 6'000u);
  Result<std::optional<ModelRecord>> record =
      ModelFolder(settings_.folder).read_record(pulled->path);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->files.size(), 3u);
}

TEST_F(PullTest, RepositoriesWithoutGgufSayWhatTheyHave) {
  EXPECT_EQ(error_of("acme/good-folder"),
            "acme/good-folder: expected a GGUF file, found safetensors; `cairn pull "
            "acme/good-folder --convert` fetches and converts them");
  EXPECT_EQ(error_of("acme/good-torch"),
            "acme/good-torch: expected a GGUF file, or safetensors with a config.json; found "
            "pytorch_model.bin");
  options_.takes_folder = true;
  Result<Pulled> pulled = get("acme/good-folder");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_TRUE(pulled->is_folder);
  EXPECT_EQ(contents_of(pulled->path + "model.safetensors"), "weights");
  EXPECT_FALSE(std::filesystem::exists(pulled->path + "README.md"));
  put(here_.path(), "models/hf/acme/good-folder/good-folder.gguf", "converted");
  EXPECT_EQ(pulled->converted_path, settings_.folder + "/hf/acme/good-folder/good-folder.gguf");
  ASSERT_TRUE(finish_conversion(settings_, *pulled, false));
  EXPECT_FALSE(std::filesystem::exists(pulled->path));
  pulled = get("acme/good-folder");
  ASSERT_TRUE(pulled);
  EXPECT_EQ(pulled->was_kept_by, Keeper::cairn);
  EXPECT_FALSE(pulled->is_folder);
}

TEST_F(PullTest, RefusalsSayWhatCanBeDone) {
  EXPECT_NE(error_of("acme/gated-tiny")
                .find("its licence has to be accepted first: open " + server_->url() +
                      "/acme/gated-tiny"),
            std::string::npos);
  const std::string unknown = error_of("acme/good-tinny");
  EXPECT_NE(unknown.find("that everybody may read, found none; there are acme/plain-"),
            std::string::npos)
      << unknown;
  EXPECT_NE(unknown.find("a private one needs HF_TOKEN"), std::string::npos) << unknown;
  EXPECT_NE(error_of("acme/private-tiny").find("a private one needs HF_TOKEN"), std::string::npos);
  EXPECT_NE(error_of("acme/good-tiny@v9").find("expected a revision \"v9\", found none"),
            std::string::npos);
  EXPECT_NE(error_of("acme/good-tiny:Q4_K_N").find("did you mean Q4_K_M?"), std::string::npos);
  set_token("hf_wrong");
  EXPECT_NE(error_of("acme/private-tiny").find("the token of HF_TOKEN may not read it"),
            std::string::npos);
  set_token("hf_secret");
  EXPECT_TRUE(get("acme/private-tiny"));
  EXPECT_NE(error_of("acme/gated-tiny").find("has to be accepted"), std::string::npos);
}

TEST_F(PullTest, TokensStayWithTheHub) {
  set_token("hf_secret");
  ASSERT_TRUE(get("acme/private-tiny"));
  const std::string log = server_->log();
  size_t storage_lines = 0;
  for (size_t begin = 0; begin < log.size();) {
    const size_t end = log.find('\n', begin);
    const std::string line = log.substr(begin, end - begin);
    const bool is_storage = line.find("\"storage\"") != line.npos;
    storage_lines += is_storage ? 1 : 0;
    EXPECT_EQ(line.find("hf_secret") == line.npos, is_storage) << line;
    begin = end + 1;
  }
  EXPECT_GT(storage_lines, 1u);
}

TEST_F(PullTest, PagesThatLeadElsewhereAreNotRead) {
  EXPECT_NE(error_of("acme/elsewhere-tiny").find("expected the next page on"), std::string::npos);
  EXPECT_EQ(count_of(server_->log(), "storage"), 0u);
}

TEST_F(PullTest, OllamasManifestsAndBlobs) {
  Result<Pulled> pulled = get("ollama:acme/good-tiny:a-Q8_0");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(contents_of(pulled->path), model_bytes(90'000, 2));
  EXPECT_EQ(pulled->path,
            settings_.folder + "/ollama/registry.ollama.ai/acme/good-tiny/a-Q8_0.gguf");
  EXPECT_NE(notes_.find("a projector for pictures: left out"), std::string::npos);
  EXPECT_NE(error_of("ollama:acme/good-tiny:none").find("of that name and tag"), std::string::npos);
  EXPECT_NE(error_of("ollama:acme/hash-tiny:a-Q8_0").find("expected SHA-256"), std::string::npos);
  // Hugging Face's token is not the registry's, even where both are one server.
  set_token("hf_secret");
  ASSERT_TRUE(get("ollama:acme/good-tiny:a-Q4_K_M"));
  EXPECT_EQ(count_of(server_->log(), "hf_secret"), 0u);
}

TEST_F(PullTest, PlainUrls) {
  const std::string url = server_->storage_url() + "/acme/good-tiny/a-Q8_0.gguf";
  Result<Pulled> pulled = get(url + "?key=secret");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(contents_of(pulled->path), model_bytes(90'000, 2));
  EXPECT_EQ(pulled->sha256, hex_digest(model_bytes(90'000, 2)));
  Result<std::optional<ModelRecord>> record =
      ModelFolder(settings_.folder).read_record(pulled->path);
  ASSERT_TRUE(record && *record);
  EXPECT_FALSE((*record)->files.at(0).is_declared);
  EXPECT_EQ(to_text(**record).find("secret"), std::string::npos);
  // It is found by its name, and what the server says of it tells whether it is another one.
  EXPECT_TRUE(find_kept(settings_, parse_reference(url + "?key=other").value()));
  EXPECT_EQ(get(url)->was_kept_by, Keeper::cairn);
  put(there_.path(), "tiny/a-Q8_0.gguf", model_bytes(90'000, 9));
  EXPECT_FALSE(get(url)->was_kept_by);
  EXPECT_EQ(contents_of(pulled->path), model_bytes(90'000, 9));
  EXPECT_NE(error_of(server_->storage_url() + "/acme/good-tiny/none.gguf").find("HTTP status 404"),
            std::string::npos);
  EXPECT_NE(error_of(server_->storage_url() + "/acme/good-tiny/").find("NAME.gguf"),
            std::string::npos);
}

TEST_F(PullTest, WhatOtherProgramsHaveIsNotFetched) {
  settings_.hub_cache = here_.file("hub");
  settings_.llama_cache = here_.file("llama");
  settings_.lm_studio_folders = {here_.file("studio")};
  settings_.ollama_folders = {here_.file("ollama")};
  const std::string bytes = model_bytes(70'000);
  struct Case {
    std::string path;
    Keeper keeper;
  };
  const Case cases[] = {
      {"hub/models--acme--good-tiny/snapshots/c/a-Q4_K_M.gguf", Keeper::hugging_face},
      {"llama/acme_good-tiny_a-Q4_K_M.gguf", Keeper::llama_cpp},
      {"studio/acme/good-tiny/a-Q4_K_M.gguf", Keeper::lm_studio},
  };
  for (const Case& c : cases) {
    put(here_.path(), c.path, bytes);
    const auto kept = find_kept(settings_, parse_reference("hf:ACME/good-tiny:Q4_K_M").value());
    ASSERT_TRUE(kept) << c.path;
    EXPECT_EQ(kept->paths.front(), here_.file(c.path));
    EXPECT_FALSE(find_kept(settings_, parse_reference("hf:acme/good-tiny:Q8_0").value())) << c.path;
    EXPECT_FALSE(find_kept(settings_, parse_reference("hf:acme/good-tiny@v1:Q4_K_M").value()))
        << c.path;
    Result<Pulled> pulled = get("acme/good-tiny");
    ASSERT_TRUE(pulled) << pulled.error().message;
    EXPECT_EQ(pulled->was_kept_by, c.keeper);
    EXPECT_EQ(pulled->path, here_.file(c.path));
    std::filesystem::remove(here_.file(c.path));
  }
  EXPECT_EQ(count_of(server_->log(), "storage"), 0u);
  // Other bytes under the same name are not the model.
  put(here_.path(), cases[0].path, model_bytes(70'000, 99));
  EXPECT_FALSE(get("acme/good-tiny")->was_kept_by);

  const std::string digest = hex_digest(model_bytes(90'000, 2));
  put(here_.path(), "ollama/blobs/sha256-" + digest, model_bytes(90'000, 2));
  put(here_.path(), "ollama/manifests/registry.ollama.ai/acme/good-tiny/a-Q8_0",
      R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:)" + digest +
          R"(","size":90000}]})");
  EXPECT_TRUE(find_kept(settings_, parse_reference("ollama:acme/good-tiny:a-Q8_0").value()));
  EXPECT_EQ(get("ollama:acme/good-tiny:a-Q8_0")->was_kept_by, Keeper::ollama);
  // The same bytes by another name.
  EXPECT_EQ(get("acme/good-tiny:Q8_0")->was_kept_by, Keeper::ollama);
}

TEST_F(PullTest, NothingIsAskedWhereNothingMayBe) {
  settings_.is_offline = true;
  EXPECT_NE(error_of("acme/good-tiny").find("HF_HUB_OFFLINE"), std::string::npos);
  settings_.is_offline = false;
  settings_.folder = "";
  EXPECT_NE(error_of("acme/good-tiny").find("CAIRN_MODELS"), std::string::npos);
  EXPECT_EQ(server_->log(), "");
}

}  // namespace
}  // namespace cairn::hub::pull_test
