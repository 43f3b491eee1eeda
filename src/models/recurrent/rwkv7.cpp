// RWKV-7 "Goose" (Peng et al., 2025): no attention. Each layer mixes over time by a delta rule with
// a decay for each channel, and over channels by a squared relu; both read a mixture of a token and
// the one before it. The first layer's values flow into all others'.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "graph/blocks/layer_norm.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace rwkv7 {

// Of the norm of each head; files do not say it.
constexpr float kHeadEpsilon = 64e-5f;
// Keys get length 1; this only keeps a key of zeros what it is.
constexpr float kLengthEpsilon = 1e-24f;
// No channel forgets faster than by exp(-exp(-1/2)) a token: exp(-1/2) with a minus.
constexpr float kLogDecayScale = -0.60653065971263342f;

struct Config : HybridConfig {
  int32_t head_dim = 0;
  int32_t decay_rank = 0, rate_rank = 0, value_rank = 0, gate_rank = 0;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(HybridConfig::read(meta));
    CAIRN_TRY(head_dim, meta.count("wkv.head_size"));
    CAIRN_TRY(decay_rank, meta.count("attention.decay_lora_rank"));
    CAIRN_TRY(rate_rank, meta.count("attention.iclr_lora_rank"));
    CAIRN_TRY(value_rank, meta.count("attention.value_residual_mix_lora_rank"));
    CAIRN_TRY(gate_rank, meta.count("attention.gate_lora_rank"));
    if (size.width % head_dim != 0) {
      return fail(ErrorCode::invalid_data, "{}: expected a divisor of the width {}, found {}",
                  meta.key("wkv.head_size"), size.width, head_dim);
    }
    return Ok{};
  }

  int32_t head_count() const { return size.width / head_dim; }
};

// w2 f(w1 x) + w0.
struct LowRankMap {
  Weight down, up;
  Vector bias;

  void parameters(Parameters& p, char name, int32_t width, int32_t rank) {
    p.vector(fmt::format("time_mix_{}0.weight", name), bias, {width});
    matrices(p, name, width, rank);
  }
  void matrices(Parameters& p, char name, int32_t width, int32_t rank) {
    p.matrix(fmt::format("time_mix_{}1.weight", name), down, {width, rank});
    p.matrix(fmt::format("time_mix_{}2.weight", name), up, {rank, width});
  }
  Tensor operator()(Graph& g, Tensor x, Activation activation) const {
    Tensor inner = g.matmul(down, x);
    if (activation != Activation::none) inner = g.activate(inner, activation);
    return g.matmul(up, inner, bias);
  }
};

struct Layer {
  blocks::LayerNorm time_norm, channel_norm, head_norm;
  Vector time_mixtures, channel_mixture;
  Weight receptance, key, value, out, channel_key, channel_value;
  LowRankMap decay, rate, value_share, gate;
  Vector k_k, k_a, r_k;
};

// The order of the mixtures in time_mix_lerp_fused.
enum Mixture : int32_t { kForR, kForW, kForK, kForV, kForA, kForG, kMixtureCount };

