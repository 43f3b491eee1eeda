// What the turns of a conversation cost: the first reading, an answer made again, the next message,
// going back into an answer, another branch. Tokens read, steps replayed, milliseconds.
//   turns_bench MODEL [PROMPT_TOKENS [ANSWER_TOKENS [THREADS]]]
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include "bench/figures.h"
#include "engine/generator.h"

namespace {

using namespace cairn;
using Clock = std::chrono::steady_clock;
using Tokens = std::vector<Token>;

struct Arguments {
  std::string model;
  int32_t prompt_tokens = 512, answer_tokens = 96, thread_count = 0;
};

class Turns {
 public:
  explicit Turns(Engine* engine) : engine_(engine), generator_(engine) {}

  Tokens random_tokens(int32_t count) {
    return bench::random_tokens(random_, count, engine_->size().vocabulary_count);
  }
  Tokens held() const {
    return {generator_.sequence().tokens().begin(), generator_.sequence().tokens().end()};
  }
  // `from`: where the last message begins.
  Status read(const char* what, const Tokens& prompt, int32_t from) {
    const Clock::time_point start = Clock::now();
    CAIRN_TRY(const PromptReport report, generator_.read(prompt, {.message_starts = {&from, 1}}));
    logits_sum_ += generator_.logits()[0];  // They may have to be made of the hidden row.
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    fmt::print("{:<28} {:6} tokens held, {:5} read, {:3} steps replayed, {:9.2f} ms{}\n", what,
               report.reused_tokens, report.computed_tokens, report.plan.recurrence_steps,
               seconds * 1e3, report.from_cache ? ", from the prefix cache" : "");
    return Ok{};
  }
  Status answer(const Tokens& tokens) {
    for (const Token token : tokens) CAIRN_TRY(generator_.advance(token));
    return generator_.finish_turn();
  }

 private:
  Engine* engine_;
  Generator generator_;
  std::mt19937 random_{1};
  float logits_sum_ = 0;
};

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Status measure(const Arguments& arguments) {
  CAIRN_TRY(gguf::File file, gguf::File::open(arguments.model));
  CAIRN_TRY(const auto engine,
            Engine::load(std::move(file), {.thread_count = arguments.thread_count}));
  int64_t log_floats = 0;
  for (const int32_t width : engine->runner().plans().log_widths) log_floats += width;
  const memory::Layout& layout = engine->memory().layout();
  const size_t state_bytes =
      layout.recurrent_group < 0 ? 0 : layout.groups[size_t(layout.recurrent_group)].block_bytes;
  fmt::print("a state has {} bytes, the log {} a token; at most {} steps derive a state\n",
             state_bytes, log_floats * int64_t(sizeof(float)), engine->memory().log_step());

  Turns turns(engine.get());
  const Tokens prompt = turns.random_tokens(arguments.prompt_tokens);
  const int32_t from = arguments.prompt_tokens * 3 / 4;
  CAIRN_TRY(turns.read("first reading", prompt, from));
  CAIRN_TRY(turns.answer(turns.random_tokens(arguments.answer_tokens)));
  CAIRN_TRY(turns.read("the same prompt", prompt, from));
  CAIRN_TRY(turns.answer(turns.random_tokens(arguments.answer_tokens)));
  const Tokens answered = turns.held();
  CAIRN_TRY(turns.read("all of it, to go on", answered, from));
  const Tokens message = turns.random_tokens(24);
  for (const int32_t back : {20, 10, 3}) {
    const Tokens beginning(
        answered.begin(), answered.end() - std::min<std::ptrdiff_t>(back, arguments.answer_tokens));
    CAIRN_TRY(turns.read(fmt::format("{} tokens back, 24 others", back).c_str(),
                         joined(beginning, message), int32_t(beginning.size())));
  }
  CAIRN_TRY(
      turns.read("the next message, of 24", joined(answered, message), int32_t(answered.size())));
  CAIRN_TRY(turns.answer(turns.random_tokens(arguments.answer_tokens)));
  const Tokens branch(prompt.begin(), prompt.begin() + from);
  CAIRN_TRY(turns.read("another message, of 24", joined(branch, message), from));
  return turns.read("back to the first branch", joined(answered, message),
                    int32_t(answered.size()));
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 2) {
    fmt::print(stderr, "usage: turns_bench MODEL [PROMPT_TOKENS [ANSWER_TOKENS [THREADS]]]\n");
    return 2;
  }
  const auto number = [&](int index, int32_t fallback) {
    return index < argument_count ? std::atoi(arguments[index]) : fallback;
  };
  const Status status = measure({.model = arguments[1],
                               .prompt_tokens = std::max(8, number(2, 512)),
                               .answer_tokens = std::max(1, number(3, 96)),
                               .thread_count = number(4, 0)});
  if (status) return 0;
  fmt::print(stderr, "turns_bench: {}\n", status.error().message);
  return 1;
}
