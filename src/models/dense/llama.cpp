// Llama 1 to 3.x and Mistral (Touvron et al., 2023): the plain decoder. Llama 3.1 and later bring a
// factor for each frequency of the rotation; Mixtral (Jiang et al., 2024) has experts. Other models
// with the same shape differ in which elements of a head rotate together.
#include "models/dense/llama.h"

#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"
#include "models/common/long_rope.h"
#include "models/common/mixture.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  int32_t original_context = 0;
  MixtureConfig mixture;
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
  blocks::Experts experts;
};

class Llama final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta, RopeStyle style) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_attending_config(meta));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, style));
    CAIRN_TRY(c.original_context,
              meta.count_or("rope.scaling.original_context_length", c.size.context_length));
    CAIRN_TRY(c.mixture, read_mixture(meta, {.score = RouterScore::softmax_chosen}));
    return c;
  }

  Tensor forward(Graph& g) const override {
    const RopeSpec rope = with_factors(
        long_rope_.scaled(c_.rope, g.context_tokens() > c_.original_context), rope_factors_);
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, rope), g.rope(k, c_.key_dim, rope), v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, c_.mixture.expert_count == 0
                       ? blocks::gated_mlp(g, m, l.mlp, Activation::silu)
                       : blocks::mixture(g, m, l.experts, c_.mixture.router, Activation::silu));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    if (c_.mixture.expert_count == 0) {
      l.mlp.parameters(p, c_.size.width, c_.mlp_width);
    } else {
      l.experts.parameters(p, c_.size.width, c_.mixture.expert_width, c_.mixture.expert_count);
    }
  }

  void global_parameters(Parameters& p) override {
    p.optional_vector("rope_freqs.weight", rope_factors_, {int64_t(c_.rope.frequencies.size())});
    long_rope_.parameters(p, int64_t(c_.rope.frequencies.size()));
  }

  Vector rope_factors_;
  LongRope long_rope_;
};

}  // namespace

Result<std::unique_ptr<Model>> create_llama(const gguf::Metadata& meta, RopeStyle style) {
  CAIRN_TRY(Config config, Llama::read(meta, style));
  return std::unique_ptr<Model>(std::make_unique<Llama>(std::move(config)));
}

extern const Architecture arch_llama;
constinit const Architecture arch_llama = llama_shaped<RopeStyle::adjacent>("llama");

}  // namespace cairn::models
