// EmbeddingGemma (Schechter Vera et al., 2025): Gemma 3 without a mask. Five layers of six see half
// of their window on each side. Two matrices may stand at the end; they are linear, so that the
// mean of what they make is what they would make of the mean, which the paper has.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  std::vector<int32_t> windows;  // By layer; 0: sees all.
  RopeSpec rope, window_rope;
  float attention_scale = 0;
  int32_t dense_width = 0;  // Between the two matrices at the end; 0: there are none.
};

struct Layer {
  Vector attn_norm, q_norm, k_norm, post_attn_norm, mlp_norm, post_mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class GemmaEmbedding final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_attending_config(meta));
    Config c{std::move(common)};
    CAIRN_TRY(c.windows, read_windows(meta, c.size.layer_count, 6));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    CAIRN_TRY(const float window_base, meta.real_or("rope.freq_base_swa", 10000.0f));
    CAIRN_TRY(c.window_rope, read_unscaled_rope(meta, window_base, c.key_dim, RopeStyle::halves));
    CAIRN_TRY(c.attention_scale, meta.real_or("attention.scale", softmax_scale(c.key_dim)));
    CAIRN_TRY(c.dense_width, meta.count_or("dense_2_feat_out", 0));
    return c;
  }

  bool makes_text() const override { return false; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding, blocks::root_of(c_.size.width));
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const int32_t window = c_.windows[size_t(layer)];
      const RopeSpec& rope = window > 0 ? c_.window_rope : c_.rope;
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor q_normed = g.rms_norm(q, l.q_norm, c_.norm_epsilon, c_.key_dim);
      const Tensor k_normed = g.rms_norm(k, l.k_norm, c_.norm_epsilon, c_.key_dim);
      const Tensor a =
          g.attend(layer, g.rope(q_normed, c_.key_dim, rope), g.rope(k_normed, c_.key_dim, rope), v,
                   {.head_count = c_.head_counts[size_t(layer)],
                    .scale = c_.attention_scale,
                    .window = window,
                    .is_causal = false});
      const Tensor mixed = g.matmul(l.attn.out, a, l.attn.out_bias);
      x = g.add(x, g.rms_norm(mixed, l.post_attn_norm, c_.norm_epsilon));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      const Tensor fed = blocks::gated_mlp(g, m, l.mlp, Activation::gelu_tanh);
      x = g.add(x, g.rms_norm(fed, l.post_mlp_norm, c_.norm_epsilon));
    }
    x = g.rms_norm(g.outputs(x), ends_.norm, c_.norm_epsilon);
    if (dense_2_.exists()) x = g.matmul(dense_3_, g.matmul(dense_2_, x));
    return g.deliver(x);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("attn_q_norm.weight", l.q_norm, {c_.key_dim});
    p.vector("attn_k_norm.weight", l.k_norm, {c_.key_dim});
    p.vector("post_attention_norm.weight", l.post_attn_norm, {c_.size.width});
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
    p.vector("post_ffw_norm.weight", l.post_mlp_norm, {c_.size.width});
  }

  void global_parameters(Parameters& p) override {
    if (c_.dense_width == 0) return;
    p.matrix("dense_2.weight", dense_2_, {c_.size.width, c_.dense_width});
    p.matrix("dense_3.weight", dense_3_, {c_.dense_width, c_.size.width});
  }

  Weight dense_2_, dense_3_;
};

}  // namespace

extern const Architecture arch_gemma_embedding;
constinit const Architecture arch_gemma_embedding = architecture<GemmaEmbedding>("gemma-embedding");

}  // namespace cairn::models
