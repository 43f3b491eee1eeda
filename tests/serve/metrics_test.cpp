// Counting: histograms add up, and labels stay labels.
#include "serve/metrics.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::serve::metrics_test {
namespace {

TEST(Metrics, HistogramsAddUp) {
  constexpr double kBounds[] = {1, 2, 5};
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 1.5, 5.0, 6.0}) histogram.add(value);
  std::string out;
  histogram.write("x", out);
  EXPECT_EQ(out,
            "x_bucket{le=\"1\"} 2\nx_bucket{le=\"2\"} 3\nx_bucket{le=\"5\"} 4\n"
            "x_bucket{le=\"+Inf\"} 5\nx_sum 14\nx_count 5\n");
}

TEST(Metrics, AnswersAreCounted) {
  Metrics metrics;
  session::Answer answer;
  answer.prompt.computed_tokens = 3;
  answer.prompt.reused_tokens = 4;
  answer.prompt.prompt_tokens = 7;
  answer.tokens = {Token(1), Token(2)};
  answer.finish = session::FinishReason::length;
  answer.generation_seconds = 0.25;
  metrics.add_answer(answer, 0.5, 1);
  metrics.add_answer({}, 0, 0);
  metrics.add_request("/a", 200);
  metrics.add_request("/a", 200);
  metrics.add_cancelled();
  metrics.add_embedded(9);
  const std::string text = metrics.text({});
  for (const char* line :
       {"cairn_requests_total{route=\"/a\",status=\"200\"} 2\n",
        "cairn_answers_total{finished_reason=\"length\"} 1\n",
        "cairn_answers_total{finished_reason=\"stop\"} 1\n", "cairn_answers_cancelled_total 1\n",
        "cairn_prompt_tokens_total 3\n", "cairn_prompt_tokens_reused_total 4\n",
        "cairn_answer_tokens_total 2\n", "cairn_embedded_tokens_total 9\n",
        "cairn_request_queue_time_seconds_sum 0.5\n",
        "cairn_time_per_output_token_seconds_sum 0.125\n",
        "cairn_time_to_first_token_seconds_count 1\n",
        "cairn_e2e_request_latency_seconds_count 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace cairn::serve::metrics_test
