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

// Names of models are names of files, which may have anything in them.
std::string label_of(std::string_view model) {
  std::string text = "model=\"";
  for (const char c : model) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text + '"';
}

}  // namespace

void Histogram::add(double value) {
  ++count_;
  sum_ += value;
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  if (bound != bounds_.end()) ++counts_[size_t(bound - bounds_.begin())];
}

void Histogram::write(std::string_view name, std::string_view labels, std::string& out) const {
  const std::string before = labels.empty() ? "" : fmt::format("{},", labels);
  const std::string all = labels.empty() ? "" : fmt::format("{{{}}}", labels);
  uint64_t below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i];
    out += fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", name, before, bounds_[i], below);
  }
  out += fmt::format("{0}_bucket{{{1}le=\"+Inf\"}} {2}\n{0}_sum{3} {4}\n{0}_count{3} {2}\n", name,
                     before, count_, all, sum_);
}

ModelMetrics::ModelMetrics()
    : first_token_(kSeconds),
      token_time_(kTokenSeconds),
      request_time_(kSeconds),
      queue_time_(kSeconds),
      prompt_time_(kSeconds),
      answer_time_(kSeconds),
      prompt_size_(kTokens),
      answer_size_(kTokens) {}

void Metrics::add_request(std::string_view route, int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(route), status}];
}

void ModelMetrics::add_answer(const session::Answer& answer, double waited_seconds,
                              double seconds) {
  const std::lock_guard lock(mutex_);
  const PromptReport& prompt = answer.prompt;
  ++finished_[std::string(name(answer.finish))];
  prompt_tokens_ += uint64_t(prompt.computed_tokens);
  reused_tokens_ += uint64_t(prompt.reused_tokens);
  queried_tokens_ += uint64_t(prompt.prompt_tokens);
  answer_tokens_ += answer.tokens.size();
  if (!prompt.plan.limited_by.empty()) ++misses_[std::string(prompt.plan.limited_by)];
  longest_tokens_ =
      std::max(longest_tokens_, uint64_t(prompt.prompt_tokens) + answer.tokens.size());
  prompt_seconds_ += answer.prompt_seconds;
  answer_seconds_ += answer.generation_seconds;
  queue_time_.add(waited_seconds);
  request_time_.add(seconds);
  prompt_time_.add(answer.prompt_seconds);
  answer_time_.add(answer.generation_seconds);
  prompt_size_.add(prompt.prompt_tokens);
  answer_size_.add(double(answer.tokens.size()));
  if (answer.tokens.empty()) return;
  first_token_.add(waited_seconds + answer.first_token_seconds);
  token_time_.add(answer.generation_seconds / double(answer.tokens.size()));
}

void ModelMetrics::add_cancelled() {
  const std::lock_guard lock(mutex_);
  ++cancelled_;
}

void ModelMetrics::add_embedded(int64_t tokens) {
  const std::lock_guard lock(mutex_);
  embedded_tokens_ += uint64_t(tokens);
}

ModelMetrics* Metrics::of(const std::string& model) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ModelMetrics>& counts = models_[model];
  if (counts == nullptr) counts = std::make_unique<ModelMetrics>();
  return counts.get();
}

std::string Metrics::text(const Now& now) const {
  const std::lock_guard lock(mutex_);
  std::string out;
  help("cairn_requests_total", "counter", "Requests by route and status.", out);
  for (const auto& [key, count] : requests_) {
    out += fmt::format("cairn_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first,
                       key.second, count);
  }
  help("cairn_requests_answering", "gauge", "Requests that are being answered.", out);
  out += fmt::format("cairn_requests_answering {}\n", now.answering);
  help("cairn_requests_waiting_for_models", "gauge", "Requests whose model is being loaded.", out);
  out += fmt::format("cairn_requests_waiting_for_models {}\n", now.waiting);
  write_counts(out);
  write_llama(out);
  write_now(now, out);
  write_drafts(now, out);
  write_stores(now, out);
  write_tiers(now, out);
  write_peers(now, out);
  write_histograms(out);
  return out;
}

