// EXAONE 4 (LG AI Research, 2025): norms after attention and feed-forward instead of before them,
// and norms of each head's query and key. Where layers have windows, only these rotate: the layers
// that see everything know no positions.
#include "models/common/decoder.h"

namespace cairn::models {

namespace exaone4 {

struct Config : RotaryConfig<RopeStyle::halves> {
  bool rotate_all = true;  // There are no windows.

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(windows, read_windows(meta, size.layer_count, 4));
    CAIRN_TRY(const int32_t window, meta.count_or("attention.sliding_window", 0));
    rotate_all = window == 0;
    return Ok{};
  }
};

struct Layer {
  blocks::Projections attn;
  blocks::QkNorms qk_norms;
  Vector attn_norm, mlp_norm;
  blocks::GatedMlp mlp;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    attn.parameters(p, c.size.width, c.attention(layer));
    qk_norms.parameters(p, c.key_dim, c.key_dim);
    p.vector("post_attention_norm.weight", attn_norm, {c.size.width});
    mlp.parameters(p, c.size.width, c.mlp_width);
    p.vector("post_ffw_norm.weight", mlp_norm, {c.size.width});
  }
};

class Exaone4 final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    const RopeSpec rope = with_factors(c_.rope, rope_factors_);
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      blocks::Qkv qkv = norm(g, project(g, layer, x, l.attn), l.qk_norms, c_.key_dim);
      if (c_.window(layer) > 0 || c_.rotate_all) qkv = rotate(g, qkv, rope);
      x = g.add(x, norm(g, attend(g, layer, qkv, l.attn), l.attn_norm));
      x = g.add(x, norm(g, blocks::gated_mlp(g, x, l.mlp, Activation::silu), l.mlp_norm));
    }
    return logits(g, x);
  }

 private:
  void global_parameters(Parameters& p) override {
    p.optional_vector("rope_freqs.weight", rope_factors_, {int64_t(c_.rope.frequencies.size())});
  }

  Vector rope_factors_;
};

}  // namespace exaone4

extern const Architecture arch_exaone4;
constinit const Architecture arch_exaone4 = architecture<exaone4::Exaone4>("exaone4");

}  // namespace cairn::models
