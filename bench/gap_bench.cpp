// What a running answer notices of another request that reads a long prompt: the time between its
// tokens, before and meanwhile. The rule (docs/scheduling.md): at most twice the quiet time and one
// step's target, for 95 of 100 tokens.
//   gap_bench MODEL [READ_TOKENS [THREADS [CONTEXT_TOKENS]]]
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "bench/timed_job.h"
#include "engine/schedule/scheduler.h"

namespace {

using namespace cairn;
using namespace cairn::bench;

constexpr int32_t kQuietTokens = 100;  // Whose times are compared.
constexpr int32_t kRounds = 3;

struct Arguments {
  std::string model;
  int32_t read_tokens = 8192, thread_count = 0, context_tokens = 512;
};

void print(const char* name, const std::vector<double>& gaps) {
  fmt::print("{:<22} {:5} tokens, median {:6.1f} ms, 95 % within {:6.1f} ms, longest {:6.1f} ms\n",
             name, gaps.size(), quantile(gaps, 0.5) * 1e3, quantile(gaps, 0.95) * 1e3,
             quantile(gaps, 1) * 1e3);
}

class Gaps {
 public:
  Gaps(Engine* engine, const Arguments& arguments)
      : engine_(engine), arguments_(arguments), scheduler_(engine, options_) {}

  // Whether the rule was kept.
  Result<bool> run() {
    // Ended by hand: nobody knows how many tokens come while the other reads.
    const JobId id = submit(random_tokens(arguments_.context_tokens), INT32_MAX, stream_);
    CAIRN_TRY(step_until(stream_, 1 + kQuietTokens / 4));  // Steps have been seen, plans recorded.
    std::vector<double> quiet, busy;
    for (int32_t round = 0; round < kRounds; ++round) {
      const size_t first = stream_.times.size();
      CAIRN_TRY(step_until(stream_, first + kQuietTokens));
      for (const double gap : stream_.gaps(first)) quiet.push_back(gap);
      const size_t noticed = stream_.times.size();
      CAIRN_TRY(const double seconds, read_beside());
      const std::vector<double> gaps = stream_.gaps(noticed);
      busy.insert(busy.end(), gaps.begin(), gaps.end());
      fmt::print("round {}: {} tokens read in {:.1f} s beside {} tokens of the answer\n", round + 1,
                 arguments_.read_tokens, seconds, gaps.size());
    }
    scheduler_.cancel(id, fail(ErrorCode::cancelled, "measured"));
    print("nobody else", quiet);
    print("while another reads", busy);
    const double bar = 2 * quantile(quiet, 0.95) + options_.step_seconds;
    const double found = quantile(busy, 0.95);
    fmt::print("95 % within {:.1f} ms: {} the {:.1f} ms of the rule\n", found * 1e3,
               found <= bar ? "keeps" : "MISSES", bar * 1e3);
    return found <= bar;
  }

 private:
  JobId submit(std::vector<Token> prompt, int32_t token_count, TimedAnswer& answer) {
    const JobId id{job_count_++};
    TimedRequest request{.prompt = std::move(prompt), .token_count = token_count};
    scheduler_.submit(id, std::make_unique<TimedJob>(engine_, std::move(request), &answer), {});
    return id;
  }

  std::vector<Token> random_tokens(int32_t count) {
    return bench::random_tokens(random_, count, engine_->size().vocabulary_count);
  }

  Status step_until(const TimedAnswer& answer, size_t token_count) {
    while (answer.times.size() < token_count) {
      scheduler_.step();
      if (answer.error) return *answer.error;
    }
    return Ok{};
  }

  // The seconds that another prompt takes to its first token.
  Result<double> read_beside() {
    other_ = {};
    submit(random_tokens(arguments_.read_tokens), 1, other_);
    CAIRN_TRY(step_until(other_, 1));
    while (!other_.has_ended) scheduler_.step();
    if (stream_.error) return *stream_.error;
    return other_.first_wait();
  }

  Engine* engine_;
  const Arguments& arguments_;
  TimedAnswer stream_, other_;  // They outlive their jobs.
  SchedulerOptions options_;
  Scheduler scheduler_;
  std::mt19937 random_{1};
  int64_t job_count_ = 0;
};

Result<bool> measure(const Arguments& arguments) {
  CAIRN_TRY(gguf::File file, gguf::File::open(arguments.model));
  CAIRN_TRY(const auto engine,
            Engine::load(std::move(file), {.thread_count = arguments.thread_count}));
  return Gaps(engine.get(), arguments).run();
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 2) {
    fmt::print(stderr, "usage: gap_bench MODEL [READ_TOKENS [THREADS [CONTEXT_TOKENS]]]\n");
    return 2;
  }
  const auto number = [&](int index, int32_t fallback) {
    return index < argument_count ? std::atoi(arguments[index]) : fallback;
  };
  Result<bool> keeps = measure({.model = arguments[1],
                                .read_tokens = std::max(1, number(2, 8192)),
                                .thread_count = number(3, 0),
                                .context_tokens = std::max(1, number(4, 512))});
  if (keeps) return *keeps ? 0 : 1;
  fmt::print(stderr, "gap_bench: {}\n", keeps.error().message);
  return 1;
}
