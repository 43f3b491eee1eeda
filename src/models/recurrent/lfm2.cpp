// LFM2 (Liquid AI, 2025): most layers mix by a short convolution between two gates, a few by
// attention with normalised queries and keys. Behind each a gated feed-forward block or, past the
// first layers of the larger models, a mixture of experts with a sigmoid for each expert.
#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace lfm2 {

constexpr int32_t kSigmoidGating = 2;  // A value of expert_gating_func.

// Relatives of the language model under the same name, whose attention has a window.
Status check_kind(const gguf::Metadata& meta) {
  CAIRN_TRY(const int32_t window, meta.count_or("attention.sliding_window", 0));
  if (window > 0) {
    return fail(ErrorCode::unsupported, "{}: expected 0, found {}",
                meta.key("attention.sliding_window"), window);
  }
  return Ok{};
}

struct Config : RotaryConfig<RopeStyle::halves, HybridConfig> {
  int32_t conv_kernel = 0;
  int32_t expert_count = 0, expert_used_count = 0, expert_width = 0, dense_layer_count = 0;
  float weights_scale = 1;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(check_kind(meta));
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(conv_kernel, meta.count("shortconv.l_cache"));
    CAIRN_TRY(read_experts(meta));
    return Ok{};
  }
  Status read_experts(const gguf::Metadata& meta) {
    CAIRN_TRY(expert_count, meta.count_or("expert_count", 0));
    if (expert_count == 0) return Ok{};
    CAIRN_TRY(expert_used_count, meta.count("expert_used_count"));
    CAIRN_TRY(expert_width, meta.count("expert_feed_forward_length"));
    CAIRN_TRY(dense_layer_count, meta.count_or("leading_dense_block_count", 0));
    CAIRN_TRY(weights_scale, meta.real_or("expert_weights_scale", 1.0f));
    CAIRN_TRY(const int32_t gating, meta.count("expert_gating_func"));
    if (gating != kSigmoidGating) {
      return fail(ErrorCode::unsupported, "{}: expected {} (sigmoid), found {}",
                  meta.key("expert_gating_func"), kSigmoidGating, gating);
    }
    return Ok{};
  }

  bool has_experts(int32_t layer) const { return expert_count > 0 && layer >= dense_layer_count; }
};

struct ShortConv {
  Weight in, out;
  Vector taps;
};

struct Layer {
  Vector mixer_norm, mlp_norm, selection_bias;
  blocks::Projections attn;
  blocks::QkNorms qk_norms;
  ShortConv conv;
  blocks::GatedMlp mlp;
  blocks::Experts experts;
};

class Lfm2 final : public Decoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t layer) const override {
    if (c_.is_attention(layer)) return {c_.attention(layer).state()};
    return {State::recurrent({int64_t(c_.conv_kernel - 1) * c_.size.width})};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.mixer_norm);
      x = g.add(x, c_.is_attention(layer) ? attention(g, layer, h) : convolution(g, layer, h));
      const Tensor m = norm(g, x, l.mlp_norm);
      x = g.add(x, c_.has_experts(layer) ? mixture(g, l, m)
                                         : blocks::gated_mlp(g, m, l.mlp, Activation::silu));
    }
    return logits(g, x);
  }

 private:
  // The files call it so, although it stands behind the last layer.
  std::string_view output_norm_name() const override { return "token_embd_norm.weight"; }

  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const int32_t width = c_.size.width;
    p.vector("attn_norm.weight", l.mixer_norm, {width});
    if (c_.is_attention(layer)) {
      l.attn.parameters(p, width, c_.attention(layer));
      l.qk_norms.parameters(p, c_.key_dim, c_.key_dim);
    } else {
      p.matrix("shortconv.in_proj.weight", l.conv.in, {width, 3 * width});
      p.vector("shortconv.conv.weight", l.conv.taps, {c_.conv_kernel, width});
      p.matrix("shortconv.out_proj.weight", l.conv.out, {width, width});
    }
    p.vector("ffn_norm.weight", l.mlp_norm, {width});
    if (c_.has_experts(layer)) {
      l.experts.parameters(p, width, c_.expert_width, c_.expert_count);
      p.optional_vector("exp_probs_b.bias", l.selection_bias, {c_.expert_count});
    } else {
      l.mlp.parameters(p, width, c_.mlp_width);
    }
  }

  Tensor attention(Graph& g, int32_t layer, Tensor h) const {
    const Layer& l = layers_[size_t(layer)];
    const blocks::Qkv qkv = norm(g, project(g, layer, h, l.attn), l.qk_norms, c_.key_dim);
    return attend(g, layer, rotate(g, qkv, c_.rope), l.attn);
  }

  // One gate before the convolution, one behind it.
  Tensor convolution(Graph& g, int32_t layer, Tensor h) const {
    const ShortConv& conv = layers_[size_t(layer)].conv;
    const int32_t width = c_.size.width;
    const Tensor projected = g.matmul(conv.in, h);
    const Tensor before = g.columns(projected, 0, width);
    const Tensor behind = g.columns(projected, width, width);
    const Tensor x = g.columns(projected, 2 * width, width);
    const Tensor gated = g.gate(before, x, Activation::none);
    const Tensor mixed = g.short_conv(layer, gated, conv.taps, {}, c_.conv_kernel, false);
    return g.matmul(conv.out, g.gate(behind, mixed, Activation::none));
  }

  Tensor mixture(Graph& g, const Layer& l, Tensor m) const {
    const RouterSpec router{.expert_used_count = c_.expert_used_count,
                            .score = RouterScore::sigmoid,
                            .normalize = true,
                            .scale = c_.weights_scale,
                            .selection_bias = l.selection_bias};
    return blocks::mixture(g, m, l.experts, router, Activation::silu);
  }
};

}  // namespace lfm2

extern const Architecture arch_lfm2;
constinit const Architecture arch_lfm2 = architecture<lfm2::Lfm2>("lfm2");

}  // namespace cairn::models
