// Command R7B, Command A and their kin (Cohere, 2024): attention and feed-forward read the same
// norm and are added together. Three of four layers have windows and rotate; the fourth sees
// everything and knows no positions.
#include "models/common/decoder.h"

namespace cairn::models {

namespace cohere2 {

struct Config : RotaryConfig<RopeStyle::adjacent> {
  float logit_scale = 1.0f;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(windows, read_windows(meta, size.layer_count, 4));
    CAIRN_TRY(logit_scale, meta.real("logit_scale"));
    return Ok{};
  }
};

struct Layer {
  Vector norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    p.vector("attn_norm.weight", norm, {c.size.width});
    attn.parameters(p, c.size.width, c.attention(layer));
    mlp.parameters(p, c.size.width, c.mlp_width);
  }
};

class Cohere2 final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = g.layer_norm(x, l.norm, {}, c_.norm_epsilon);
      blocks::Qkv qkv = project(g, layer, h, l.attn);
      if (c_.window(layer) > 0) qkv = rotate(g, qkv, c_.rope);
      x = g.add(x, attend(g, layer, qkv, l.attn));
      x = g.add(x, blocks::gated_mlp(g, h, l.mlp, Activation::silu));
    }
    const Tensor last = g.layer_norm(g.outputs(x), embedding_and_head_.norm, {}, c_.norm_epsilon);
    const Weight& output = embedding_and_head_.output.exists() ? embedding_and_head_.output
                                                               : embedding_and_head_.embedding;
    return g.scale(g.matmul(output, last), c_.logit_scale);
  }
};

}  // namespace cohere2

extern const Architecture arch_cohere2;
constinit const Architecture arch_cohere2 = architecture<cohere2::Cohere2>("cohere2");

}  // namespace cairn::models
