// MiniCPM 3 (Hu et al., 2024): keys and values of all heads come from one latent row, as DeepSeek's
// do, but its files have the matrix that makes them in one piece, so that they are made and kept;
// embeddings, residuals and logits are scaled.
#include <cmath>

#include "models/common/decoder.h"
#include "models/common/latent_shape.h"
#include "models/common/long_rope.h"

namespace cairn::models {

namespace minicpm3 {

// Files do not say these.
constexpr float kEmbeddingScale = 12.0f;
constexpr double kDepthScale = 1.4, kBaseWidth = 256.0;

struct Config : DecoderConfig {
  blocks::LatentShape latent;
  RopeSpec rope;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig::read(meta));
    CAIRN_TRY(latent, read_latent_shape(meta, *this));
    CAIRN_TRY(rope, read_rope(meta, latent.rotated_dim, RopeStyle::halves));
    return Ok{};
  }
};

struct Layer : NormedMlp<Vector, blocks::GatedMlp> {
  Vector attn_norm;
  blocks::LatentAttention attn;

  void parameters(Parameters& p, const Config& c, int32_t) {
    p.vector("attn_norm.weight", attn_norm, {c.size.width});
    attn.parameters(p, c.size.width, c.latent);
    mlp_parameters(p, c);
  }
};

class MiniCpm3 final : public Decoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t) const override { return {c_.latent.state()}; }

  Tensor forward(Graph& g) const override {
    const blocks::LatentSpec spec{.rope = long_rope_.scaled(c_.rope, c_.reads_long_texts()),
                                  .scale = softmax_scale(c_.latent.key_dim()),
                                  .norm_epsilon = c_.norm_epsilon};
    const auto residual_scale = float(kDepthScale / std::sqrt(double(c_.size.layer_count)));
    Tensor x = g.embed(embedding_and_head_.embedding, kEmbeddingScale);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.attn_norm);
      const Tensor a = blocks::latent_attention(g, layer, h, l.attn, c_.latent, spec);
      x = g.add(x, a, residual_scale);
      const Tensor m = norm(g, x, l.mlp_norm);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu), residual_scale);
    }
    const Tensor last = g.rms_norm(g.outputs(x), embedding_and_head_.norm, c_.norm_epsilon);
    return g.matmul(embedding_and_head_.output.exists() ? embedding_and_head_.output
                                                        : embedding_and_head_.embedding,
                    g.scale(last, float(kBaseWidth / c_.size.width)));
  }

 private:
  void global_parameters(Parameters& p) override {
    long_rope_.parameters(p, int64_t(c_.rope.frequencies.size()));
  }

  LongRope long_rope_;
};

}  // namespace minicpm3

extern const Architecture arch_minicpm3;
constinit const Architecture arch_minicpm3 = architecture<minicpm3::MiniCpm3>("minicpm3");

}  // namespace cairn::models
