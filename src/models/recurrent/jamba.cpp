// Jamba (Lieber et al., 2024): most layers mix by Mamba with normalised time steps, B and C, a few
// by attention without positions. Behind each a gated feed-forward block or a mixture of experts: a
// file has a router where it is the latter. The router's softmax is not normalised again.
#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/mamba1.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  blocks::Mamba1Shape mamba;
  int32_t expert_count = 0, expert_used_count = 0;

  bool is_attention(int32_t layer) const { return kv_head_counts[size_t(layer)] > 0; }
};

struct Layer {
  Vector mixer_norm, mlp_norm;
  blocks::Projections attn;
  blocks::Mamba1 mamba;
  blocks::GatedMlp mlp;
  blocks::Experts experts;
};

class Jamba final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
    Config c{std::move(common)};
    CAIRN_TRY(c.mamba, read_mamba1(meta));
    c.mamba.norms = blocks::StepNorms::with_gain;
    CAIRN_TRY(c.expert_count, meta.count_or("expert_count", 0));
    CAIRN_TRY(c.expert_used_count, meta.count_or("expert_used_count", 0));
    return c;
  }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.is_attention(layer) ? c_.attention(layer).state() : c_.mamba.state()};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.mixer_norm, c_.norm_epsilon);
      const Tensor mixed = c_.is_attention(layer)
                               ? attention(g, layer, h)
                               : blocks::mamba1(g, layer, h, l.mamba, c_.mamba, c_.norm_epsilon);
      x = g.add(x, mixed);
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, feed_forward(g, l, m));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.mixer_norm, {c_.size.width});
    if (c_.is_attention(layer)) {
      l.attn.parameters(p, c_.size.width, c_.attention(layer));
    } else {
      l.mamba.parameters(p, c_.size.width, c_.mamba);
    }
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    if (c_.expert_count > 0) {
      p.optional_matrix("ffn_gate_inp.weight", l.experts.router, {c_.size.width, c_.expert_count});
    }
    if (l.experts.router.exists()) {
      l.experts.expert_parameters(p, c_.size.width, c_.mlp_width, c_.expert_count);
    } else {
      l.mlp.parameters(p, c_.size.width, c_.mlp_width);
    }
  }

  Tensor attention(Graph& g, int32_t layer, Tensor h) const {
    const blocks::Projections& attn = layers_[size_t(layer)].attn;
    const auto [q, k, v] = attn.project(g, h, c_.attention(layer));
    const Tensor a =
        g.attend(layer, q, k, v,
                 {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
    return g.matmul(attn.out, a, attn.out_bias);
  }

  Tensor feed_forward(Graph& g, const Layer& l, Tensor m) const {
    if (!l.experts.router.exists()) return blocks::gated_mlp(g, m, l.mlp, Activation::silu);
    const RouterSpec router{.expert_used_count = c_.expert_used_count,
                            .score = RouterScore::softmax_all};
    return blocks::mixture(g, m, l.experts, router, Activation::silu);
  }
};

}  // namespace

extern const Architecture arch_jamba;
constinit const Architecture arch_jamba = architecture<Jamba>("jamba");

}  // namespace cairn::models
