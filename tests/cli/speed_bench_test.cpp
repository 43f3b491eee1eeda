// `cairn bench MODEL` from outside: which rows there are and what stands in them; and the counting
// of bytes and operations, by hand. Figures depend on the machine, so that they are only looked at
// for being there. Covers speed_bench.cpp, speed_samples.cpp, step_costs.cpp, machine_limits.cpp.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "measure/machine_limits.h"
#include "measure/speed_samples.h"
#include "measure/step_costs.h"
#include "tests/cli/run_program.h"

namespace cairn::cli {
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
  // Bits are not promised, so that there is nothing to verify.
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

TEST(Speed, CountsWhatATokenReads) {
  const ScratchFolder folder;
  // Q8_0: 34 bytes for 32 weights. A layer: queries and outputs 128 × 128, keys and values 128 ×
  // 64, three matrices of the feed-forward block 128 × 256; at the end the table, 512 × 128.
  const std::string model =
      write_model(folder, {"--like", "llama", "--width", "128", "--heads", "4", "--kv-heads", "2",
                           "--head-dim", "32", "--mlp-width", "256"});
  const double layer = 128.0 * (128 + 128 + 64 + 64 + 3 * 256);
  const json rows =
      measured(model, {"-p", "600", "-n", "2", "-d", "0,99", "-r", "1", "--batch", "1,4"})["rows"];
  ASSERT_EQ(rows.size(), 6u);
  const double weights = 2 * layer + 512 * 128;
  const json& decode = rows[4];
  EXPECT_EQ(decode["depth"], 99);
  // And one row of the table to begin with.
  EXPECT_DOUBLE_EQ(decode["bytes_per_token"]["weights"], (weights + 128) * 34 / 32);
  EXPECT_DOUBLE_EQ(decode["operations_per_token"]["integer"], 2 * weights);
  // In the middle, 100 tokens behind and the own one: two layers, two heads of 32, f16.
  EXPECT_DOUBLE_EQ(decode["bytes_per_token"]["keys_and_values"], 2.0 * 101 * 2 * 2 * 32 * 2);
  EXPECT_DOUBLE_EQ(decode["operations_per_token"]["float"], 2.0 * 4 * 4 * 32 * 101);
  EXPECT_EQ(decode["bytes_per_token"]["states"], 0);
  // Four sequences read weights and their common past once.
  const json& batch = rows[5];
  EXPECT_DOUBLE_EQ(batch["bytes_per_token"]["weights"], (weights / 4 + 128) * 34 / 32);
  EXPECT_DOUBLE_EQ(batch["bytes_per_token"]["keys_and_values"],
                   2.0 * (100.0 / 4 + 1) * 2 * 2 * 32 * 2);
  // A prompt of 600 takes two steps, and the logits of its last token.
  const json& prompt = rows[0];
  EXPECT_EQ(prompt["n_prompt"], 600);
  EXPECT_NEAR(prompt["operations_per_token"]["integer"].get<double>(),
              2 * (2 * layer + 512.0 * 128 / 600), 1e-6);
  EXPECT_NEAR(prompt["bytes_per_token"]["weights"].get<double>(),
              ((2 * 2 * layer + 512.0 * 128) / 600 + 128) * 34 / 32, 1e-6);
}

TEST(Speed, CountsStatesAndTheExpertsInUse) {
  const ScratchFolder folder;
  const json recurrent =
      measured(write_model(folder, {"--like", "mamba2"}), {"-p", "0", "-n", "4", "-r", "1"});
  // 512 channels × 128 of state in each of two layers, and the tails of the convolution: 3 × (512 +
  // 2 × 128).
  EXPECT_EQ(recurrent["rows"][0]["bytes_per_token"]["states"],
            2 * 4 * (512 * 128 + 3 * (512 + 2 * 128)));
  EXPECT_EQ(recurrent["rows"][0]["bytes_per_token"]["keys_and_values"], 0);
  const json moe =
      measured(write_model(folder, {"--like", "qwen3moe", "--width", "64", "--expert-width", "32",
                                    "--experts", "8", "--experts-used", "2"}),
               {"-p", "0", "-n", "4", "-r", "1", "--batch", "1,3"});
  const auto weights = [&](size_t row) {
    return moe["rows"][row]["bytes_per_token"]["weights"].get<double>();
  };
  // Of a layer's experts, one token uses a quarter, three tokens 1 - (3/4)^3.
  const double experts = 2.0 * 8 * 3 * 64 * 32 * 34 / 32;
  const double others = weights(0) - experts / 4;
  EXPECT_GT(others, 0);
  const double look_ups = 2 * 64 * 34.0 / 32;  // Of two more tokens.
  EXPECT_NEAR(3 * weights(1), others + look_ups + experts * 37 / 64, 1e-6);
}

TEST(Speed, TheLimitIsReadingOrComputing) {
  const measure::MachineLimits limits{
      .read_bytes_per_second = 1000, .integer_ops_per_second = 100, .float_ops_per_second = 10};
  const measure::StepCosts reading{.weight_bytes = 500, .kv_bytes = 300, .state_bytes = 200};
  EXPECT_DOUBLE_EQ(measure::least_seconds(reading, limits), 1);
  const measure::StepCosts computing{.weight_bytes = 500, .integer_ops = 50, .float_ops = 15};
  EXPECT_DOUBLE_EQ(measure::least_seconds(computing, limits), 2);
  // What could not be measured limits nothing.
  EXPECT_DOUBLE_EQ(measure::least_seconds(computing, {.read_bytes_per_second = 1000}), 0.5);
}

TEST(Speed, EachSequenceMayHaveAPastOfItsOwn) {
  const ScratchFolder folder;
  const std::string model = write_model(folder, {"--like", "granitehybrid"});
  const json report = measured(
      model, {"-p", "0", "-n", "4", "-d", "0,30", "--batch", "3", "-r", "1", "--separate-prompts"});
  EXPECT_TRUE(report["separate_prompts"].get<bool>());
  const json shared =
      measured(model, {"-p", "0", "-n", "4", "-d", "0,30", "--batch", "3", "-r", "1"});
  const auto kv_bytes = [](const json& of) {
    return of["rows"][1]["bytes_per_token"]["keys_and_values"].get<double>();
  };
  // 32 tokens behind, in the middle, for each or for all three; and the own one.
  EXPECT_NEAR(kv_bytes(report) / kv_bytes(shared), 33.0 / (32.0 / 3 + 1), 1e-9);
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
      {{"bench", model, "-p", "12x"}, 2, "--prompt-tokens"},
      {{"bench", model, "-d", "1,-1"}, 2, "--depths"},
      {{"bench", model, "-n", "many"}, 2, "--new-tokens"},
      {{"bench", model, "--batch", "0"}, 2, "--batch"},
      {{"bench", model, "-r", "0"}, 2, "--rounds"},
      {{"bench", model, "-p", "0", "-n", "0"}, 2, "(-p) or new ones (-n), found neither"},
      {{"bench", model, "x.gguf"}, 2, "bench: expected one model, found \"x.gguf\""},
      {{"bench", "no-such-file.gguf"}, 1, "no-such-file.gguf: "},
      {{"bench", model, "-p", "90", "-n", "9", "-d", "11"}, 2, "the model's 100 tokens, found 101"},
      {{"bench", model, "-p", "9", "-n", "3", "-c", "8"}, 2, "--ctx-size: expected at least 9"},
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
}  // namespace cairn::cli
