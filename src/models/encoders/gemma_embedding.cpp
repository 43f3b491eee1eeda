// EmbeddingGemma (Schechter Vera et al., 2025): Gemma 3 without a mask. Five layers of six see half
// of their window on each side. Two matrices may stand at the end; they are linear, so that the
// mean of what they make is what they would make of the mean, which the paper has.
#include "models/common/decoder.h"

namespace cairn::models {

namespace gemma_embedding {

struct Config : RotaryConfig<RopeStyle::halves> {
  RopeSpec window_rope;
  int32_t dense_width = 0;  // Between the two matrices at the end; 0: there are none.

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(windows, read_windows(meta, size.layer_count, 6));
    CAIRN_TRY(window_rope, read_window_rope(meta, 10000.0f, key_dim));
    CAIRN_TRY(attention_scale, meta.real_or("attention.scale", attention_scale));
    CAIRN_TRY(dense_width, meta.count_or("dense_2_feat_out", 0));
    return Ok{};
  }
  AttentionSpec scores(int32_t layer) const {
    AttentionSpec spec = DecoderConfig::scores(layer);
    spec.is_causal = false;
    return spec;
  }
};

struct Layer : RmsLayer<blocks::GatedMlp> {
  blocks::QkNorms qk_norms;
  Vector post_attn_norm, post_mlp_norm;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    attention_parameters(p, c, layer);
    qk_norms.parameters(p, c.key_dim, c.key_dim);
    p.vector("post_attention_norm.weight", post_attn_norm, {c.size.width});
    mlp_parameters(p, c);
    p.vector("post_ffw_norm.weight", post_mlp_norm, {c.size.width});
  }
};

class GemmaEmbedding final : public Decoder<Config, Layer> {
 public:
  bool makes_text() const override { return false; }
  // The whole text, also where a layer sees a part of it.
  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state()};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding, blocks::root_of(c_.size.width));
    for (const auto& [layer, l] : layers()) {
      const RopeSpec& rope = c_.window(layer) > 0 ? c_.window_rope : c_.rope;
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      const blocks::Qkv normed = norm(g, qkv, l.qk_norms, c_.key_dim);
      const Tensor mixed = attend(g, layer, rotate(g, normed, rope), l.attn);
      x = g.add(x, norm(g, mixed, l.post_attn_norm));
      const Tensor m = norm(g, x, l.mlp_norm);
      const Tensor fed = blocks::gated_mlp(g, m, l.mlp, Activation::gelu_tanh);
      x = g.add(x, norm(g, fed, l.post_mlp_norm));
    }
    x = norm(g, g.outputs(x), embedding_and_head_.norm);
    if (dense_2_.exists()) x = g.matmul(dense_3_, g.matmul(dense_2_, x));
    return g.set_output(x);
  }

 private:
  void global_parameters(Parameters& p) override {
    if (c_.dense_width == 0) return;
    p.matrix("dense_2.weight", dense_2_, {c_.size.width, c_.dense_width});
    p.matrix("dense_3.weight", dense_3_, {c_.dense_width, c_.size.width});
  }

  Weight dense_2_, dense_3_;
};

}  // namespace gemma_embedding

extern const Architecture arch_gemma_embedding;
constinit const Architecture arch_gemma_embedding =
    architecture<gemma_embedding::GemmaEmbedding>("gemma-embedding");

}  // namespace cairn::models
