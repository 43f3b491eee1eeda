// The file beside a model: back as it was written, refused where it is wrong or another model's,
// and what the words of --skip-layers find in it.
#include "session/program/skip_file.h"

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "engine/engine.h"
#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"

namespace cairn::session::skip_file_test {
namespace {

SkipFile example(const std::string& model) {
  return {.model = model,
          .token_count = 500,
          .steps = {{{2}, 0.0625, 0.9375}, {{0, 2}, 0.5, 0.75}},
          .layers = {2}};
}

TEST(SkipFile, StandsBesideTheModel) {
  EXPECT_EQ(skip_file_path("/a/b.gguf"), "/a/b.skip.json");
  EXPECT_EQ(skip_file_path("b"), "b.skip.json");
}

TEST(SkipFile, ComesBackAsItWasWritten) {
  const SkipFile file = example("ab12");
  const SkipFile back = read_skip_file("file", skip_file_text(file)).value();
  EXPECT_EQ(back.model, file.model);
  EXPECT_EQ(back.token_count, 500);
  EXPECT_EQ(back.layers, file.layers);
  ASSERT_EQ(back.steps.size(), 2u);
  EXPECT_EQ(back.steps[1].layers, file.steps[1].layers);
  EXPECT_EQ(back.steps[0].divergence, 0.0625);
  EXPECT_EQ(back.steps[1].same_top, 0.75);
}

TEST(SkipFile, NamesWhatIsWrong) {
  const std::string right = skip_file_text(example("ab12"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = right;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto read = read_skip_file("file", text);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(changed("\"skip\":1", "\"skip\":2"), "file: skip: expected the format's number 1");
  EXPECT_EQ(changed("\"ab12\"", "7"), "file: model: expected a digest");
  EXPECT_EQ(changed("500", "0"), "file: tokens: expected a number of tokens");
  EXPECT_EQ(changed("[0,2]", "[2,0]"),
            "file: steps[1]: expected layers in ascending order, each once");
  EXPECT_EQ(changed("[0,2]", "[0]"), "file: steps[1]: expected 2 layers");
  EXPECT_EQ(changed("0.0625", "-1"), "file: steps[0]: expected a number \"kl_divergence\"");
  EXPECT_EQ(changed("0.75", "null"), "file: steps[1]: expected a number \"same_top\"");
  EXPECT_NE(changed("{", ""), "");
}

TEST(SkipFile, WhatOptionsMean) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  std::filesystem::copy_file(test::golden_path("llama", ".gguf"), path);
  const auto skipped = [&](const std::string& text) -> std::string {
    EngineOptions options = test::golden_options(KvType::f16);
    if (const Status set = set_skipped_layers("--skip-layers", text, options); !set) {
      return set.error().message;
    }
    auto engine = Engine::load(gguf::File::open(path).value(), options);
    if (!engine) return engine.error().message;
    return models::layer_list_text((*engine)->program().skipped_layers);
  };
  const auto write = [&](const std::string& model) {
    test::write_to(folder.file("model.skip.json"), skip_file_text(example(model)));
  };
  EXPECT_EQ(skipped("1,3"), "1, 3");
  EXPECT_EQ(skipped("tuned"), folder.file("model.skip.json") +
                                  ": expected what `cairn tune skip` writes for the model, found "
                                  "no such file");
  const std::string own = hex_of(gguf::File::open(path)->identity());
  write(own);
  EXPECT_EQ(skipped("tuned"), "2");
  EXPECT_EQ(skipped("tuned:1"), "2");
  EXPECT_EQ(skipped("tuned:2"), "0, 2");
  EXPECT_EQ(skipped("tuned:3"),
            folder.file("model.skip.json") + ": expected 1 to 2 layers to skip, found 3");
  for (const char* wrong : {"tuned:", "tuned:0", "tuned:x", "tuned2", "tuned:1x"}) {
    EXPECT_EQ(skipped(wrong),
              fmt::format("--skip-layers: expected tuned, or tuned: and a number of layers, found "
                          "\"{}\"",
                          wrong));
  }
  const std::string other(64, '0');
  write(other);
  EXPECT_EQ(skipped("tuned"), folder.file("model.skip.json") + ": expected layers of the model " +
                                  own + ", found those of " + other);
}

}  // namespace
}  // namespace cairn::session::skip_file_test
