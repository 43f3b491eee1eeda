// OLMo 1 (Groeneveld et al., 2024): Llama's shape with norms around the mean that have no
// parameters.
#include "models/common/decoder.h"

namespace cairn::models {

namespace olmo {

struct Config : RotaryConfig<RopeStyle::adjacent> {
  float clamp = 0;  // Of queries, keys and values; 0: none.

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(clamp, meta.real_or("attention.clamp_kqv", 0.0f));
    return Ok{};
  }
};

struct Layer {
  blocks::Projections attn;
  blocks::GatedMlp mlp;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    attn.parameters(p, c.size.width, c.attention(layer));
    mlp.parameters(p, c.size.width, c.mlp_width);
  }
};

class Olmo final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = g.layer_norm(x, {}, {}, c_.norm_epsilon);
      const blocks::Qkv qkv = blocks::clamped(g, project(g, layer, h, l.attn), c_.clamp);
      x = g.add(x, attend(g, layer, rotate(g, qkv, c_.rope), l.attn));
      const Tensor m = g.layer_norm(x, {}, {}, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
    }
    return blocks::centred_logits(g, x, embedding_and_head_, {}, c_.norm_epsilon);
  }

 private:
  std::string_view output_norm_name() const override { return ""; }
};

}  // namespace olmo

extern const Architecture arch_olmo;
constinit const Architecture arch_olmo = architecture<olmo::Olmo>("olmo");

}  // namespace cairn::models
