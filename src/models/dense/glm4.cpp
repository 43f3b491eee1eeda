// GLM-4 of 2025 (Zhipu): what attention and feed-forward give is normalised before it is added, as
// well as what they read; a part of each head rotates; gate and up are one matrix.
#include "models/common/decoder.h"

namespace cairn::models {

namespace glm4 {

struct Config : RotaryConfig<RopeStyle::adjacent> {
  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    return drop_mtp_layers(meta, *this);
  }
};

struct Layer : RmsLayer<blocks::JoinedMlp> {
  Vector after_attn_norm, after_mlp_norm;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    attention_parameters(p, c, layer);
    p.vector("post_attention_norm.weight", after_attn_norm, {c.size.width});
    mlp_parameters(p, c);
    p.vector("post_ffw_norm.weight", after_mlp_norm, {c.size.width});
  }
};

class Glm4 final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.attn_norm);
      const Tensor mixed = rotary_attention(g, layer, h, l.attn, c_.rope);
      x = g.add(x, norm(g, mixed, l.after_attn_norm));
      const Tensor m = norm(g, x, l.mlp_norm);
      const Tensor thought = blocks::gated_mlp(g, m, l.mlp, Activation::silu);
      x = g.add(x, norm(g, thought, l.after_mlp_norm));
    }
    return logits(g, x);
  }
};

}  // namespace glm4

extern const Architecture arch_glm4;
constinit const Architecture arch_glm4 = architecture<glm4::Glm4>("glm4");

}  // namespace cairn::models
