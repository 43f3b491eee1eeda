// What every runtime is held to: programs of rewinds, forks, snapshots and restores, whose logits
// must be those of new sessions that read the same tokens in the same chunks.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "runtimes/timeline.h"

namespace cairn::test {

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

inline std::vector<float> fresh_logits(runtimes::LoadedRuntime& runtime,
                                       const runtimes::History& history,
                                       bool is_one_chunk = false) {
  auto session = runtime.open_session();
  EXPECT_TRUE(session);
  std::vector<float> row;
  size_t begin = 0;
  for (const size_t end : is_one_chunk ? std::vector{history.tokens.size()} : history.ends) {
    auto made = (*session)->append(std::span(history.tokens).subspan(begin, end - begin));
    EXPECT_TRUE(made);
    row.assign(made->begin(), made->end());
    begin = end;
  }
  return row;
}

struct Program {
  runtimes::LoadedRuntime* runtime;
  std::mt19937 random;
  std::vector<std::unique_ptr<runtimes::Timeline>> timelines = {};
  std::vector<std::shared_ptr<const runtimes::Snapshot>> snapshots = {};

  size_t below(size_t count) { return random() % count; }

  Status step(runtimes::Timeline& timeline) {
    const size_t length = timeline.history().tokens.size();
    std::vector<Token> tokens = timeline.history().tokens;
    switch (below(7)) {
      case 0:
        if (length > 150) break;
        timeline.push(Token(below(3)));
        return Ok{};
      case 1:
      case 2: {
        tokens.resize(below(length + 1));
        const size_t count = 1 + below(9);
        for (size_t index = 0; index < count; ++index) tokens.push_back(Token(below(3)));
        CAIRN_TRY(timeline.become(tokens));
        return Ok{};
      }
      case 3: {
        CAIRN_TRY(timeline.rewind(below(length + 1)));
        return Ok{};
      }
      case 4: {
        CAIRN_TRY(snapshots.emplace_back(), timeline.snapshot());
        return Ok{};
      }
      case 5:
        if (snapshots.empty()) break;
        CAIRN_TRY(timeline.restore(snapshots[below(snapshots.size())]));
        return Ok{};
      default:
        if (snapshots.empty()) break;
        timeline.adopt(snapshots[below(snapshots.size())]);
        if (below(4) == 0) snapshots.erase(snapshots.begin());
        return Ok{};
    }
    return Ok{};
  }

  // Whether all logits are those of new sessions.
  bool run(size_t step_count, bool any_chunks) {
    for (int count = 0; count < 2; ++count) {
      auto opened = runtimes::Timeline::open(runtime);
      EXPECT_TRUE(opened);
      timelines.push_back(std::move(*opened));
    }
    for (size_t count = 0; count < step_count; ++count) {
      runtimes::Timeline& timeline = *timelines[below(2)];
      EXPECT_TRUE(step(timeline));
      if (timeline.history().tokens.empty()) continue;
      EXPECT_EQ(timeline.history().ends.back(), timeline.history().tokens.size());
      const runtimes::Cost expected = timeline.cost();
      auto cost = timeline.compute();
      EXPECT_TRUE(cost);
      EXPECT_EQ(cost->forward_tokens(), expected.forward_tokens());
      const auto fresh = fresh_logits(*runtime, timeline.history(), any_chunks);
      if (!same_bits(timeline.logits(), fresh)) return false;
    }
    return true;
  }
};

// The highest promise that random programs find kept.
inline runtimes::Exactness measured(runtimes::LoadedRuntime& runtime, unsigned program_count) {
  bool keeps_replay = true, keeps_bitwise = true;
  for (unsigned seed = 0; seed < program_count && keeps_replay; ++seed) {
    keeps_replay = Program{&runtime, std::mt19937(seed)}.run(12, false);
    keeps_bitwise = keeps_bitwise && Program{&runtime, std::mt19937(seed)}.run(12, true);
  }
  if (!keeps_replay) return runtimes::Exactness::none;
  return keeps_bitwise ? runtimes::Exactness::bitwise : runtimes::Exactness::replay;
}

}  // namespace cairn::test
