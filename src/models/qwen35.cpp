// Qwen 3.5, dense: three layers in four mix by gated delta nets (Yang et al., 2024), the fourth by
// gated attention; behind each a gated feed-forward block. Text only: the three position axes of
// images are equal then, which makes the sections of the rotation one.
#include "graph/blocks/mlp.h"
#include "models/decoder.h"
#include "models/delta_hybrid.h"

namespace cairn::models {

namespace {

struct Layer {
  Vector mixer_norm, mlp_norm;
  DeltaHybridMixer mixer;
  blocks::GatedMlp mlp;
};

class Qwen35 final : public Decoder<DeltaHybridConfig, Layer> {
 public:
  using Decoder::Decoder;

  static Result<DeltaHybridConfig> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DeltaHybridConfig c, read_delta_hybrid(meta));
    c.delta.order = HeadOrder::tiled;
    return c;
  }

  std::vector<State> layer_states(int32_t layer) const override { return {c_.state(layer)}; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.mixer_norm, c_.norm_epsilon);
      x = g.add(x, l.mixer.mix(g, layer, h, c_));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.mixer_norm, {c_.size.width});
    l.mixer.parameters(p, layer, c_);
    p.vector("post_attention_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
  }
};

}  // namespace

extern const Architecture arch_qwen35;
constinit const Architecture arch_qwen35 = architecture<Qwen35>("qwen35");

}  // namespace cairn::models
