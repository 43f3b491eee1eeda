// Counting, and the text form.
#include "serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cairn::serve {

namespace {

constexpr double kSeconds[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                               1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
constexpr double kTokenSeconds[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,
                                    0.3,  0.4,   0.5,  0.75,  1,   2.5};
constexpr double kTokens[] = {1,    2,    5,    10,    20,    50,    100,    200,   500,
                              1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000};

void help(std::string_view name, std::string_view type, std::string_view doc, std::string& out) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, doc, name, type);
}

void one(std::string_view name, std::string_view type, std::string_view doc, double value,
         std::string& out) {
  help(name, type, doc, out);
  out += fmt::format("{} {}\n", name, value);
}

}  // namespace

void Histogram::add(double value) {
  ++count_;
  sum_ += value;
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  if (bound != bounds_.end()) ++counts_[size_t(bound - bounds_.begin())];
}

void Histogram::write(std::string_view name, std::string& out) const {
  uint64_t below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i];
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i], below);
  }
  out += fmt::format("{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, count_, name,
                     sum_, name, count_);
}

Metrics::Metrics()
    : first_token_(kSeconds),
      token_time_(kTokenSeconds),
      request_time_(kSeconds),
      queue_time_(kSeconds),
      prompt_size_(kTokens),
      answer_size_(kTokens) {}

void Metrics::add_request(std::string_view route, int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(route), status}];
}

void Metrics::add_answer(const session::Answer& answer, double waited_seconds, double seconds) {
  const std::lock_guard lock(mutex_);
  const PromptReport& prompt = answer.prompt;
  ++finished_[std::string(name(answer.finish))];
  prompt_tokens_ += uint64_t(prompt.computed_tokens);
  reused_tokens_ += uint64_t(prompt.reused_tokens);
  answer_tokens_ += answer.tokens.size();
  prompt_seconds_ += answer.prompt_seconds;
  answer_seconds_ += answer.generation_seconds;
  queue_time_.add(waited_seconds);
  request_time_.add(seconds);
  prompt_size_.add(prompt.prompt_tokens);
  answer_size_.add(double(answer.tokens.size()));
  if (answer.tokens.empty()) return;
  first_token_.add(waited_seconds + answer.first_token_seconds);
  token_time_.add(answer.generation_seconds / double(answer.tokens.size()));
}

void Metrics::add_cancelled() {
  const std::lock_guard lock(mutex_);
  ++cancelled_;
}

void Metrics::add_embedded(int64_t tokens) {
  const std::lock_guard lock(mutex_);
  embedded_tokens_ += uint64_t(tokens);
}

std::string Metrics::text(const Now& now) const {
  const std::lock_guard lock(mutex_);
  std::string out;
  help("cairn_requests_total", "counter", "Requests by route and status.", out);
  for (const auto& [key, count] : requests_) {
    out += fmt::format("cairn_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first,
                       key.second, count);
  }
  help("cairn_answers_total", "counter", "Answers by what ended them.", out);
  for (const auto& [reason, count] : finished_) {
    out += fmt::format("cairn_answers_total{{finished_reason=\"{}\"}} {}\n", reason, count);
  }
  const auto counter = [&](std::string_view name, double value, std::string_view doc) {
    one(name, "counter", doc, value, out);
  };
  counter("cairn_answers_cancelled_total", double(cancelled_), "Answers whose client went away.");
  counter("cairn_prompt_tokens_total", double(prompt_tokens_), "Tokens of prompts, computed.");
  counter("cairn_prompt_tokens_reused_total", double(reused_tokens_),
          "Tokens of prompts that were in memory.");
  counter("cairn_prompt_seconds_total", prompt_seconds_, "Seconds until prompts were read.");
  counter("cairn_answer_tokens_total", double(answer_tokens_), "Tokens of answers.");
  counter("cairn_answer_seconds_total", answer_seconds_, "Seconds in which answers were made.");
  counter("cairn_embedded_tokens_total", double(embedded_tokens_), "Tokens of embedded texts.");
  const SchedulerStats& scheduler = now.scheduler;
  counter("cairn_steps_total", double(scheduler.steps), "Steps of the engine.");
  counter("cairn_decode_rows_total", double(scheduler.decode_rows),
          "Rows of steps that continued answers.");
  counter("cairn_prompt_rows_total", double(scheduler.prompt_rows), "Rows of steps of prompts.");
  counter("cairn_preemptions_total", double(scheduler.preemptions),
          "Times that a request gave up its memory for another.");
  const auto gauge = [&](std::string_view name, double value, std::string_view doc) {
    one(name, "gauge", doc, value, out);
  };
  gauge("cairn_requests_answering", now.answering, "Requests that are being answered.");
  gauge("cairn_jobs_running", scheduler.running, "Answers that have memory.");
  gauge("cairn_jobs_waiting", scheduler.waiting, "Answers that wait for memory or others.");
  help("cairn_memory_bytes", "gauge", "Memory of conversations by kind.", out);
  const std::pair<std::string_view, size_t> kinds[] = {{"pages", now.memory.page_bytes},
                                                       {"states", now.memory.state_bytes},
                                                       {"logs", now.memory.log_bytes},
                                                       {"rows", now.memory.hidden_bytes}};
  for (const auto& [kind, bytes] : kinds) {
    out += fmt::format("cairn_memory_bytes{{kind=\"{}\"}} {}\n", kind, bytes);
  }
  gauge("cairn_memory_budget_bytes", double(now.memory.budget_bytes), "What there may be.");
  const auto histogram = [&](std::string_view name, const Histogram& values, std::string_view doc) {
    help(name, "histogram", doc, out);
    values.write(name, out);
  };
  histogram("cairn_time_to_first_token_seconds", first_token_,
            "From a request to its first token.");
  histogram("cairn_time_per_output_token_seconds", token_time_, "Mean of an answer.");
  histogram("cairn_e2e_request_latency_seconds", request_time_, "From a request to its end.");
  histogram("cairn_request_queue_time_seconds", queue_time_, "Until a prompt was begun.");
  histogram("cairn_request_prompt_tokens", prompt_size_, "Tokens of a prompt.");
  histogram("cairn_request_generation_tokens", answer_size_, "Tokens of an answer.");
  return out;
}

}  // namespace cairn::serve
