// DeepSeek V2, V3 and R1, Kimi K2 and others (DeepSeek, 2024): latent attention; behind the first
// layers experts in groups, of which a token uses some, beside experts that every token uses.
#include <algorithm>
#include <cmath>

#include "models/common/decoder.h"
#include "models/common/latent_shape.h"
#include "models/common/sparse_block.h"

namespace cairn::models {

namespace deepseek2 {

// With YaRN not what rotates grows with the logarithm of the factor, but the whole scores, and by
// both sides of them. Files have a tenth of the multiplier.
Result<blocks::LatentSpec> read_latent_spec(const gguf::Metadata& meta, const DecoderConfig& c,
                                            const blocks::LatentShape& shape) {
  blocks::LatentSpec spec{.norm_epsilon = c.norm_epsilon};
  CAIRN_TRY(spec.rope, read_rope(meta, shape.rotated_dim, RopeStyle::adjacent));
  spec.scale = softmax_scale(shape.plain_dim + shape.rotated_dim);
  CAIRN_TRY(spec.temperature_scale, meta.real_or("attention.temperature_scale", 0.0f));
  spec.original_context = c.original_context;
  CAIRN_TRY(const std::string_view scaling, meta.text_or("rope.scaling.type", "none"));
  if (scaling != "yarn") return spec;
  spec.rope.magnitude = 1.0;
  CAIRN_TRY(const float factor, meta.real("rope.scaling.factor"));
  CAIRN_TRY(const float multiplier, meta.real_or("rope.scaling.yarn_log_multiplier", 0.0f));
  const double growth = 1.0 + double(multiplier) * std::log(std::max(1.0, double(factor)));
  spec.scale = float(growth * growth / std::sqrt(double(shape.plain_dim + shape.rotated_dim)));
  return spec;
}

struct Config : DecoderConfig {
  blocks::LatentShape latent;
  blocks::LatentSpec spec;
  MixtureConfig mixture;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig::read(meta));
    CAIRN_TRY(drop_mtp_layers(meta, *this));
    CAIRN_TRY(latent, read_latent_shape(meta, *this));
    CAIRN_TRY(spec, read_latent_spec(meta, *this, latent));
    CAIRN_TRY(mixture, read_mixture(meta, {}));
    return Ok{};
  }
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::LatentAttention attn;
  SparseBlock mlp;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    p.vector("attn_norm.weight", attn_norm, {c.size.width});
    attn.parameters(p, c.size.width, c.latent);
    p.vector("ffn_norm.weight", mlp_norm, {c.size.width});
    mlp.parameters(p, layer, c.size.width, c.mlp_width, c.mixture);
  }
};

class DeepSeek2 final : public PredictingDecoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t) const override { return {c_.latent.state()}; }

  std::vector<State> predictor_states() const override { return {c_.latent.state()}; }

  Tensor forward(Graph& g) const override {
    return logits(g, through_layers(g, g.embed(embedding_and_head_.embedding)));
  }

 private:
  Tensor through_layer(Graph& g, Place place, const Layer& l, Tensor x) const override {
    const Tensor h = norm(g, x, l.attn_norm);
    x = g.add(x, blocks::latent_attention(g, place.stored, h, l.attn, c_.latent, c_.spec));
    return l.mlp.add_to(g, place.layer, x, norm(g, x, l.mlp_norm), c_.mixture);
  }
};

}  // namespace deepseek2

extern const Architecture arch_deepseek2;
constinit const Architecture arch_deepseek2 = architecture<deepseek2::DeepSeek2>("deepseek2");

}  // namespace cairn::models
