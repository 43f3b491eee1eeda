// Which files of a list are meant.
#include "hub/file_choice.h"

#include <gtest/gtest.h>

namespace cairn::hub::file_choice_test {
namespace {

std::vector<ListedFile> list_of(const std::vector<std::string>& paths) {
  std::vector<ListedFile> files;
  for (const std::string& path : paths) files.push_back({.path = path, .bytes = 1, .sha256 = {}});
  return files;
}

// The paths that are chosen, or the error.
std::string chosen(const std::vector<std::string>& paths, const std::string& pick) {
  const std::vector<ListedFile> files = list_of(paths);
  Result<FileChoice> choice = choose_gguf("acme/tiny", files, pick);
  if (!choice) return choice.error().message;
  std::string text;
  for (const size_t place : choice->files) text += (text.empty() ? "" : " ") + files[place].path;
  for (const std::string& name : choice->left_out) text += " -" + name;
  return text;
}

const std::vector<std::string> kUsual = {"README.md",
                                         "tiny-Q4_K_M.gguf",
                                         "tiny-Q4_K_S.gguf",
                                         "tiny-UD-Q4_K_XL.gguf",
                                         "tiny-Q8_0.gguf",
                                         "mmproj-tiny-f16.gguf",
                                         "imatrix.gguf",
                                         "BF16/tiny-BF16-00002-of-00002.gguf",
                                         "BF16/tiny-BF16-00001-of-00002.gguf"};

TEST(FileChoice, ByFileByQuantizationAndTheUsualOne) {
  const std::string mmproj = " -mmproj-tiny-f16.gguf";
  EXPECT_EQ(chosen(kUsual, ""), "tiny-Q4_K_M.gguf" + mmproj);
  EXPECT_EQ(chosen(kUsual, "Q8_0"), "tiny-Q8_0.gguf" + mmproj);
  EXPECT_EQ(chosen(kUsual, "q4_k_s"), "tiny-Q4_K_S.gguf" + mmproj);
  EXPECT_EQ(chosen(kUsual, "Q4_K_XL"), "tiny-UD-Q4_K_XL.gguf" + mmproj);
  EXPECT_EQ(chosen(kUsual, "tiny-Q4_K_S.gguf"), "tiny-Q4_K_S.gguf" + mmproj);
  const std::string parts = "BF16/tiny-BF16-00001-of-00002.gguf BF16/tiny-BF16-00002-of-00002.gguf";
  EXPECT_EQ(chosen(kUsual, "BF16"), parts + mmproj);
  EXPECT_EQ(chosen(kUsual, "BF16/tiny-BF16-00001-of-00002.gguf"), parts + mmproj);
  EXPECT_EQ(chosen(kUsual, "tiny-BF16-00002-of-00002.gguf"), parts + mmproj);
}

TEST(FileChoice, TheOnlyModelIsMeantWhateverItIsCalled) {
  EXPECT_EQ(chosen({"model.gguf", "README.md"}, ""), "model.gguf");
  EXPECT_EQ(chosen({"a-Q8_0.gguf", "a-Q2_K.gguf"}, ""), "a-Q8_0.gguf");
}

TEST(FileChoice, WhatIsNotThereIsToldWithWhatIs) {
  EXPECT_EQ(chosen(kUsual, "Q4_K_N"),
            "acme/tiny: expected a file or quantization \"Q4_K_N\", found tiny-Q4_K_M.gguf, "
            "tiny-Q4_K_S.gguf, tiny-UD-Q4_K_XL.gguf, tiny-Q8_0.gguf, BF16/tiny-BF16 (2 parts); did "
            "you mean Q4_K_M?");
  EXPECT_EQ(chosen({"a-Q2_K.gguf", "b-Q2_K.gguf"}, "Q2_K"),
            "acme/tiny: expected one file for \"Q2_K\", found a-Q2_K.gguf, b-Q2_K.gguf");
  EXPECT_EQ(chosen({"a-Q2_K.gguf", "a-Q3_K.gguf"}, ""),
            "acme/tiny: expected :FILE or :QUANT behind it, found a-Q2_K.gguf, a-Q3_K.gguf");
  EXPECT_EQ(chosen({"a-00001-of-00003.gguf", "a-00003-of-00003.gguf"}, ""),
            "acme/tiny: expected 3 parts of a, found no part 2");
  EXPECT_EQ(chosen({"mmproj-f16.gguf"}, ""),
            "acme/tiny: expected a GGUF file, found none in 1 files");
  EXPECT_EQ(chosen(kUsual, "mmproj-tiny-f16.gguf"),
            "acme/tiny: expected a language model, found mmproj-tiny-f16.gguf, which only prepares "
            "pictures for one");
}

TEST(FileChoice, NamesThatLeadElsewhereAreNotThere) {
  EXPECT_EQ(chosen({"../a.gguf", "/b.gguf", "c.gguf"}, ""), "c.gguf");
  EXPECT_FALSE(has_gguf(list_of({"../a.gguf", "mmproj.gguf", "imatrix.gguf", "b.bin"})));
  EXPECT_TRUE(has_gguf(list_of({"a.GGUF"})));
}

TEST(FileChoice, AHugeCountOfPartsIsNoModel) {
  EXPECT_EQ(chosen({"a-00001-of-99999.gguf", "b.gguf"}, ""), "b.gguf");
}

TEST(FileChoice, FoldersAreWhatConvertReads) {
  const std::vector<ListedFile> files =
      list_of({"config.json", "model.safetensors", "tokenizer.json", "README.md", "onnx/model.json",
               "1_Pooling/config.json", "original/consolidated.safetensors", "../x.json"});
  std::string names;
  for (const size_t place : choose_folder(files)) names += files[place].path + " ";
  EXPECT_EQ(names, "config.json model.safetensors tokenizer.json 1_Pooling/config.json ");
  EXPECT_TRUE(choose_folder(list_of({"config.json", "pytorch_model.bin"})).empty());
  EXPECT_TRUE(choose_folder(list_of({"model.safetensors"})).empty());
}

}  // namespace
}  // namespace cairn::hub::file_choice_test
