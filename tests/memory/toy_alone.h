// A toy model's sequence run alone: plain arrays that grow token by token, without pages, windows
// to be dropped, forks or logs. What any sequence of the same tokens must see.
#pragma once

#include <span>
#include <vector>

#include "tests/memory/toy_model.h"

namespace cairn::memory::toy {

class ToyAlone {
 public:
  explicit ToyAlone(const ToyModel* model, Variant variant = Variant::plain)
      : model_(model),
        variant_(variant),
        layout_(model->layout(false)),
        layers_(model->layers().size()),
        last_values_(layers_.size()) {}

  int32_t length() const { return int32_t(tokens_.size()); }
  std::span<const Token> tokens() const { return tokens_; }
  // Of the last token.
  uint64_t output() const { return outputs_.back(); }

  void append(std::span<const Token> tokens) {
    for (const Token token : tokens) append(token);
  }
  void append(Token token) {
    outputs_.push_back(next(token, true));
    tokens_.push_back(token);
  }
  // The output that `token` would have next.
  uint64_t probe(Token token) { return next(token, false); }

  void cut(int32_t length) {
    const size_t size = size_t(length);
    tokens_.resize(size);
    outputs_.resize(size);
    for (PerLayer& layer : layers_) {
      if (!layer.values.empty()) layer.values.resize(size);
      if (!layer.sums.empty()) layer.sums.resize(size);
      if (!layer.states.empty()) layer.states.resize(size);
    }
  }

 private:
  // One entry a position.
  struct PerLayer {
    std::vector<uint64_t> values;
    std::vector<uint64_t> sums;  // Of all positions up to this one: what `full` sees.
    std::vector<ToyState> states;
  };

  uint64_t next(Token token, bool keeps) {
    const int32_t position = length();
    uint64_t x = embed(token, position, variant_);
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
      for (const State& state : model_->layers()[layer]) {
        if (state.kind == State::Kind::recurrent) {
          PerLayer& own = layers_[layer];
          ToyState kept = own.states.empty() ? ToyState() : own.states.back();
          x = mix(x, kept.next(x));
          if (keeps) own.states.push_back(kept);
        } else {
          x = mix(x, seen(layer, state, x, position, keeps));
        }
      }
    }
    return x;
  }

  uint64_t seen(size_t layer, const State& state, uint64_t x, int32_t position, bool keeps) {
    const bool is_shared = state.kind == State::Kind::shared;
    PerLayer& owner = layers_[is_shared ? size_t(state.shared_layer) : layer];
    if (!is_shared) last_values_[layer] = x;
    const uint64_t last = is_shared ? last_values_[size_t(state.shared_layer)] : x;
    const State& window = is_shared ? model_->seen_through(layout_, layer) : state;
    uint64_t sum = 0;
    if (window.kind == State::Kind::full) {
      sum = position > 0 ? owner.sums[size_t(position) - 1] : 0;
    } else {
      for (int32_t q = first_visible(window, position); q < position; ++q) {
        sum = fold(sum, owner.values[size_t(q)]);
      }
    }
    sum = fold(sum, last);
    if (keeps && !is_shared) {
      owner.values.push_back(x);
      if (state.kind == State::Kind::full) owner.sums.push_back(sum);
    }
    return sum;
  }

  const ToyModel* model_;
  Variant variant_;
  Layout layout_;
  std::vector<PerLayer> layers_;
  std::vector<Token> tokens_;
  std::vector<uint64_t> outputs_;
  std::vector<uint64_t> last_values_;  // By layer: what it keeps of the token just computed.
};

}  // namespace cairn::memory::toy
