// DeepSeek V2, V3 and R1, Kimi K2 and others (DeepSeek, 2024): latent attention; behind the first
// layers experts in groups, of which a token uses some, beside experts that every token uses.
#include <algorithm>
#include <cmath>

#include "graph/blocks/latent_attention.h"
#include "models/common/decoder.h"
#include "models/common/latent_shape.h"
#include "models/common/sparse_block.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  blocks::LatentShape latent;
  blocks::LatentSpec spec;
  MixtureConfig mixture;
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::LatentAttention attn;
  SparseBlock mlp;
};

// With YaRN not what rotates grows with the logarithm of the factor, but the whole scores, and by
// both sides of them. Files have a tenth of the multiplier.
Result<blocks::LatentSpec> read_latent_spec(const gguf::Metadata& meta, const DecoderConfig& c,
                                            const blocks::LatentShape& shape) {
  blocks::LatentSpec spec{.norm_epsilon = c.norm_epsilon};
  CAIRN_TRY(spec.rope, read_rope(meta, shape.rotated_dim, RopeStyle::adjacent));
  spec.scale = softmax_scale(shape.plain_dim + shape.rotated_dim);
  CAIRN_TRY(spec.temperature_scale, meta.real_or("attention.temperature_scale", 0.0f));
  CAIRN_TRY(spec.original_context,
            meta.count_or("rope.scaling.original_context_length", c.size.context_length));
  CAIRN_TRY(const std::string_view scaling, meta.text_or("rope.scaling.type", "none"));
  if (scaling != "yarn") return spec;
  spec.rope.magnitude = 1.0;
  CAIRN_TRY(const float factor, meta.real("rope.scaling.factor"));
  CAIRN_TRY(const float multiplier, meta.real_or("rope.scaling.yarn_log_multiplier", 0.0f));
  const double growth = 1.0 + double(multiplier) * std::log(std::max(1.0, double(factor)));
  spec.scale = float(growth * growth / std::sqrt(double(shape.plain_dim + shape.rotated_dim)));
  return spec;
}

class DeepSeek2 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_attending_config(meta));
    CAIRN_TRY(leave_out_guessing_layers(meta, c));
    CAIRN_TRY(c.latent, read_latent_shape(meta, c));
    CAIRN_TRY(c.spec, read_latent_spec(meta, c, c.latent));
    CAIRN_TRY(c.mixture, read_mixture(meta, {}));
    return c;
  }

  std::vector<State> layer_states(int32_t) const override { return {c_.latent.state()}; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      x = g.add(x, blocks::latent_attention(g, layer, h, l.attn, c_.latent, c_.spec));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = l.mlp.add_to(g, layer, x, m, c_.mixture);
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.latent);
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.parameters(p, layer, c_.size.width, c_.mlp_width, c_.mixture);
  }
};

}  // namespace

extern const Architecture arch_deepseek2;
constinit const Architecture arch_deepseek2 = architecture<DeepSeek2>("deepseek2");

}  // namespace cairn::models
