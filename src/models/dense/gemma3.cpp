// Gemma 3 (Gemma Team, 2025): five layers of six attend to a window and rotate by a smaller base
// than the sixth, which attends to all; queries and keys are normalised by head.
#include "models/common/decoder.h"

namespace cairn::models {

namespace gemma3 {

// Files do not say the scale. The model of 27 billion weights, alone with its 62 layers, divides by
// the root of width / heads, which is not its heads' width.
float default_scale(const DecoderConfig& c) {
  const bool is_27b = c.size.layer_count == 62;
  return softmax_scale(is_27b ? c.size.width / c.head_counts[0] : c.key_dim);
}

struct Config : RotaryConfig<RopeStyle::halves> {
  RopeSpec window_rope;
  float logit_cap = 0;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(windows, read_windows(meta, size.layer_count, 6));
    CAIRN_TRY(window_rope, read_window_rope(meta, 10000.0f, key_dim));
    CAIRN_TRY(attention_scale, meta.real_or("attention.scale", default_scale(*this)));
    CAIRN_TRY(logit_cap, meta.real_or("final_logit_softcapping", 0.0f));
    return Ok{};
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

class Gemma3 final : public Decoder<Config, Layer> {
 public:
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
    return blocks::softcap(g, logits(g, x), c_.logit_cap);
  }
};

}  // namespace gemma3

extern const Architecture arch_gemma3;
constinit const Architecture arch_gemma3 = architecture<gemma3::Gemma3>("gemma3");

}  // namespace cairn::models
