// Falcon-H1 (Zuo et al., 2025): every layer attends and recurs side by side, on the same input; the
// sum of both goes into the residual stream. The model's multipliers are part of its weights.
#include "graph/blocks/attention.h"
#include "graph/blocks/mamba2.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  blocks::Mamba2Shape mamba;
  RopeSpec rope;
};

struct Layer {
  Vector mixer_norm, mlp_norm;
  blocks::Projections attn;
  blocks::Mamba2 mamba;
  blocks::GatedMlp mlp;
};

class FalconH1 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
    Config c{std::move(common)};
    CAIRN_TRY(c.mamba, read_mamba2(meta));
    c.mamba.needs_norm = false;
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    return c;
  }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state(), c_.mamba.state()};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.mixer_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      const Tensor attended = g.matmul(l.attn.out, a, l.attn.out_bias);
      const Tensor recurred = blocks::mamba2(g, layer, h, l.mamba, c_.mamba, c_.norm_epsilon);
      x = g.add(x, g.add(attended, recurred));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.mixer_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    l.mamba.parameters(p, c_.size.width, c_.mamba);
    p.vector("ffn_norm", l.mlp_norm, {c_.size.width});  // Its name has no ".weight".
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
  }
};

}  // namespace

extern const Architecture arch_falcon_h1;
constinit const Architecture arch_falcon_h1 = architecture<FalconH1>("falcon-h1");

}  // namespace cairn::models