class Rwkv7 final : public CentredDecoder<Config, Layer> {
 public:
  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(CentredDecoder::read(meta));
    for (int32_t channel = 0; channel < c_.size.width; ++channel) {
      previous_less_own_.insert(previous_less_own_.end(), {1.0f, -1.0f});
    }
    return Ok{};
  }

  // What came before, for the mixtures over time and over channels, and the recurrence's state.
  std::vector<State> layer_states(int32_t) const override {
    const int64_t width = c_.size.width;
    return {State::recurrent({width, width, width * c_.head_dim})};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = norm(g, g.embed(embedding_and_head_.embedding), embedding_norm_);
    Tensor first_value;
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.time_norm);
      x = g.add(x, time_mix(g, layer, h, first_value));
      const Tensor m = norm(g, x, l.channel_norm);
      x = g.add(x, channel_mix(g, layer, m));
    }
    return logits(g, x);
  }

 private:
  Status expect_unneeded(int32_t layer, const Program&) const override {
    if (layer > 0) return Ok{};
    return fail(ErrorCode::unsupported,
                "layer 0: expected it to run, as all others mix its values into theirs, found it "
                "skipped");
  }

  // The token before each, less the token.
  Tensor change(Graph& g, int32_t layer, Tensor x, int32_t state) const {
    const Vector weight{previous_less_own_};
    return g.short_conv(layer, x, weight, {}, 2, false, state);
  }

  Tensor time_mix(Graph& g, int32_t layer, Tensor x, Tensor& first_value) const {
    const Layer& l = layers_[size_t(layer)];
    const int32_t width = c_.size.width;
    const Tensor dx = change(g, layer, x, 0);
    std::array<Tensor, kMixtureCount> mixed;
    for (int32_t i = 0; i < kMixtureCount; ++i) {
      mixed[size_t(i)] = g.add(x, g.scale_columns(dx, l.time_mixtures, i * width));
    }
    const Tensor r = g.matmul(l.receptance, mixed[kForR]);
    const Tensor k = g.matmul(l.key, mixed[kForK]);
    Tensor v = g.matmul(l.value, mixed[kForV]);
    if (layer == 0) {
      first_value = v;
    } else {
      const Tensor share = l.value_share(g, mixed[kForV], Activation::none);
      v = g.add(v, g.gate(share, g.add(first_value, v, -1.0f), Activation::sigmoid));
    }
    const Tensor decay = l.decay(g, mixed[kForW], Activation::tanh);
    const Tensor rate = g.activate(l.rate(g, mixed[kForA], Activation::none), Activation::sigmoid);
    // What is asked, and erased at a rate of its own for each channel, is not what is written.
    const Tensor asked =
        g.scale(g.rms_norm(g.scale_columns(k, l.k_k), {}, kLengthEpsilon, c_.head_dim),
                float(1.0 / std::sqrt(double(c_.head_dim))));
    const Tensor scaled = g.scale_columns(k, l.k_a);
    const Tensor written = g.add(k, g.add(g.gate(rate, scaled, Activation::none), scaled, -1.0f));
    const ChannelDeltaInputs inputs{
        .q = r,
        .k = written,
        .v = v,
        .log_decay = g.scale(g.activate(decay, Activation::sigmoid), kLogDecayScale),
        .rate = {},
        .asked = asked,
        .erased = g.gate(rate, asked, Activation::none)};
    const ChannelDeltaSpec spec{
        .head_count = c_.head_count(), .key_dim = c_.head_dim, .value_dim = c_.head_dim};
    const Tensor y = g.channel_delta_scan(layer, inputs, spec, 2);
    const Tensor normed =
        g.layer_norm(y, l.head_norm.gain, l.head_norm.bias, kHeadEpsilon, c_.head_dim);
    const Tensor sum = g.add(normed, g.scale_by_dots(v, written, r, l.r_k, c_.head_dim));
    const Tensor gate = l.gate(g, mixed[kForG], Activation::sigmoid);
    return g.matmul(l.out, g.gate(gate, sum, Activation::none));
  }

  Tensor channel_mix(Graph& g, int32_t layer, Tensor x) const {
    const Layer& l = layers_[size_t(layer)];
    const Tensor mixed = g.add(x, g.scale_columns(change(g, layer, x, 1), l.channel_mixture));
    const Tensor k = g.activate(g.matmul(l.channel_key, mixed), Activation::relu);
    return g.matmul(l.channel_value, g.gate(k, k, Activation::none));
  }

  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const int32_t width = c_.size.width;
    l.time_norm.biased_parameters(p, "attn_norm", width);
    l.channel_norm.biased_parameters(p, "attn_norm_2", width);
    p.vector("time_mix_lerp_fused.weight", l.time_mixtures, {width, 1, 1, kMixtureCount});
    l.decay.parameters(p, 'w', width, c_.decay_rank);
    l.rate.parameters(p, 'a', width, c_.rate_rank);
    // The first layer's is there, of another rank, but never used.
    l.value_share.parameters(p, 'v', width, layer == 0 ? c_.rate_rank : c_.value_rank);
    l.gate.matrices(p, 'g', width, c_.gate_rank);
    p.vector("time_mix_k_k.weight", l.k_k, {width});
    p.vector("time_mix_k_a.weight", l.k_a, {width});
    p.vector("time_mix_r_k.weight", l.r_k, {width});
    p.matrix("time_mix_key.weight", l.key, {width, width});
    p.matrix("time_mix_value.weight", l.value, {width, width});
    p.matrix("time_mix_receptance.weight", l.receptance, {width, width});
    l.head_norm.biased_parameters(p, "time_mix_ln", width);
    p.matrix("time_mix_output.weight", l.out, {width, width});
    p.vector("channel_mix_lerp_k.weight", l.channel_mixture, {width});
    p.matrix("channel_mix_key.weight", l.channel_key, {width, c_.mlp_width});
    p.matrix("channel_mix_value.weight", l.channel_value, {c_.mlp_width, width});
  }

  void global_parameters(Parameters& p) override {
    embedding_norm_.biased_parameters(p, "token_embd_norm", c_.size.width);
    p.vector("output_norm.bias", biases_.norm, {c_.size.width});
  }

  blocks::LayerNorm embedding_norm_;
  std::vector<float> previous_less_own_;  // [width][2]: a convolution's weights.
};

}  // namespace rwkv7

extern const Architecture arch_rwkv7;
constinit const Architecture arch_rwkv7 = architecture<rwkv7::Rwkv7>("rwkv7");

}  // namespace cairn::models
