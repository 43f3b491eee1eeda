// Tokens per second of a whole model: reading a prompt and making tokens, as an engine does it.
//   engine_bench MODEL [PROMPT_TOKENS [NEW_TOKENS [THREADS [DEPTH]]]]
// Each figure is the median of several samples; the machine's noise is printed beside it.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include "engine/generator.h"

namespace {

using namespace cairn;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Samples {
  std::vector<double> values;

  void print(const char* what) {
    std::sort(values.begin(), values.end());
    fmt::print("{:<24} {:8.2f} tokens/s (median of {}; {:.2f} to {:.2f})\n", what,
               values[values.size() / 2], values.size(), values.front(), values.back());
  }
};

struct Arguments {
  std::string model;
  int32_t prompt_tokens = 512, new_tokens = 64, thread_count = 0, depth = 0;
};

std::vector<Token> random_tokens(int32_t count, int32_t vocabulary, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Token> tokens;
  for (int32_t token = 0; token < count; ++token) {
    tokens.push_back(Token(random() % uint32_t(vocabulary)));
  }
  return tokens;
}

Status bench(const Arguments& arguments) {
  constexpr int32_t kSamples = 5;
  CAIRN_TRY(gguf::File file, gguf::File::open(arguments.model));
  const Clock::time_point load_start = Clock::now();
  CAIRN_TRY(const auto engine,
            Engine::load(std::move(file), {.thread_count = arguments.thread_count}));
  fmt::print("load {:.2f} s, {} threads, {}\n", seconds_since(load_start),
             engine->options().thread_count, name(*engine->options().isa));
  Generator generator(engine.get());
  Samples prompt, decode;
  const int32_t vocabulary = engine->size().vocabulary_count;
  std::vector<Token> depth = random_tokens(arguments.depth, vocabulary, 1);
  for (int32_t sample = 0; sample < kSamples; ++sample) {
    std::vector<Token> tokens = depth;
    if (!depth.empty()) CAIRN_TRY(generator.read(depth));
    for (const Token token :
         random_tokens(arguments.prompt_tokens, vocabulary, uint32_t(sample) + 2)) {
      tokens.push_back(token);
    }
    Clock::time_point start = Clock::now();
    CAIRN_TRY(const PromptReport report, generator.read(tokens));
    prompt.values.push_back(report.computed_tokens / seconds_since(start));
    start = Clock::now();
    for (int32_t token = 0; token < arguments.new_tokens; ++token) {
      CAIRN_TRY(generator.advance(tokens[size_t(token) % tokens.size()]));
    }
    decode.values.push_back(arguments.new_tokens / seconds_since(start));
  }
  prompt.print(fmt::format("prompt {}", arguments.prompt_tokens).c_str());
  decode.print(fmt::format("decode {}", arguments.new_tokens).c_str());
  return Ok{};
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 2) {
    fmt::print(stderr,
               "usage: engine_bench MODEL [PROMPT_TOKENS [NEW_TOKENS [THREADS [DEPTH]]]]\n");
    return 2;
  }
  const auto number = [&](int index, int32_t fallback) {
    return index < argument_count ? std::atoi(arguments[index]) : fallback;
  };
  const Status status = bench({.model = arguments[1],
                               .prompt_tokens = std::max(1, number(2, 512)),
                               .new_tokens = std::max(1, number(3, 64)),
                               .thread_count = number(4, 0),
                               .depth = std::max(0, number(5, 0))});
  if (status) return 0;
  fmt::print(stderr, "engine_bench: {}\n", status.error().message);
  return 1;
}
