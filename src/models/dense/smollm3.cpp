// SmolLM 3 (Hugging Face, 2025): Llama's shape, but every fourth layer knows no positions.
#include "models/common/decoder.h"

namespace cairn::models {

namespace smollm3 {

// Files do not say it.
constexpr int32_t kLayersPerUnrotated = 4;

bool rotates(int32_t layer) {
  return layer % kLayersPerUnrotated != kLayersPerUnrotated - 1;
}

class SmolLm3 final
    : public Decoder<RotaryConfig<RopeStyle::adjacent>, RmsLayer<blocks::GatedMlp>> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      if (rotates(layer)) qkv = rotate(g, qkv, c_.rope);
      x = g.add(x, attend(g, layer, qkv, l.attn));
      x = g.add(x, blocks::gated_mlp(g, norm(g, x, l.mlp_norm), l.mlp, Activation::silu));
    }
    return logits(g, x);
  }
};

}  // namespace smollm3

extern const Architecture arch_smollm3;
constinit const Architecture arch_smollm3 = architecture<smollm3::SmolLm3>("smollm3");

}  // namespace cairn::models