// By metric, then by model, as the format wants it.
void Metrics::write_counts(std::string& out) const {
  help("cairn_answers_total", "counter", "Answers by what ended them.", out);
  for (const auto& [model, counts] : models_) {
    const std::lock_guard lock(counts->mutex_);
    for (const auto& [reason, count] : counts->finished_) {
      out += fmt::format("cairn_answers_total{{{},finished_reason=\"{}\"}} {}\n", label_of(model),
                         reason, count);
    }
  }
  help("cairn_reuse_miss_total", "counter",
       "Prompts of which more was known than could be reused, by what was missing.", out);
  for (const auto& [model, counts] : models_) {
    const std::lock_guard lock(counts->mutex_);
    for (const auto& [reason, count] : counts->misses_) {
      out += fmt::format("cairn_reuse_miss_total{{{},reason=\"{}\"}} {}\n", label_of(model), reason,
                         count);
    }
  }
  const auto counter = [&](std::string_view name, auto value, std::string_view doc) {
    help(name, "counter", doc, out);
    for (const auto& [model, counts] : models_) {
      const std::lock_guard lock(counts->mutex_);
      out += fmt::format("{}{{{}}} {}\n", name, label_of(model), double((*counts).*value));
    }
  };
  counter("cairn_answers_cancelled_total", &ModelMetrics::cancelled_,
          "Answers whose client went away.");
  counter("cairn_prompt_tokens_total", &ModelMetrics::prompt_tokens_,
          "Tokens of prompts, computed.");
  counter("cairn_prompt_tokens_reused_total", &ModelMetrics::reused_tokens_,
          "Tokens of prompts that were in memory.");
  counter("cairn_prefix_cache_queries_total", &ModelMetrics::queried_tokens_,
          "Tokens of prompts, looked for in memory.");
  counter("cairn_prefix_cache_hits_total", &ModelMetrics::reused_tokens_,
          "Of those, that were in memory.");
  counter("cairn_prompt_seconds_total", &ModelMetrics::prompt_seconds_,
          "Seconds until prompts were read.");
  counter("cairn_answer_tokens_total", &ModelMetrics::answer_tokens_, "Tokens of answers.");
  counter("cairn_answer_seconds_total", &ModelMetrics::answer_seconds_,
          "Seconds in which answers were made.");
  counter("cairn_embedded_tokens_total", &ModelMetrics::embedded_tokens_,
          "Tokens of embedded texts.");
}

// The same in the words of llama.cpp's server.
void Metrics::write_llama(std::string& out) const {
  const auto each = [&](std::string_view name, std::string_view type, std::string_view doc,
                        const auto& value) {
    help(name, type, doc, out);
    for (const auto& [model, counts] : models_) {
      const std::lock_guard lock(counts->mutex_);
      out += fmt::format("{}{{{}}} {}\n", name, label_of(model), double(value(*counts)));
    }
  };
  using M = const ModelMetrics&;
  const auto rate = [](uint64_t tokens, double seconds) {
    return seconds > 0 ? double(tokens) / seconds : 0;
  };
  each("llamacpp:prompt_tokens_total", "counter", "Tokens of prompts, computed.",
       [](M model) { return model.prompt_tokens_; });
  each("llamacpp:prompt_seconds_total", "counter", "Seconds until prompts were read.",
       [](M model) { return model.prompt_seconds_; });
  each("llamacpp:prompt_tokens_seconds", "gauge", "Of the two: tokens a second.",
       [&](M model) { return rate(model.prompt_tokens_, model.prompt_seconds_); });
  each("llamacpp:tokens_predicted_total", "counter", "Tokens of answers.",
       [](M model) { return model.answer_tokens_; });
  each("llamacpp:tokens_predicted_seconds_total", "counter", "Seconds in which answers were made.",
       [](M model) { return model.answer_seconds_; });
  each("llamacpp:predicted_tokens_seconds", "gauge", "Of the two: tokens a second.",
       [&](M model) { return rate(model.answer_tokens_, model.answer_seconds_); });
  each("llamacpp:n_tokens_max", "gauge", "Tokens of the longest prompt with its answer.",
       [](M model) { return model.longest_tokens_; });
}

