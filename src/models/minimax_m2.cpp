// MiniMax M2 (2025): experts in every layer, scored each by itself and chosen with a bias. The norm
// of queries, and that of keys, is over all heads together; a part of each head rotates.
#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "models/common/decoder.h"
#include "models/common/mixture.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  MixtureConfig mixture;
};

struct Layer {
  Vector attn_norm, q_norm, k_norm, mlp_norm, selection_bias;
  blocks::Projections attn;
  blocks::Experts experts;
};

class MiniMaxM2 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_attending_config(meta));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    CAIRN_TRY(c.mixture, read_mixture(meta, {.score = RouterScore::sigmoid, .normalize = true}));
    CAIRN_TRY(expect_experts(meta, c.mixture));
    return c;
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      q = g.rms_norm(q, l.q_norm, c_.norm_epsilon);
      k = g.rms_norm(k, l.k_norm, c_.norm_epsilon);
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      RouterSpec router = c_.mixture.router;
      router.selection_bias = l.selection_bias;
      x = g.add(x, blocks::mixture(g, m, l.experts, router, Activation::silu));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const blocks::AttentionShape shape = c_.attention(layer);
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, shape);
    p.vector("attn_q_norm.weight", l.q_norm, {shape.head_count * shape.key_dim});
    p.vector("attn_k_norm.weight", l.k_norm, {shape.kv_head_count * shape.key_dim});
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.experts.parameters(p, c_.size.width, c_.mixture.expert_width, c_.mixture.expert_count);
    p.vector("exp_probs_b.bias", l.selection_bias, {c_.mixture.expert_count});
  }
};

}  // namespace

extern const Architecture arch_minimax_m2;
constinit const Architecture arch_minimax_m2 = architecture<MiniMaxM2>("minimax-m2");

}  // namespace cairn::models
