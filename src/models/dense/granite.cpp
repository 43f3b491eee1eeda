// Granite 3 (IBM, 2024): Llama's shape, where embeddings, residuals, scores and logits have
// multipliers; with experts in some sizes, and one beside them that every token uses.
#include "models/dense/granite.h"

#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"
#include "models/common/mixture.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  MixtureConfig mixture;
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1, attention_scale = 1;
};

struct Layer {
  Vector attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;  // The shared expert where there are experts.
  blocks::Experts experts;
};

class Granite final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_attending_config(meta));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::adjacent));
    CAIRN_TRY(c.mixture, read_mixture(meta, {.score = RouterScore::softmax_chosen}));
    CAIRN_TRY(c.embedding_scale, meta.real_or("embedding_scale", 1.0f));
    CAIRN_TRY(c.residual_scale, meta.real_or("residual_scale", 1.0f));
    CAIRN_TRY(c.logit_scale, meta.real_or("logit_scale", 1.0f));
    CAIRN_TRY(c.attention_scale, meta.real_or("attention.scale", softmax_scale(c.key_dim)));
    return c;
  }

  Tensor forward(Graph& g) const override {
    const RopeSpec rope = with_factors(c_.rope, rope_factors_);
    Tensor x = g.embed(ends_.embedding, c_.embedding_scale);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a =
          g.attend(layer, g.rope(q, c_.key_dim, rope), g.rope(k, c_.key_dim, rope), v,
                   {.head_count = c_.head_counts[size_t(layer)], .scale = c_.attention_scale});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias), c_.residual_scale);
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, feed_forward(g, l, m), c_.residual_scale);
    }
    return g.scale(blocks::logits(g, x, ends_, c_.norm_epsilon), 1.0f / c_.logit_scale);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const MixtureConfig& mixture = c_.mixture;
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    if (mixture.expert_count == 0) {
      l.mlp.parameters(p, c_.size.width, c_.mlp_width);
      return;
    }
    l.experts.parameters(p, c_.size.width, mixture.expert_width, mixture.expert_count);
    if (mixture.shared_width > 0) {
      l.mlp.parameters(p, c_.size.width, mixture.shared_width, "_shexp");
    }
  }

  void global_parameters(Parameters& p) override {
    p.optional_vector("rope_freqs.weight", rope_factors_, {int64_t(c_.rope.frequencies.size())});
  }

  Tensor feed_forward(Graph& g, const Layer& l, Tensor m) const {
    if (c_.mixture.expert_count == 0) return blocks::gated_mlp(g, m, l.mlp, Activation::silu);
    const Tensor routed = blocks::mixture(g, m, l.experts, c_.mixture.router, Activation::silu);
    if (c_.mixture.shared_width == 0) return routed;
    return g.add(routed, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
  }

  Vector rope_factors_;
};

}  // namespace

Result<std::unique_ptr<Model>> create_granite(const gguf::Metadata& meta) {
  return architecture<Granite>("granite").create(meta);
}

extern const Architecture arch_granite;
constinit const Architecture arch_granite = {.name = "granite", .create = &create_granite};

}  // namespace cairn::models
