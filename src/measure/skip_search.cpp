// Rounds over candidates, the most promising first.
#include "measure/skip_search.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"

namespace cairn::measure {

namespace {

constexpr double kNotYet = std::numeric_limits<double>::infinity();

struct Candidate {
  int32_t layer = 0;
  double last = 0;  // Its divergence when it was tried last; kNotYet: it could not be skipped.
};

class Search {
 public:
  explicit Search(const SkipSearch& search) : search_(search) {
    for (int32_t layer = 0; layer < search.layer_count; ++layer) candidates_.push_back({layer});
    total_ = search.layer_count;
    for (int32_t round = 1; round < search.skipped_max; ++round) {
      total_ += std::min(search.try_count, search.layer_count - round);
    }
  }

  Result<std::vector<SkipSet>> run() {
    std::vector<SkipSet> found;
    for (int32_t round = 0; round < search_.skipped_max; ++round) {
      const size_t tries = round == 0 ? candidates_.size() : size_t(search_.try_count);
      CAIRN_TRY(const std::optional<SkipSet> best, best_of_round(tries));
      if (is_ended_) return found;
      if (!best) {
        if (found.empty() && reason_) return *std::move(reason_);
        return found;
      }
      skipped_ = best->layers;
      std::erase_if(candidates_, [&](const Candidate& candidate) {
        return std::binary_search(skipped_.begin(), skipped_.end(), candidate.layer);
      });
      found.push_back(*best);
      if (search_.on_found) search_.on_found(found.back());
    }
    return found;
  }

 private:
  Result<std::optional<SkipSet>> best_of_round(size_t tries) {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.last < b.last; });
    std::optional<SkipSet> best;
    for (size_t i = 0; i < std::min(tries, candidates_.size()); ++i) {
      SkipSet set{.layers = skipped_, .score = {}};
      const int32_t layer = candidates_[i].layer;
      set.layers.insert(std::lower_bound(set.layers.begin(), set.layers.end(), layer), layer);
      Result<SkipScore> score = search_.measure(set.layers);
      ++done_;
      if (search_.on_progress && !search_.on_progress(done_, std::max(done_, total_))) {
        is_ended_ = true;
        return best;
      }
      if (!score && score.error().code != ErrorCode::unsupported) return std::move(score).error();
      candidates_[i].last = score ? score->divergence : kNotYet;
      if (!score) {
        if (!reason_) reason_ = std::move(score).error();
        continue;
      }
      set.score = *score;
      if (!best || set.score.divergence < best->score.divergence) best = std::move(set);
    }
    return best;
  }

  const SkipSearch& search_;
  std::vector<Candidate> candidates_;
  std::vector<int32_t> skipped_;  // Ascending.
  std::optional<Error> reason_;   // Why the first layer could not be skipped.
  int64_t done_ = 0, total_ = 0;
  bool is_ended_ = false;
};

}  // namespace

Result<std::vector<SkipSet>> search_skips(const SkipSearch& search) {
  CHECK(search.skipped_max < search.layer_count && search.try_count > 0);
  return Search(search).run();
}

}  // namespace cairn::measure
