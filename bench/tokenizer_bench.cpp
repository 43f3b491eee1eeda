// Tokenizer speed, one core: English text and long lines without spaces, with any vocabulary.
//   tokenizer_bench MODEL.gguf [--benchmark_filter=…]
// The text is the licences of the system; sizes of the lines are arguments, so that growth shows.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>

#include "base/check.h"
#include "engine/vocabulary_source.h"
#include "tokenize/detokenizer.h"

namespace cairn {
namespace {

std::string english_text() {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/common-licenses")) {
    std::ifstream file(entry.path(), std::ios::binary);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  CHECK(!text.empty());
  return text;
}

std::string line_of(size_t bytes, std::string_view alphabet) {
  std::mt19937 random(1);
  std::string line(bytes, ' ');
  for (char& c : line) c = alphabet[random() % alphabet.size()];
  return line;
}

void encode(benchmark::State& state, const tokenize::Tokenizer& tokenizer,
            const std::string& text) {
  std::vector<Token> tokens;
  for ([[maybe_unused]] auto _ : state) {
    tokens.clear();
    tokenizer.encode_to(text, {}, tokens);
    benchmark::DoNotOptimize(tokens.data());
  }
  state.SetBytesProcessed(int64_t(text.size()) * state.iterations());
  state.counters["tokens"] = double(tokens.size());
}

void decode_stream(benchmark::State& state, const tokenize::Tokenizer& tokenizer,
                   const std::string& text) {
  const std::vector<Token> tokens = tokenizer.encode(text);
  for ([[maybe_unused]] auto _ : state) {
    tokenize::Detokenizer detokenizer(tokenizer);
    for (const Token token : tokens) benchmark::DoNotOptimize(detokenizer.push(token).data());
  }
  state.SetItemsProcessed(int64_t(tokens.size()) * state.iterations());
}

void add_line(const tokenize::Tokenizer& tokenizer, const char* name, std::string_view alphabet) {
  for (const size_t mebibytes : {1, 10}) {
    auto line = std::make_shared<std::string>(line_of(mebibytes << 20, alphabet));
    benchmark::RegisterBenchmark(
        fmt::format("line/{}/{}MiB", name, mebibytes).c_str(),
        [&tokenizer, line](benchmark::State& state) { encode(state, tokenizer, *line); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1);
  }
}

int run(int argument_count, char** arguments) {
  benchmark::Initialize(&argument_count, arguments);
  if (argument_count != 2) {
    fmt::print(stderr, "usage: tokenizer_bench MODEL.gguf\n");
    return 2;
  }
  auto file = gguf::File::open(arguments[1]);
  CHECK(file);
  auto source = vocabulary_source(*file);
  CHECK(source);
  auto tokenizer = tokenize::Tokenizer::build(*source);
  CHECK(tokenizer);
  const std::string english = english_text();
  benchmark::RegisterBenchmark("build", [&](benchmark::State& state) {
    for ([[maybe_unused]] auto _ : state) {
      benchmark::DoNotOptimize(tokenize::Tokenizer::build(*source));
    }
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("english", [&](benchmark::State& state) {
    encode(state, **tokenizer, english);
  })->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("detokenize", [&](benchmark::State& state) {
    decode_stream(state, **tokenizer, english);
  })->Unit(benchmark::kMillisecond);
  add_line(**tokenizer, "letters", "abcdefghijklmnopqrstuvwxyz");
  add_line(**tokenizer, "same", "a");
  add_line(**tokenizer, "digits", "0123456789");
  add_line(**tokenizer, "symbols", "!?#-=_+*");
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argument_count, char** arguments) {
  return cairn::run(argument_count, arguments);
}
