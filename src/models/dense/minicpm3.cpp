// MiniCPM 3 (Hu et al., 2024): keys and values of all heads come from one latent row, as DeepSeek's
// do, but its files have the matrix that makes them in one piece, so that they are made and kept;
// embeddings, residuals and logits are scaled.
#include <cmath>

#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"
#include "models/common/latent_shape.h"
#include "models/common/long_rope.h"

namespace cairn::models {

namespace {

// Files do not say these.
constexpr float kEmbeddingScale = 12.0f;
constexpr double kDepthScale = 1.4, kBaseWidth = 256.0;

struct Config : DecoderConfig {
  blocks::LatentShape latent;
  RopeSpec rope;
  int32_t original_context = 0;
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::LatentAttention attn;
  blocks::GatedMlp mlp;
};

class MiniCpm3 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_attending_config(meta));
    CAIRN_TRY(c.latent, read_latent_shape(meta, c));
    CAIRN_TRY(c.rope, read_rope(meta, c.latent.rotated_dim, RopeStyle::halves));
    CAIRN_TRY(c.original_context,
              meta.count_or("rope.scaling.original_context_length", c.size.context_length));
    return c;
  }

  std::vector<State> layer_states(int32_t) const override { return {c_.latent.state()}; }

  Tensor forward(Graph& g) const override {
    const blocks::LatentSpec spec{
        .rope = long_rope_.scaled(c_.rope, g.context_tokens() > c_.original_context),
        .scale = softmax_scale(c_.latent.key_dim()),
        .norm_epsilon = c_.norm_epsilon};
    const auto residual_scale = float(kDepthScale / std::sqrt(double(c_.size.layer_count)));
    Tensor x = g.embed(ends_.embedding, kEmbeddingScale);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const Tensor a = blocks::latent_attention(g, layer, h, l.attn, c_.latent, spec);
      x = g.add(x, a, residual_scale);
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu), residual_scale);
    }
    const Tensor last = g.rms_norm(g.outputs(x), ends_.norm, c_.norm_epsilon);
    return g.matmul(ends_.output.exists() ? ends_.output : ends_.embedding,
                    g.scale(last, float(kBaseWidth / c_.size.width)));
  }

 private:
  void layer_parameters(Parameters& p, int32_t, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.latent);
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
  }

  void global_parameters(Parameters& p) override {
    long_rope_.parameters(p, int64_t(c_.rope.frequencies.size()));
  }

  LongRope long_rope_;
};

}  // namespace

extern const Architecture arch_minicpm3;
constinit const Architecture arch_minicpm3 = architecture<MiniCpm3>("minicpm3");

}  // namespace cairn::models
