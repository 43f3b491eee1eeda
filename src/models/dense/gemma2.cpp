// Gemma 2 (Gemma Team, 2024): every other layer attends to a window; a norm before and one behind
// each block; scores and logits are bounded by soft caps.
#include "models/common/decoder.h"

namespace cairn::models {

namespace gemma2 {

// Files do not say the scale. The model of 27 billion weights, alone with its 46 layers, divides by
// the root of width / heads, which is not its heads' width.
float default_scale(const DecoderConfig& c) {
  const bool is_27b = c.size.layer_count == 46;
  return softmax_scale(is_27b ? c.size.width / c.head_counts[0] : c.key_dim);
}

struct Config : RotaryConfig<RopeStyle::halves> {
  float score_cap = 0, logit_cap = 0;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(windows, read_windows(meta, size.layer_count, 2, 4096));
    CAIRN_TRY(attention_scale, meta.real_or("attention.scale", default_scale(*this)));
    CAIRN_TRY(score_cap, meta.real_or("attn_logit_softcapping", 50.0f));
    CAIRN_TRY(logit_cap, meta.real_or("final_logit_softcapping", 30.0f));
    return Ok{};
  }
  AttentionSpec scores(int32_t layer) const {
    AttentionSpec spec = DecoderConfig::scores(layer);
    spec.softcap = score_cap;
    return spec;
  }
};

struct Layer : RmsLayer<blocks::GatedMlp> {
  Vector post_attn_norm, post_mlp_norm;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    attention_parameters(p, c, layer);
    p.vector("post_attention_norm.weight", post_attn_norm, {c.size.width});
    mlp_parameters(p, c);
    p.vector("post_ffw_norm.weight", post_mlp_norm, {c.size.width});
  }
};

class Gemma2 final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding, blocks::root_of(c_.size.width));
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.attn_norm);
      const Tensor mixed = rotary_attention(g, layer, h, l.attn, c_.rope);
      x = g.add(x, norm(g, mixed, l.post_attn_norm));
      const Tensor m = norm(g, x, l.mlp_norm);
      const Tensor fed = blocks::gated_mlp(g, m, l.mlp, Activation::gelu_tanh);
      x = g.add(x, norm(g, fed, l.post_mlp_norm));
    }
    return blocks::softcap(g, logits(g, x), c_.logit_cap);
  }
};

}  // namespace gemma2

extern const Architecture arch_gemma2;
constinit const Architecture arch_gemma2 = architecture<gemma2::Gemma2>("gemma2");

}  // namespace cairn::models
