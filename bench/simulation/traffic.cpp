// Conversations that begin in bursts, go on after a while, and grow.
#include "bench/simulation/traffic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "bench/figures.h"
#include "store/keys.h"

namespace cairn::bench {
namespace {

// Of the trace: 12,031 requests in 3,537 seconds, which sixteen nodes bear.
constexpr double kAsksPerNode = 12031.0 / 3537 / 16;
// Those of a burst are beside each other: so many conversations begin at about one time.
constexpr double kBurst = 8.5;
// A first prompt: in blocks; most conversations end with it.
constexpr double kFirstMedian = 10.6, kFirstSigma = 1.14;
constexpr double kGoesOn = 0.142, kGoesOnAgain = 0.70;
// What a turn adds, and after which time.
constexpr double kMoreMedian = 2.2, kMoreSigma = 1.1;
constexpr double kGapMedian = 125, kGapSigma = 1.25;
constexpr int32_t kBlocksMax = 250;
// Conversations of a group have the first block in common.
constexpr uint32_t kNodesOfGroup = 16;

}  // namespace

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - unit()));
  return radius * std::cos(6.283185307179586 * unit());
}

double Random::exponential(double mean) {
  return -mean * std::log(1 - unit());
}

double Random::log_normal(double median, double sigma) {
  return median * std::exp(sigma * normal());
}

// Longer by as much as conversations last, so that the traffic is the same from the first second to
// the last.
std::vector<Ask> make_traffic(const TrafficOptions& options) {
  Random random(options.seed);
  std::vector<Ask> asks;
  const double turns = 1 + kGoesOn / (1 - kGoesOnAgain);
  const double per_second = kAsksPerNode * options.nodes / turns;
  constexpr double kBefore = 3600;
  const uint32_t groups = (uint32_t(options.nodes) + kNodesOfGroup - 1) / kNodesOfGroup;
  uint32_t conversation = 0;
  double at = -kBefore;
  while (at < options.seconds) {
    at += random.exponential(kBurst / per_second);
    const int count = 1 + int(random.exponential(kBurst - 0.5));
    for (int index = 0; index < count; ++index) {
      Ask ask{.at = at + random.unit(),
              .conversation = ++conversation,
              .group = uint32_t(random.below(groups))};
      double blocks = random.log_normal(kFirstMedian, kFirstSigma);
      for (bool goes_on = true; goes_on;) {
        ask.blocks = std::clamp(int32_t(std::lround(blocks)), 1, kBlocksMax);
        if (ask.at >= 0 && ask.at < options.seconds) asks.push_back(ask);
        const bool is_first = ask.reusable == 0;
        ask.reusable = ask.blocks;
        ask.at += random.log_normal(kGapMedian, kGapSigma);
        blocks = ask.blocks + std::max(0.5, random.log_normal(kMoreMedian, kMoreSigma));
        goes_on = random.unit() < (is_first ? kGoesOn : kGoesOnAgain) && ask.blocks < kBlocksMax;
      }
    }
  }
  std::ranges::stable_sort(asks, {}, &Ask::at);
  // What came before the first second is not known.
  std::unordered_map<uint32_t, int32_t> seen;
  std::vector<bool> has_group(groups);
  for (Ask& ask : asks) {
    int32_t& before = seen[ask.conversation];
    ask.reusable = std::max(std::min(before, ask.blocks), int32_t(has_group[ask.group]));
    before = ask.blocks;
    has_group[ask.group] = true;
  }
  return asks;
}

TrafficFigures figures_of(const std::vector<Ask>& asks) {
  TrafficFigures figures;
  if (asks.empty()) return figures;
  std::vector<double> blocks, gaps;
  std::unordered_map<uint32_t, double> last;
  std::map<int64_t, double> seconds;
  std::map<std::pair<uint32_t, int32_t>, int> uses;
  double all = 0, reused = 0, different = 0, once = 0;
  for (const Ask& ask : asks) {
    blocks.push_back(ask.blocks);
    all += ask.blocks;
    reused += ask.reusable;
    if (const auto before = last.find(ask.conversation); before != last.end()) {
      gaps.push_back(ask.at - before->second);
    }
    last[ask.conversation] = ask.at;
    ++seconds[int64_t(ask.at)];
    for (int32_t block = 1; block < ask.blocks; ++block) ++uses[{ask.conversation, block}];
  }
  for (const auto& [block, count] : uses) {
    ++different;
    once += double(count == 1);
  }
  const double mean_arrivals = double(asks.size()) / (asks.back().at + 1);
  double variance = 0;
  for (int64_t second = 0; second <= int64_t(asks.back().at); ++second) {
    const auto found = seconds.find(second);
    const double distance = (found == seconds.end() ? 0 : found->second) - mean_arrivals;
    variance += distance * distance;
  }
  figures = {.blocks_mean = all / double(asks.size()),
             .blocks_p50 = quantile(blocks, 0.5),
             .blocks_p90 = quantile(blocks, 0.9),
             .blocks_p99 = quantile(blocks, 0.99),
             .reuse = reused / all,
             .used_once = different == 0 ? 0 : once / different};
  figures.burst = variance / (asks.back().at + 1) / mean_arrivals;
  if (gaps.empty()) return figures;
  figures.gap_p50 = quantile(gaps, 0.5);
  figures.gap_p80 = quantile(gaps, 0.8);
  figures.gap_p95 = quantile(gaps, 0.95);
  figures.gap_p99 = quantile(gaps, 0.99);
  return figures;
}

std::vector<Token> tokens_of(const Ask& ask) {
  std::vector<Token> tokens;
  tokens.reserve(size_t(ask.blocks) * store::kChainTokens);
  for (int32_t block = 0; block < ask.blocks; ++block) {
    const uint64_t owner = block == 0 ? ask.group : (uint64_t(1) << 32) + ask.conversation;
    uint64_t value = owner * 0x9e3779b97f4a7c15u + uint64_t(block) * 0xbf58476d1ce4e5b9u;
    for (int32_t index = 0; index < store::kChainTokens; ++index) {
      value = (value ^ (value >> 29)) * 0x94d049bb133111ebu + 1;
      tokens.push_back(Token(int32_t(value >> 34)));
    }
  }
  return tokens;
}

}  // namespace cairn::bench