void Metrics::write_now(const Now& now, std::string& out) {
  const auto each = [&](std::string_view name, std::string_view type, std::string_view doc,
                        const auto& value) {
    help(name, type, doc, out);
    for (const NowOfModel& model : now.models) {
      out += fmt::format("{}{{{}}} {}\n", name, label_of(model.model), double(value(model)));
    }
  };
  using M = const NowOfModel&;
  each("cairn_steps_total", "counter", "Steps of the engine.",
       [](M model) { return model.scheduler.steps; });
  each("cairn_decode_rows_total", "counter", "Rows of steps that continued answers.",
       [](M model) { return model.scheduler.decode_rows; });
  each("cairn_prompt_rows_total", "counter", "Rows of steps of prompts.",
       [](M model) { return model.scheduler.prompt_rows; });
  each("cairn_preemptions_total", "counter", "Times that a request gave up its memory for another.",
       [](M model) { return model.scheduler.preemptions; });
  each("cairn_num_requests_running", "gauge", "Answers that have memory.",
       [](M model) { return model.scheduler.running; });
  each("cairn_num_requests_waiting", "gauge", "Answers that wait for memory or others.",
       [](M model) { return model.scheduler.waiting; });
  each("llamacpp:requests_processing", "gauge", "Answers that have memory.",
       [](M model) { return model.scheduler.running; });
  each("llamacpp:requests_deferred", "gauge", "Answers that wait for memory or others.",
       [](M model) { return model.scheduler.waiting; });
  each("llamacpp:n_decode_total", "counter", "Steps of the engine.",
       [](M model) { return model.scheduler.steps; });
  help("cairn_memory_bytes", "gauge", "Memory of conversations by kind.", out);
  for (const NowOfModel& model : now.models) {
    const memory::Usage& memory = model.memory;
    const std::pair<std::string_view, size_t> kinds[] = {{"pages", memory.page_bytes},
                                                         {"states", memory.state_bytes},
                                                         {"logs", memory.log_bytes},
                                                         {"rows", memory.hidden_bytes}};
    for (const auto& [kind, bytes] : kinds) {
      out += fmt::format("cairn_memory_bytes{{{},kind=\"{}\"}} {}\n", label_of(model.model), kind,
                         bytes);
    }
  }
  help("cairn_memory_pages", "gauge",
       "Pages: of one sequence, shared by several, and free ones that are kept ready.", out);
  for (const NowOfModel& model : now.models) {
    const std::pair<std::string_view, int64_t> states[] = {{"unshared", model.pages.unshared},
                                                           {"shared", model.pages.shared},
                                                           {"warm", model.pages.warm}};
    for (const auto& [state, count] : states) {
      out += fmt::format("cairn_memory_pages{{{},state=\"{}\"}} {}\n", label_of(model.model), state,
                         count);
    }
  }
  each("cairn_snapshot_created_total", "counter", "Places to go back to that were made.",
       [](M model) { return model.snapshots.created; });
  each("cairn_snapshot_restored_total", "counter", "Prompts that went on from such a place.",
       [](M model) { return model.snapshots.restored; });
  each("cairn_snapshot_evicted_total", "counter",
       "Such places that kept sequences lost to make room.",
       [](M model) { return model.snapshots.evicted; });
  each("cairn_memory_budget_bytes", "gauge", "What there may be.",
       [](M model) { return model.memory.budget_bytes; });
  each("cairn_kv_cache_usage_perc", "gauge", "Which part of that there is; 1: all.", [](M model) {
    const double budget = double(model.memory.budget_bytes);
    return budget > 0 ? double(model.memory.used_bytes()) / budget : 0;
  });
}

