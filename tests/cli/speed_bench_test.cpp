// `cairn bench MODEL` from outside: which rows there are and what stands in them. Figures depend on
// the machine, so that they are only looked at for being there. Covers speed_bench.cpp, bench.cpp.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "measure/speed_samples.h"
#include "tests/cli/run_program.h"

namespace cairn::cli::speed_bench_test {
namespace {

using nlohmann::json;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string write_model(const ScratchFolder& folder, std::vector<std::string> shape) {
  const std::string path = folder.file("model.gguf");
  std::vector<std::string> arguments{"synth", "--vocab", "512", "--layers", "2", "-o", path};
  arguments.insert(arguments.end(), shape.begin(), shape.end());
  const Finished run = run_program(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return path;
}

json measured(const std::string& model, std::vector<std::string> options) {
  options.insert(options.begin(), {"bench", model, "--json", "-t", "1"});
  const Finished run = run_program(options);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  return json::parse(run.out);
}

TEST(Speed, NumericsAreExactUnlessTold) {
  const ScratchFolder folder;
  const std::string model = write_model(folder, {"--like", "llama"});
  EXPECT_EQ(measured(model, {"-p", "3", "-n", "0", "-r", "1"})["numerics"], "exact-1");
  const Finished fast = run_program(
      {"bench", model, "--json", "-p", "3", "-n", "0", "-r", "1", "--numerics", "fast"});
  if (fast.exit_code == 0) {
    EXPECT_EQ(json::parse(fast.out)["numerics"], "fast-1");
  } else {
    EXPECT_TRUE(has(fast.err, "numerics fast-1: expected a CPU with")) << fast.err;
  }
  const Finished wrong = run_program({"bench", model, "--numerics", "quick"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(has(wrong.err, "--numerics: expected \"exact\" or \"fast\", found \"quick\""));
  // What memory holds of an answer has other bits than the same text that is read.
  const Finished verify = run_program({"verify", model, "--numerics", "fast"});
  EXPECT_EQ(verify.exit_code, 2);
  EXPECT_TRUE(has(verify.err, "verify: expected numerics exact-1")) << verify.err;
}

TEST(Speed, RowsStandInTheirOrder) {
  const ScratchFolder folder;
  const json report =
      measured(write_model(folder, {"--like", "llama"}),
               {"-p", "3,70", "-n", "20", "-d", "40,0,40", "--batch", "1,9", "-r", "2"});
  ASSERT_EQ(report["rows"].size(), 8u);
  struct Expected {
    int prompt, gen, depth, batch;
    size_t sample_count;
  };
  // A short prompt is read eight times a round, 20 tokens are decoded in two samples.
  const Expected expected[] = {{3, 0, 0, 1, 16},  {70, 0, 0, 1, 2},  {0, 20, 0, 1, 4},
                               {0, 20, 0, 9, 4},  {3, 0, 40, 1, 16}, {70, 0, 40, 1, 2},
                               {0, 20, 40, 1, 4}, {0, 20, 40, 9, 4}};
  for (size_t i = 0; i < std::size(expected); ++i) {
    const json& row = report["rows"][i];
    EXPECT_EQ(row["n_prompt"], expected[i].prompt) << i;
    EXPECT_EQ(row["n_gen"], expected[i].gen) << i;
    EXPECT_EQ(row["depth"], expected[i].depth) << i;
    EXPECT_EQ(row["batch"], expected[i].batch) << i;
    ASSERT_EQ(row["samples"].size(), expected[i].sample_count) << i;
    EXPECT_EQ(row["tokens_per_second"], measure::median(row["samples"].get<std::vector<double>>()))
        << i;
    EXPECT_GT(row["tokens_per_second"], 0) << i;
    EXPECT_GT(row["limit_tokens_per_second"], 0) << i;
    EXPECT_EQ(row.contains("first_token_ms"), expected[i].prompt > 0) << i;
  }
  EXPECT_GT(report["load_to_first_token_ms"], report["load_ms"]);
  EXPECT_GT(report["machine"]["read_bytes_per_second"], 1e8);
  EXPECT_GT(report["resident_bytes"], 1 << 20);
  EXPECT_EQ(report["threads"], 1);
}

TEST(Speed, ATableForPeople) {
  const ScratchFolder folder;
  const Finished run = run_program(
      {"bench", write_model(folder, {"--like", "gemma3"}), "-p", "8", "-n", "3", "-r", "1"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  for (const char* part : {"gemma3", "at best: ", "B/s read", "first token after ", "prompt 8",
                           "decode 3", "a token at 0: "}) {
    EXPECT_TRUE(has(run.out, part)) << part << "\n" << run.out;
  }
}

TEST(Speed, MistakesNameTheThing) {
  const ScratchFolder folder;
  const std::string model = write_model(folder, {"--like", "llama", "--context", "100"});
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    const char* message;
  };
  const Case cases[] = {
      {{"bench"}, 2, "bench: expected a model or \"memory\", found neither"},
      {{"bench", model, "-p", "12x"}, 2, "cairn: -p: "},
      {{"bench", model, "-d", "1,-1"}, 2, "cairn: -d: "},
      {{"bench", model, "-n", "many"}, 2, "cairn: -n: "},
      {{"bench", model, "--batch", "0"}, 2, "cairn: --batch: "},
      {{"bench", model, "-r", "0"}, 2, "cairn: -r: "},
      {{"bench", model, "-p", "0", "-n", "0"}, 2, "(-p) or new ones (-n), found neither"},
      {{"bench", model, "x.gguf"}, 2, "bench: expected one model, found \"x.gguf\""},
      {{"bench", "no-such-file.gguf"}, 1, "no-such-file.gguf: "},
      {{"bench", model, "-p", "90", "-n", "9", "-d", "11"}, 2, "the model's 100 tokens, found 101"},
      {{"bench", model, "-p", "9", "-n", "3", "-c", "8"}, 2, "cairn: -c: expected at least 9"},
      {{"bench", model, "-p", "0", "-n", "3", "--batch", "600"}, 2, "--batch: expected at most"},
  };
  for (const Case& wrong : cases) {
    const Finished run = run_program(wrong.arguments);
    EXPECT_EQ(run.exit_code, wrong.exit_code) << wrong.message;
    EXPECT_TRUE(has(run.err, wrong.message)) << wrong.message << "\n" << run.err;
    EXPECT_EQ(run.out, "");
  }
}

}  // namespace
}  // namespace cairn::cli::speed_bench_test
