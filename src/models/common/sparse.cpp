// The usual decoder with experts of 2025: the first layers have a plain feed-forward block, all
// others experts, which may be chosen with a bias and in groups, beside those that every token
// uses.
#include "models/common/sparse.h"

#include "graph/blocks/attention.h"
#include "models/common/decoder.h"
#include "models/common/sparse_block.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  SparseTraits traits;
  RopeSpec rope;
  MixtureConfig mixture;
};

struct Layer {
  Vector attn_norm, q_norm, k_norm, mlp_norm;
  blocks::Projections attn;
  SparseBlock mlp;
};

class Sparse final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta, const SparseTraits& traits) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_attending_config(meta));
    CAIRN_TRY(leave_out_guessing_layers(meta, c));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, traits.rope_style));
    CAIRN_TRY(c.mixture, read_mixture(meta, traits.router));
    CAIRN_TRY(const int32_t step, meta.count_or("interleave_moe_layer_step", 1));
    if (step > 1) {
      return fail(ErrorCode::unsupported, "{}: expected 0 or 1, found {}",
                  meta.key("interleave_moe_layer_step"), step);
    }
    c.traits = traits;
    return c;
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      if (l.q_norm.exists()) q = g.rms_norm(q, l.q_norm, c_.norm_epsilon, c_.key_dim);
      if (l.k_norm.exists()) k = g.rms_norm(k, l.k_norm, c_.norm_epsilon, c_.key_dim);
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = l.mlp.add_to(g, layer, x, m, c_.mixture);
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.optional_vector("attn_q_norm.weight", l.q_norm, {c_.key_dim});
    p.optional_vector("attn_k_norm.weight", l.k_norm, {c_.key_dim});
    p.vector(c_.traits.mlp_norm, l.mlp_norm, {c_.size.width});
    l.mlp.parameters(p, layer, c_.size.width, c_.mlp_width, c_.mixture);
  }
};

}  // namespace

Result<std::unique_ptr<Model>> create_sparse(const gguf::Metadata& meta,
                                             const SparseTraits& traits) {
  CAIRN_TRY(Config config, Sparse::read(meta, traits));
  return std::unique_ptr<Model>(std::make_unique<Sparse>(std::move(config)));
}

}  // namespace cairn::models