// How many tokens drafts brought; in llama.cpp's words too.
void Metrics::write_drafts(const Now& now, std::string& out) {
  const auto each = [&](std::string_view name, std::string_view doc,
                        int64_t SchedulerStats::*value) {
    help(name, "counter", doc, out);
    for (const NowOfModel& model : now.models) {
      out += fmt::format("{}{{{}}} {}\n", name, label_of(model.model), model.scheduler.*value);
    }
  };
  using S = SchedulerStats;
  each("cairn_draft_rows_total", "Rows of steps that checked drafts.", &S::draft_rows);
  each("cairn_draft_tokens_accepted_total", "Tokens that came by such rows.", &S::accepted_drafts);
  each("llamacpp:spec_decode_num_draft_tokens_total", "Tokens of drafts, checked.", &S::draft_rows);
  each("llamacpp:spec_decode_num_accepted_tokens_total", "Those of them that were chosen.",
       &S::accepted_drafts);
  each("llamacpp:spec_decode_num_drafts_total", "Drafts that were checked.", &S::drafts);
}

// Of the models that keep something on the disk.
void Metrics::write_stores(const Now& now, std::string& out) {
  const auto each = [&](std::string_view name, std::string_view type, std::string_view doc,
                        uint64_t store::StoreStats::*value) {
    help(name, type, doc, out);
    for (const NowOfModel& model : now.models) {
      if (!model.store) continue;
      out += fmt::format("{}{{{}}} {}\n", name, label_of(model.model), (*model.store).*value);
    }
  };
  using store::StoreStats;
  each("cairn_store_bytes", "gauge", "What is on the disk.", &StoreStats::bytes);
  each("cairn_store_budget_bytes", "gauge", "What there may be.", &StoreStats::budget_bytes);
  each("cairn_store_sequences", "gauge", "Sequences on the disk.", &StoreStats::entries);
  each("cairn_store_hits_total", "counter", "Look-ups that found something.", &StoreStats::hits);
  each("cairn_store_misses_total", "counter", "Look-ups that found nothing.", &StoreStats::misses);
  each("cairn_store_evicted_total", "counter", "Sequences that made room.", &StoreStats::evicted);
  each("cairn_store_damaged_total", "counter", "Records that were damaged.", &StoreStats::damaged);
}

// Of the models that share something with other machines.
void Metrics::write_tiers(const Now& now, std::string& out) {
  const auto each = [&](std::string_view name, std::string_view type, std::string_view doc,
                        const auto& value) {
    help(name, type, doc, out);
    for (const NowOfModel& model : now.models) {
      if (!model.tier) continue;
      out += fmt::format("{}{{{}}} {}\n", name, label_of(model.model), value(*model.tier));
    }
  };
  using store::TierStats;
  help("cairn_tier_lookups_total", "counter", "Look-ups in the tier, by what became of them.", out);
  for (const NowOfModel& model : now.models) {
    if (!model.tier) continue;
    for (size_t outcome = 0; outcome < store::kTierOutcomes; ++outcome) {
      out +=
          fmt::format("cairn_tier_lookups_total{{{},outcome=\"{}\"}} {}\n", label_of(model.model),
                      store::name_of(store::TierOutcome(outcome)), model.tier->outcomes[outcome]);
    }
  }
  each("cairn_tier_read_bytes_total", "counter", "Bytes that were fetched from the tier.",
       [](const TierStats& tier) { return tier.read_bytes; });
  each("cairn_tier_written_bytes_total", "counter", "Bytes that were sent to the tier.",
       [](const TierStats& tier) { return tier.written_bytes; });
  each("cairn_tier_published_total", "counter", "Beginnings of conversations that were sent.",
       [](const TierStats& tier) { return tier.published; });
  each("cairn_tier_publish_failures_total", "counter", "Those that could not be sent.",
       [](const TierStats& tier) { return tier.publish_failures; });
  each("cairn_tier_refused_records_total", "counter", "Records that were damaged or forged.",
       [](const TierStats& tier) { return tier.refused_records; });
  each("cairn_tier_lease_waits_total", "counter", "Prompts that waited for another machine.",
       [](const TierStats& tier) { return tier.lease_waits; });
  each("cairn_tier_breaker_openings_total", "counter", "How often the tier was left alone.",
       [](const TierStats& tier) { return tier.breaker_openings; });
  each("cairn_tier_paused", "gauge", "1 while the tier is not read, since it failed.",
       [](const TierStats& tier) { return int(tier.is_open); });
  each("cairn_tier_bytes_per_second", "gauge", "At which it was read last; 0: not measured.",
       [](const TierStats& tier) { return tier.bytes_per_second; });
}

