// Made-up traffic with the shape of the public Mooncake conversation trace (FAST'25 artifact): how
// long prompts are, how much of one is the one before, after which time, and how they come in
// bursts. Text is counted in blocks of 512 tokens, as there. The same seed gives the same traffic
// on every machine. Thread-safe: values.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "base/ids.h"

namespace cairn::bench {

// The standard library's distributions differ between libraries; these do not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  double unit() { return double(engine_() >> 11) * 0x1p-53; }  // Never 1.
  size_t below(size_t bound) { return size_t(unit() * double(bound)); }
  double normal();
  double exponential(double mean);
  // Half of them below the median.
  double log_normal(double median, double sigma);

 private:
  std::mt19937_64 engine_;
};

// A prompt that somebody sends.
struct Ask {
  double at = 0;              // Seconds.
  uint32_t conversation = 0;  // All blocks but the first are its own.
  uint32_t group = 0;         // Of conversations that share the first block.
  int32_t blocks = 0;
  int32_t reusable = 0;  // By one machine that forgets nothing.
};

struct TrafficOptions {
  uint64_t seed = 1;
  int32_t nodes = 16;
  double seconds = 3537;
};

std::vector<Ask> make_traffic(const TrafficOptions& options);

// What it looks like, to be held beside the trace.
struct TrafficFigures {
  double blocks_mean = 0, blocks_p50 = 0, blocks_p90 = 0, blocks_p99 = 0;
  double reuse = 0;      // Of one machine that forgets nothing, in parts of all blocks.
  double used_once = 0;  // Of all different blocks.
  double gap_p50 = 0, gap_p80 = 0, gap_p95 = 0, gap_p99 = 0;  // Between uses of a conversation.
  double burst = 0;  // Variance by mean of a second's arrivals, for sixteen nodes' traffic.
};
TrafficFigures figures_of(const std::vector<Ask>& asks);

// So many tokens of a block are simulated: those of a link of a chain. Each stands for sixteen.
inline constexpr int32_t kTokensOfSimulated = 16;

// The tokens of a prompt, as its chain is made of.
std::vector<Token> tokens_of(const Ask& ask);

}  // namespace cairn::bench
