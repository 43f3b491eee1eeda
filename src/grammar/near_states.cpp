// Classes of states for n bytes follow from those for n - 1: where each byte leads. With no byte
// left all states are alike, since every one of them can go on. Calls take no byte: what they lead
// to is compared within the same round, until no class falls apart any more.
#include "grammar/near_states.h"

#include <algorithm>
#include <span>

#include "grammar/stacks.h"

namespace cairn::grammar {

namespace {

// Words of signatures in all rounds together: some ten milliseconds.
constexpr size_t kWorkMax = 2'000'000;

class Classes {
 public:
  explicit Classes(const Automaton& automaton)
      : automaton_(automaton), class_of_(automaton.state_count(), 0) {}

  // One byte further; whether anything changed. False also when the work is over.
  bool refine() {
    const size_t before = count_;
    classify([&](uint32_t state) { sign_bytes(state); });
    size_t split = 0;
    do {
      split = count_;
      classify([&](uint32_t state) { sign_calls(state); });
    } while (count_ > split && work_ <= kWorkMax);
    return count_ > before && work_ <= kWorkMax;
  }

  bool is_over() const { return work_ > kWorkMax; }

  std::vector<uint32_t> lowest() const {
    std::vector<uint32_t> first(count_, kNone), result(class_of_.size());
    for (uint32_t state = 0; state < class_of_.size(); ++state) {
      uint32_t& of_class = first[class_of_[state]];
      if (of_class == kNone) of_class = state;
      result[state] = of_class;
    }
    return result;
  }

 private:
  template <class Sign>
  void classify(const Sign& sign) {
    words_.clear();
    begins_.clear();
    index_.clear();
    std::vector<uint32_t> next(class_of_.size());
    for (uint32_t state = 0; state < class_of_.size() && work_ <= kWorkMax; ++state) {
      begins_.push_back(words_.size());
      sign(state);
      next[state] = number_of_last();
    }
    if (work_ > kWorkMax) return;
    class_of_.swap(next);
    count_ = begins_.size();
  }

  // Of the signature that was written last; it is dropped if it is known.
  uint32_t number_of_last() {
    const size_t begin = begins_.back();
    work_ += words_.size() - begin;
    uint64_t hash = 1;
    for (size_t i = begin; i < words_.size(); ++i) {
      hash = (hash ^ words_[i]) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    const std::span<const uint32_t> wanted = std::span(words_).subspan(begin);
    const uint32_t known = index_.find(hash, [&](uint32_t number) {
      const size_t first = begins_[number], last = begins_[number + 1];
      return std::equal(wanted.begin(), wanted.end(), words_.begin() + ptrdiff_t(first),
                        words_.begin() + ptrdiff_t(last));
    });
    if (known == kNone) {
      index_.insert(hash, uint32_t(begins_.size() - 1));
      return uint32_t(begins_.size() - 1);
    }
    words_.resize(begin);
    begins_.pop_back();
    return known;
  }

  void sign_bytes(uint32_t state) {
    words_.push_back(automaton_.states[state].is_final ? 1 : 0);
    for (const Automaton::TokenEdge& edge : automaton_.tokens_of(state)) {
      words_.push_back(edge.pattern);
      words_.push_back(edge.target);
    }
    words_.push_back(kNone);
    int last = -1;  // Of the range before, which goes on where the next byte leads to its class.
    for (const Automaton::ByteEdge& edge : automaton_.edges_of(state)) {
      const uint32_t target = class_of_[edge.target];
      if (last >= 0 && edge.first == last + 1 && words_.back() == target) {
        words_[words_.size() - 2] = edge.last;
      } else {
        words_.insert(words_.end(), {edge.first, edge.last, target});
      }
      last = edge.last;
    }
    words_.push_back(kNone);
    for (const Automaton::Call& call : automaton_.calls_of(state)) words_.push_back(call.repeat);
  }

  void sign_calls(uint32_t state) {
    words_.push_back(class_of_[state]);
    for (const Automaton::Call& call : automaton_.calls_of(state)) {
      words_.push_back(class_of_[call.start]);
      words_.push_back(class_of_[call.target]);
    }
  }

  const Automaton& automaton_;
  std::vector<uint32_t> class_of_;
  size_t count_ = 1;
  size_t work_ = 0;
  std::vector<uint32_t> words_;  // Signatures of the classes, one behind the other.
  std::vector<size_t> begins_;
  NumberIndex index_;
};

}  // namespace

std::vector<uint32_t> near_states(const Automaton& automaton, int32_t bytes) {
  Classes classes(automaton);
  for (int32_t round = 0; round < bytes; ++round) {
    if (!classes.refine()) break;
  }
  return classes.is_over() ? std::vector<uint32_t>() : classes.lowest();
}

}  // namespace cairn::grammar