// Of those that lend to other machines, and borrow from them.
void Metrics::write_peers(const Now& now, std::string& out) {
  using store::TierStats;
  const auto each = [&](std::string_view name, std::string_view type, std::string_view doc,
                        uint64_t TierStats::*value) {
    help(name, type, doc, out);
    for (const NowOfModel& model : now.models) {
      if (!model.tier || !model.tier->has_peers) continue;
      out += fmt::format("{}{{{}}} {}\n", name, label_of(model.model), (*model.tier).*value);
    }
  };
  help("cairn_peer_lookups_total", "counter", "Machines that were asked, by what became of it.",
       out);
  for (const NowOfModel& model : now.models) {
    if (!model.tier || !model.tier->has_peers) continue;
    for (size_t outcome = 0; outcome < store::kTierOutcomes; ++outcome) {
      out +=
          fmt::format("cairn_peer_lookups_total{{{},outcome=\"{}\"}} {}\n", label_of(model.model),
                      store::name_of(store::TierOutcome(outcome)), model.tier->peers[outcome]);
    }
  }
  each("cairn_peer_read_bytes_total", "counter", "Bytes that were fetched from other machines.",
       &TierStats::peer_read_bytes);
  each("cairn_peer_registered_total", "counter", "Sequences that others were told of.",
       &TierStats::registered);
  each("cairn_peer_lent_sequences", "gauge", "Sequences in memory that others may have.",
       &TierStats::lent_sequences);
  each("cairn_peer_lent_records_total", "counter", "Records that others got.",
       &TierStats::lent_records);
  each("cairn_peer_lent_bytes_total", "counter", "Their bytes.", &TierStats::lent_bytes);
  each("cairn_peer_busy_total", "counter", "Records refused, since others were lent to.",
       &TierStats::peer_busy);
  each("cairn_peer_strangers_total", "counter", "Connections that did not prove to have the key.",
       &TierStats::peer_strangers);
}

void Metrics::write_histograms(std::string& out) const {
  const auto histogram = [&](std::string_view name, auto values, std::string_view doc) {
    help(name, "histogram", doc, out);
    for (const auto& [model, counts] : models_) {
      const std::lock_guard lock(counts->mutex_);
      ((*counts).*values).write(name, label_of(model), out);
    }
  };
  histogram("cairn_time_to_first_token_seconds", &ModelMetrics::first_token_,
            "From a request to its first token.");
  histogram("cairn_time_per_output_token_seconds", &ModelMetrics::token_time_,
            "Mean of an answer.");
  histogram("cairn_e2e_request_latency_seconds", &ModelMetrics::request_time_,
            "From a request to its end.");
  histogram("cairn_request_queue_time_seconds", &ModelMetrics::queue_time_,
            "Until a prompt was begun.");
  histogram("cairn_request_prefill_time_seconds", &ModelMetrics::prompt_time_,
            "In which a prompt was read.");
  histogram("cairn_request_decode_time_seconds", &ModelMetrics::answer_time_,
            "In which an answer was made.");
  histogram("cairn_request_prompt_tokens", &ModelMetrics::prompt_size_, "Tokens of a prompt.");
  histogram("cairn_request_generation_tokens", &ModelMetrics::answer_size_, "Tokens of an answer.");
}

}  // namespace cairn::serve
