// Folders of which one file was changed at random, by seeds: numbers that break careless
// arithmetic, values of other types, bytes flipped, left out and doubled. Nothing crashes; what is
// refused leaves no file; what is written, the reader opens.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/log.h"
#include "convert/convert.h"
#include "gguf/gguf.h"
#include "tests/scratch_folder.h"

namespace cairn::convert::mutation_test {
namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 1000;

std::string read(const fs::path& path) {
  EXPECT_TRUE(fs::exists(path)) << path;
  return test::contents_of(path.string());
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

struct Target {
  fs::path folder;
  std::string file, bytes;
  bool is_tensors = false;
};

std::vector<Target> copy_folders(const fs::path& scratch) {
  std::vector<Target> targets;
  for (const char* name : {"Tiny-Llama-3.1-8B-Instruct",
                           "qwen3moe-tiny",
                           "gemma2-tiny",
                           "phi3-tiny",
                           "spaced-llama",
                           "gemma3n-tiny",
                           "gemma4-tiny",
                           "mamba-tiny",
                           "jamba-tiny",
                           "falcon-h1-tiny",
                           "granitehybrid-tiny",
                           "nomic-tiny",
                           "nemotron-h-moe-tiny",
                           "lfm2moe-tiny",
                           "qwen3next-tiny",
                           "qwen35-tiny",
                           "bert-tiny",
                           "xlmr-tiny",
                           "xlmr-json-tiny",
                           "modernbert-tiny",
                           "gemma-embedding-tiny",
                           "jais",
                           "falcon",
                           "bloom",
                           "mpt",
                           "dbrx",
                           "gptneox",
                           "deepseek3",
                           "exaone4",
                           "glm4moe",
                           "gpt_oss",
                           "hunyuan_dense",
                           "internlm2",
                           "llama4",
                           "minicpm3",
                           "qwen3vlmoe"}) {
    const fs::path folder = scratch / name;
    fs::copy(fs::path(CAIRN_FIXTURES) / "folders" / name, folder, fs::copy_options::recursive);
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      targets.push_back({.folder = folder,
                         .file = entry.path().lexically_relative(folder).string(),
                         .bytes = read(entry.path()),
                         .is_tensors = entry.path().extension() == ".safetensors"});
    }
  }
  // The order of a folder's entries is the system's.
  std::sort(targets.begin(), targets.end(), [](const Target& a, const Target& b) {
    return std::pair(a.folder, a.file) < std::pair(b.folder, b.file);
  });
  return targets;
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  size_t below(size_t limit) { return size_t(random_() % limit); }

  std::string mutate(const Target& target) {
    if (!target.is_tensors) return changed(target.bytes);
    uint64_t length = 0;
    std::memcpy(&length, target.bytes.data(), sizeof length);
    std::string head = target.bytes.substr(sizeof length, size_t(length));
    const std::string data = target.bytes.substr(sizeof length + size_t(length));
    head = changed(head);
    length = below(8) == 0 ? random_() >> below(64) : head.size();
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    bytes += head;
    return bytes + data.substr(0, below(8) == 0 ? below(data.size()) : data.size());
  }

 private:
  std::string changed(std::string text) {
    const size_t change_count = 1 + below(2);
    for (size_t i = 0; i < change_count && !text.empty(); ++i) change(text);
    return text;
  }

  void change(std::string& text) {
    const size_t at = below(text.size());
    switch (below(8)) {
      case 0:
        text[at] = char(text[at] ^ (1 << below(8)));
        return;
      case 1:
        text.erase(at, 1 + below(40));
        return;
      case 2:
        text.insert(below(text.size()), text.substr(at, 1 + below(40)));
        return;
      case 3:
        if (below(8) == 0) text.resize(at);
        return;
      default:
        replace_value(text, at);
    }
  }

  // The first value of JSON behind `at`, or whatever looks like one in other files.
  void replace_value(std::string& text, size_t at) {
    static constexpr std::array kValues = {"0",
                                           "1",
                                           "-1",
                                           "3",
                                           "0.5",
                                           "-0.5",
                                           "1e308",
                                           "-1e308",
                                           "1e-308",
                                           "65537",
                                           "2147483647",
                                           "4294967296",
                                           "9223372036854775807",
                                           "-9223372036854775808",
                                           "18446744073709551615",
                                           "null",
                                           "true",
                                           "\"\"",
                                           "\"0\"",
                                           "\"\xe2\x96\x81\"",
                                           "[]",
                                           "[null]",
                                           "{}",
                                           "{\"a\":[1]}"};
    size_t begin = text.find_first_of(":[,", at);
    if (begin == text.npos) return;
    begin = text.find_first_not_of(":[, \n", begin);
    if (begin == text.npos) return;
    const size_t end = text.find_first_of(",]}\n", begin);
    if (end == text.npos || end - begin > 80) return;
    text.replace(begin, end - begin, kValues[below(kValues.size())]);
  }

  std::mt19937_64 random_;
};

TEST(Mutation, HostileFoldersAreRefusedOrConverted) {
  const test::ScratchFolder scratch;
  const std::vector<Target> targets = copy_folders(scratch.path());
  ASSERT_GE(targets.size(), 25u);
  const std::string out = scratch.file("out.gguf");
  int written_count = 0;
  log::set_level(log::Level::error);  // Broken advice on sampling is a warning.
  for (int round = 0; round < kRounds; ++round) {
    Mutator mutator{uint64_t(round)};
    const Target& target = targets[mutator.below(targets.size())];
    write(target.folder / target.file, mutator.mutate(target));
    const Result<ConvertReport> report =
        convert({.folder = target.folder.string(), .out_path = out});
    ASSERT_EQ(bool(report), fs::exists(out)) << "round " << round;
    if (report) {
      ++written_count;
      const Result<gguf::File> file = gguf::File::open(out);
      ASSERT_TRUE(file) << "round " << round << ": " << file.error().message;
      fs::remove(out);
    }
    write(target.folder / target.file, target.bytes);
  }
  log::set_level(log::Level::info);
  // Both ends are reached.
  EXPECT_GT(written_count, kRounds / 20);
  EXPECT_LT(written_count, kRounds * 19 / 20);
}

}  // namespace
}  // namespace cairn::convert::mutation_test
