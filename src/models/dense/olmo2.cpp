// OLMo 2 and OLMo 3 (Team OLMo, 2024 and 2025): norms after attention and feed-forward instead of
// before them, and one norm over all heads' queries and one over all keys. OLMo 3 has windows in
// three of four layers, which rotate by unscaled frequencies.
#include "models/common/decoder.h"

namespace cairn::models {

namespace olmo2 {

struct Config : RotaryConfig<RopeStyle::halves> {
  RopeSpec window_rope;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(windows, read_windows(meta, size.layer_count, 4));
    // The file's factor is the whole magnitude here, not one that multiplies YaRN's own.
    CAIRN_TRY(rope.magnitude, meta.real_or("rope.scaling.attn_factor", float(rope.magnitude)));
    CAIRN_TRY(const float base, meta.real_or("rope.freq_base", 10000.0f));
    CAIRN_TRY(window_rope, read_window_rope(meta, base, key_dim));
    return Ok{};
  }
};

struct Layer {
  blocks::Projections attn;
  blocks::QkNorms qk_norms;
  Vector attn_norm, mlp_norm;
  blocks::GatedMlp mlp;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    const blocks::AttentionShape shape = c.attention(layer);
    attn.parameters(p, c.size.width, shape);
    qk_norms.parameters(p, shape.widths().q, shape.widths().k);
    p.vector("post_attention_norm.weight", attn_norm, {c.size.width});
    mlp.parameters(p, c.size.width, c.mlp_width);
    p.vector("post_ffw_norm.weight", mlp_norm, {c.size.width});
  }
};

class Olmo2 final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const RopeSpec& rope = c_.window(layer) > 0 ? c_.window_rope : c_.rope;
      const blocks::Qkv qkv = norm(g, project(g, layer, x, l.attn), l.qk_norms);
      x = g.add(x, norm(g, attend(g, layer, rotate(g, qkv, rope), l.attn), l.attn_norm));
      x = g.add(x, norm(g, blocks::gated_mlp(g, x, l.mlp, Activation::silu), l.mlp_norm));
    }
    return logits(g, x);
  }
};

}  // namespace olmo2

extern const Architecture arch_olmo2;
constinit const Architecture arch_olmo2 = architecture<olmo2::Olmo2>("olmo2");

}  // namespace cairn::models
