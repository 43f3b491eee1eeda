// What the server counts, in the text form of Prometheus: no prompts, no clients. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/schedule/scheduler.h"
#include "engine/sequence_store.h"
#include "memory/memory.h"
#include "session/answer.h"

namespace cairn::serve {

// How often a value was at most each of the bounds.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size()) {}

  void add(double value);
  // The lines of one metric, without its help. `labels`: "model=\"x\"", or nothing.
  void write(std::string_view name, std::string_view labels, std::string& out) const;

 private:
  std::span<const double> bounds_;
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  double sum_ = 0;
};

// Of one model.
class ModelMetrics {
 public:
  ModelMetrics();

  // Of an answer that has ended. `waited_seconds`: until its prompt was begun; `seconds`: in all.
  void add_answer(const session::Answer& answer, double waited_seconds, double seconds);
  void add_cancelled();
  void add_embedded(int64_t tokens);

 private:
  friend class Metrics;

  mutable std::mutex mutex_;
  std::map<std::string, uint64_t, std::less<>> finished_;
  std::map<std::string, uint64_t, std::less<>> misses_;  // By what kept more from being reused.
  uint64_t prompt_tokens_ = 0, reused_tokens_ = 0, answer_tokens_ = 0, embedded_tokens_ = 0;
  uint64_t queried_tokens_ = 0;  // Of all prompts.
  uint64_t cancelled_ = 0;
  uint64_t longest_tokens_ = 0;  // Of a prompt with its answer.
  double prompt_seconds_ = 0, answer_seconds_ = 0;
  Histogram first_token_, token_time_, request_time_, queue_time_, prompt_time_, answer_time_;
  Histogram prompt_size_, answer_size_;
};

class Metrics {
 public:
  // `route`: one of the table of routes, or "other".
  void add_request(std::string_view route, int status);
  // The counts of the model of this name, which live as long as this; made at the first call.
  ModelMetrics* of(const std::string& model);

  // What is true at the moment, beside what was counted.
  struct NowOfModel {
    std::string model;
    SchedulerStats scheduler;
    memory::Usage memory;
    memory::PageCounts pages = {};
    memory::SnapshotCounts snapshots = {};
    std::optional<store::StoreStats> store = std::nullopt;  // None: nothing is on the disk.
    std::optional<store::TierStats> tier = std::nullopt;    // None: there is none.
  };
  struct Now {
    int32_t answering = 0;
    int32_t waiting = 0;                  // Until their model is loaded.
    std::vector<NowOfModel> models = {};  // Those in memory.
  };
  std::string text(const Now& now) const;

 private:
  void write_counts(std::string& out) const;
  void write_llama(std::string& out) const;
  static void write_now(const Now& now, std::string& out);
  static void write_drafts(const Now& now, std::string& out);
  static void write_stores(const Now& now, std::string& out);
  static void write_tiers(const Now& now, std::string& out);
  static void write_peers(const Now& now, std::string& out);
  void write_histograms(std::string& out) const;

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
  std::map<std::string, std::unique_ptr<ModelMetrics>> models_;
};

}  // namespace cairn::serve
