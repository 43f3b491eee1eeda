// Granite 4 hybrid: most layers mix by Mamba-2, a few by attention without positions; behind each a
// gated feed-forward block or a mixture of experts with a shared one. Embeddings, residuals, scores
// and logits have multipliers.
#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/mamba2.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  blocks::Mamba2Shape mamba;
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1, attention_scale = 1;
  int32_t expert_count = 0, expert_used_count = 0, shared_expert_width = 0;
  bool has_positions = false;
  RopeSpec rope;

  bool is_attention(int32_t layer) const { return kv_head_counts[size_t(layer)] > 0; }
};

struct Layer {
  Vector mixer_norm, mlp_norm;
  blocks::Projections attn;
  blocks::Mamba2 mamba;
  blocks::GatedMlp mlp;  // The shared expert where there are experts.
  blocks::Experts experts;
};

class GraniteHybrid final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
    Config c{std::move(common)};
    CAIRN_TRY(c.mamba, read_mamba2(meta));
    CAIRN_TRY(c.embedding_scale, meta.real_or("embedding_scale", 1.0f));
    CAIRN_TRY(c.residual_scale, meta.real_or("residual_scale", 1.0f));
    CAIRN_TRY(c.logit_scale, meta.real_or("logit_scale", 1.0f));
    CAIRN_TRY(c.attention_scale, meta.real_or("attention.scale", softmax_scale(c.key_dim)));
    CAIRN_TRY(c.expert_count, meta.count_or("expert_count", 0));
    CAIRN_TRY(c.expert_used_count, meta.count_or("expert_used_count", 0));
    CAIRN_TRY(c.shared_expert_width, meta.count_or("expert_shared_feed_forward_length", 0));
    CAIRN_TRY(c.has_positions, meta.flag_or("rope.scaling.finetuned", false));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::adjacent));
    return c;
  }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.is_attention(layer) ? c_.attention(layer).state() : c_.mamba.state()};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding, c_.embedding_scale);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.mixer_norm, c_.norm_epsilon);
      const Tensor mixed = c_.is_attention(layer)
                               ? attention(g, layer, h)
                               : blocks::mamba2(g, layer, h, l.mamba, c_.mamba, c_.norm_epsilon);
      x = g.add(x, mixed, c_.residual_scale);
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, feed_forward(g, l, m), c_.residual_scale);
    }
    return g.scale(blocks::logits(g, x, ends_, c_.norm_epsilon), 1.0f / c_.logit_scale);
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
      l.experts.parameters(p, c_.size.width, c_.mlp_width, c_.expert_count);
      if (c_.shared_expert_width > 0) {
        l.mlp.parameters(p, c_.size.width, c_.shared_expert_width, "_shexp");
      }
    } else {
      l.mlp.parameters(p, c_.size.width, c_.mlp_width);
    }
  }

  Tensor attention(Graph& g, int32_t layer, Tensor h) const {
    const blocks::Projections& attn = layers_[size_t(layer)].attn;
    auto [q, k, v] = attn.project(g, h, c_.attention(layer));
    if (c_.has_positions) {
      q = g.rope(q, c_.key_dim, c_.rope);
      k = g.rope(k, c_.key_dim, c_.rope);
    }
    const Tensor a = g.attend(
        layer, q, k, v, {.head_count = c_.head_counts[size_t(layer)], .scale = c_.attention_scale});
    return g.matmul(attn.out, a, attn.out_bias);
  }

  Tensor feed_forward(Graph& g, const Layer& l, Tensor m) const {
    if (c_.expert_count == 0) return blocks::gated_mlp(g, m, l.mlp, Activation::silu);
    const RouterSpec router{.expert_used_count = c_.expert_used_count,
                            .score = RouterScore::softmax_chosen};
    const Tensor routed = blocks::mixture(g, m, l.experts, router, Activation::silu);
    if (c_.shared_expert_width == 0) return routed;
    return g.add(routed, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
  }
};

}  // namespace

extern const Architecture arch_granitehybrid;
constinit const Architecture arch_granitehybrid = architecture<GraniteHybrid>("granitehybrid");

}  // namespace cairn::models
