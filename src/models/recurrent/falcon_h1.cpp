// Falcon-H1 (Zuo et al., 2025): every layer attends and recurs side by side, on the same input; the
// sum of both goes into the residual stream. The model's multipliers are part of its weights.
#include "graph/blocks/mamba2.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace falcon_h1 {

struct Config : RotaryConfig<RopeStyle::halves> {
  blocks::Mamba2Shape mamba;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(mamba, read_mamba2(meta));
    mamba.needs_norm = false;
    return Ok{};
  }
};

struct Layer {
  Vector mixer_norm, mlp_norm;
  blocks::Projections attn;
  blocks::Mamba2 mamba;
  blocks::GatedMlp mlp;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    p.vector("attn_norm.weight", mixer_norm, {c.size.width});
    attn.parameters(p, c.size.width, c.attention(layer));
    mamba.parameters(p, c.size.width, c.mamba);
    p.vector("ffn_norm", mlp_norm, {c.size.width});  // Its name has no ".weight".
    mlp.parameters(p, c.size.width, c.mlp_width);
  }
};

class FalconH1 final : public Decoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state(), c_.mamba.state()};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.mixer_norm);
      const Tensor attended = rotary_attention(g, layer, h, l.attn, c_.rope);
      const Tensor recurred = blocks::mamba2(g, layer, h, l.mamba, c_.mamba, c_.norm_epsilon);
      x = g.add(x, g.add(attended, recurred));
      x = g.add(x, blocks::gated_mlp(g, norm(g, x, l.mlp_norm), l.mlp, Activation::silu));
    }
    return logits(g, x);
  }
};

}  // namespace falcon_h1

extern const Architecture arch_falcon_h1;
constinit const Architecture arch_falcon_h1 = architecture<falcon_h1::FalconH1>("falcon-h1");

}  // namespace cairn::models
