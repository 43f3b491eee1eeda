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
  histogram.write("x", "", out);
  EXPECT_EQ(out,
            "x_bucket{le=\"1\"} 2\nx_bucket{le=\"2\"} 3\nx_bucket{le=\"5\"} 4\n"
            "x_bucket{le=\"+Inf\"} 5\nx_sum 14\nx_count 5\n");
  out.clear();
  histogram.write("x", "model=\"m\"", out);
  EXPECT_TRUE(out.starts_with("x_bucket{model=\"m\",le=\"1\"} 2\n")) << out;
  EXPECT_TRUE(out.ends_with("x_sum{model=\"m\"} 14\nx_count{model=\"m\"} 5\n")) << out;
}

// What is true of models at the moment.
TEST(Metrics, TheMomentIsTold) {
  Metrics metrics;
  metrics.of("other");
  const Metrics::NowOfModel other{.model = "other",
                                  .scheduler = {.running = 2, .waiting = 5},
                                  .memory = {.page_bytes = 30, .budget_bytes = 120},
                                  .pages = {.unshared = 6, .shared = 7, .warm = 8},
                                  .snapshots = {.created = 21, .restored = 22, .evicted = 23},
                                  .store = store::StoreStats{.bytes = 8, .hits = 3}};
  const std::string text =
      metrics.text({.answering = 3, .waiting = 4, .models = {other, {.model = "without"}}});
  EXPECT_EQ(text.find("cairn_store_bytes{model=\"without\"}"), std::string::npos);
  for (const std::string& line :
       {std::string("cairn_requests_answering 3\n"),
        std::string("cairn_requests_waiting_for_models 4\n"),
        std::string("cairn_answers_cancelled_total{model=\"other\"} 0\n"),
        std::string("cairn_steps_total{model=\"other\"} 0\n"),
        std::string("cairn_kv_cache_usage_perc{model=\"other\"} 0.25\n"),
        std::string("cairn_store_bytes{model=\"other\"} 8\n"),
        std::string("cairn_store_hits_total{model=\"other\"} 3\n"),
        std::string("cairn_num_requests_running{model=\"other\"} 2\n"),
        std::string("cairn_num_requests_waiting{model=\"other\"} 5\n"),
        std::string("cairn_memory_pages{model=\"other\",state=\"unshared\"} 6\n"),
        std::string("cairn_memory_pages{model=\"other\",state=\"shared\"} 7\n"),
        std::string("cairn_memory_pages{model=\"other\",state=\"warm\"} 8\n"),
        std::string("cairn_snapshot_created_total{model=\"other\"} 21\n"),
        std::string("cairn_snapshot_restored_total{model=\"other\"} 22\n"),
        std::string("cairn_snapshot_evicted_total{model=\"other\"} 23\n"),
        std::string("llamacpp:requests_processing{model=\"other\"} 2\n"),
        std::string("llamacpp:requests_deferred{model=\"other\"} 5\n")}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
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
  answer.prompt_seconds = 0.5;
  answer.prompt.plan.limited_by = "recurrent";
  ModelMetrics& model = *metrics.of("a\\b\"c\nd");
  EXPECT_EQ(metrics.of("a\\b\"c\nd"), &model);
  model.add_answer(answer, 0.5, 1);
  model.add_answer({}, 0, 0);
  metrics.add_request("/a", 200);
  metrics.add_request("/a", 200);
  model.add_cancelled();
  model.add_embedded(9);
  const std::string text = metrics.text({});
  const std::string label = R"({model="a\\b\"c\nd")";
  for (const std::string& line :
       {std::string("cairn_requests_total{route=\"/a\",status=\"200\"} 2\n"),
        "cairn_reuse_miss_total" + label + ",reason=\"recurrent\"} 1\n",
        "llamacpp:prompt_tokens_total" + label + "} 3\n",
        "llamacpp:prompt_tokens_seconds" + label + "} 6\n",
        "llamacpp:tokens_predicted_total" + label + "} 2\n",
        "llamacpp:predicted_tokens_seconds" + label + "} 8\n",
        "llamacpp:n_tokens_max" + label + "} 9\n",
        "cairn_request_prefill_time_seconds_sum" + label + "} 0.5\n",
        "cairn_request_decode_time_seconds_sum" + label + "} 0.25\n",
        "cairn_answers_total" + label + ",finished_reason=\"length\"} 1\n",
        "cairn_answers_total" + label + ",finished_reason=\"stop\"} 1\n",
        "cairn_answers_cancelled_total" + label + "} 1\n",
        "cairn_prompt_tokens_total" + label + "} 3\n",
        "cairn_prefix_cache_queries_total" + label + "} 7\n",
        "cairn_prefix_cache_hits_total" + label + "} 4\n",
        "cairn_prompt_tokens_reused_total" + label + "} 4\n",
        "cairn_answer_tokens_total" + label + "} 2\n",
        "cairn_embedded_tokens_total" + label + "} 9\n",
        "cairn_request_queue_time_seconds_sum" + label + "} 0.5\n",
        "cairn_time_per_output_token_seconds_sum" + label + "} 0.125\n",
        "cairn_time_to_first_token_seconds_count" + label + "} 1\n",
        "cairn_e2e_request_latency_seconds_count" + label + "} 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace cairn::serve::metrics_test
