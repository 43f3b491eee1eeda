// Many conversations at once on one engine: each says a turn, waits for the answer, and says the
// next. All begin with the same system prompt. Prints what people wait for, what is computed, and
// what would have to be. With THOUGHT_TOKENS the first so many tokens of each answer are not in the
// prompts that follow, as templates leave out reasoning.
//   many_bench MODEL [CONVERSATIONS [TURNS [SYSTEM_TOKENS [THREADS [ANSWER_TOKENS
//              [THOUGHT_TOKENS]]]]]]
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/machine/machine_memory.h"
#include "base/quantities.h"
#include "bench/figures.h"
#include "bench/timed_job.h"
#include "engine/schedule/scheduler.h"

namespace {

using namespace cairn;
using namespace cairn::bench;
using Tokens = std::vector<Token>;

constexpr int32_t kMessageTokens = 40;

struct Arguments {
  std::string model;
  int32_t conversations = 4, turns = 8, system_tokens = 2048, thread_count = 0, answer_tokens = 64;
  int32_t thought_tokens = 0;
};

struct Conversation {
  int32_t number = 0;
  Tokens history;
  TimedAnswer turn;
  int32_t turns_done = 0;
};

class Many {
 public:
  Many(Engine* engine, const Arguments& arguments)
      : engine_(engine), arguments_(arguments), scheduler_(engine) {}

  Status run() {
    const Tokens system = random_tokens(arguments_.system_tokens);
    std::vector<Conversation> conversations(size_t(arguments_.conversations));
    for (Conversation& conversation : conversations) {
      conversation.number = int32_t(&conversation - conversations.data());
      conversation.history = system;
      say(conversation);
    }
    const Clock::time_point begin = Clock::now();
    const double processor_begin = processor_seconds();
    while (scheduler_.has_work()) {
      scheduler_.step();
      for (Conversation& conversation : conversations) CAIRN_TRY(go_on(conversation));
    }
    report(seconds_between(begin, Clock::now()), processor_seconds() - processor_begin);
    return Ok{};
  }

 private:
  Tokens random_tokens(int32_t count) {
    return bench::random_tokens(random_, count, engine_->size().vocabulary_count);
  }

  void say(Conversation& conversation) {
    const int32_t start = int32_t(conversation.history.size());
    const Tokens message = random_tokens(kMessageTokens);
    conversation.history.insert(conversation.history.end(), message.begin(), message.end());
    conversation.turn = {};
    TimedRequest request{.prompt = conversation.history,
                         .message_starts = {start},
                         .token_count = arguments_.answer_tokens,
                         .seed = uint64_t(job_count_)};
    scheduler_.submit(JobId{job_count_},
                      std::make_unique<TimedJob>(engine_, std::move(request), &conversation.turn),
                      {.client = std::to_string(conversation.number)});
    ++job_count_;
  }

  Status go_on(Conversation& conversation) {
    TimedAnswer& turn = conversation.turn;
    if (!turn.has_ended) return Ok{};
    if (turn.error) return *std::move(turn.error);
    (conversation.turns_done == 0 ? first_waits_ : next_waits_).push_back(turn.first_wait());
    const std::vector<double> gaps = turn.gaps();
    longest_gaps_.push_back(*std::max_element(gaps.begin(), gaps.end()));
    answer_tokens_ += int64_t(turn.tokens.size());
    conversation.history.insert(conversation.history.end(),
                                turn.tokens.begin() + arguments_.thought_tokens, turn.tokens.end());
    turn.has_ended = false;
    if (++conversation.turns_done < arguments_.turns) say(conversation);
    return Ok{};
  }

  // Of all threads.
  static double processor_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

  static std::string quantiles(const std::vector<double>& values) {
    if (values.empty()) return "none";
    return fmt::format("median {:.0f} ms, 95 % within {:.0f} ms", quantile(values, 0.5) * 1e3,
                       quantile(values, 0.95) * 1e3);
  }

  void report(double seconds, double processor_seconds) const {
    const SchedulerStats stats = scheduler_.stats();
    const int64_t turn_count = int64_t(arguments_.conversations) * arguments_.turns;
    // What stands behind a thought moves, and is computed once more.
    const bool moves = arguments_.thought_tokens > 0;
    const int32_t moved = moves ? arguments_.answer_tokens - arguments_.thought_tokens : 0;
    const int64_t ideal = arguments_.system_tokens +
                          turn_count * (kMessageTokens + arguments_.answer_tokens) +
                          int64_t(arguments_.conversations) * (arguments_.turns - 1) * moved;
    fmt::print("{} conversations of {} turns: {:.1f} tokens/s of answers in {:.1f} s\n",
               arguments_.conversations, arguments_.turns, double(answer_tokens_) / seconds,
               seconds);
    fmt::print("{:.1f} us of processors for each token of an answer\n",
               processor_seconds / double(answer_tokens_) * 1e6);
    fmt::print("first token of a first turn: {}\n", quantiles(first_waits_));
    fmt::print("first token of a next turn: {}\n", quantiles(next_waits_));
    fmt::print("longest gap in an answer: {}\n", quantiles(longest_gaps_));
    fmt::print("tokens computed: {} (at least: {}), {} steps replayed\n",
               stats.prompt_rows + stats.decode_rows, ideal, stats.replayed_rows);
    fmt::print("{} steps, {} preemptions; memory: {} resident, {} of {} for conversations\n",
               stats.steps, stats.preemptions, show_bytes(resident_bytes()),
               show_bytes(engine_->memory().usage().used_bytes()),
               show_bytes(engine_->memory().usage().budget_bytes));
  }

  Engine* engine_;
  const Arguments& arguments_;
  Scheduler scheduler_;
  std::mt19937 random_{1};
  int64_t job_count_ = 0, answer_tokens_ = 0;
  std::vector<double> first_waits_, next_waits_, longest_gaps_;  // Seconds, by turn.
};

Status measure(const Arguments& arguments) {
  CAIRN_TRY(gguf::File file, gguf::File::open(arguments.model));
  CAIRN_TRY(const auto engine,
            Engine::load(std::move(file), {.thread_count = arguments.thread_count}));
  return Many(engine.get(), arguments).run();
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 2) {
    fmt::print(stderr,
               "usage: many_bench MODEL [CONVERSATIONS [TURNS [SYSTEM_TOKENS [THREADS "
               "[ANSWER_TOKENS [THOUGHT_TOKENS]]]]]]\n");
    return 2;
  }
  const auto number = [&](int index, int32_t fallback) {
    return index < argument_count ? std::atoi(arguments[index]) : fallback;
  };
  const int32_t answer_tokens = std::max(2, number(6, 64));
  const Status status = measure({.model = arguments[1],
                                 .conversations = std::max(1, number(2, 4)),
                                 .turns = std::max(1, number(3, 8)),
                                 .system_tokens = std::max(1, number(4, 2048)),
                                 .thread_count = number(5, 0),
                                 .answer_tokens = answer_tokens,
                                 .thought_tokens = std::clamp(number(7, 0), 0, answer_tokens)});
  if (status) return 0;
  fmt::print(stderr, "many_bench: {}\n", status.error().message);
  return 1;
}
