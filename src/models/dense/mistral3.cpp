// Ministral 3 and Mistral Small 3.x: Llama's shape with YaRN, and queries that grow with the
// logarithm of their position beyond the original context.
#include "models/common/decoder.h"

namespace cairn::models {

namespace mistral3 {

struct Config : RotaryConfig<RopeStyle::adjacent> {
  float temperature_scale = 0;  // 0: queries do not grow.

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(temperature_scale, meta.real_or("attention.temperature_scale", 0.0f));
    return Ok{};
  }
};

class Mistral3 final : public Decoder<Config, RmsLayer<blocks::GatedMlp>> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.attn_norm);
      blocks::Qkv qkv = rotate(g, project(g, layer, h, l.attn), c_.rope);
      if (c_.temperature_scale != 0) {
        qkv.q = g.scale_by_position(qkv.q, double(c_.temperature_scale), c_.original_context);
      }
      x = g.add(x, attend(g, layer, qkv, l.attn));
      x = g.add(x, blocks::gated_mlp(g, norm(g, x, l.mlp_norm), l.mlp, Activation::silu));
    }
    return logits(g, x);
  }
};

}  // namespace mistral3

extern const Architecture arch_mistral3;
constinit const Architecture arch_mistral3 = architecture<mistral3::Mistral3>("mistral3");

}  // namespace cairn::models
