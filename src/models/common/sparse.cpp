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

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig::read(meta));
    CAIRN_TRY(drop_mtp_layers(meta, *this));
    CAIRN_TRY(rope, read_rope(meta, key_dim, traits.rope_style));
    CAIRN_TRY(mixture, read_mixture(meta, traits.router));
    CAIRN_TRY(const int32_t step, meta.count_or("interleave_moe_layer_step", 1));
    if (step <= 1) return Ok{};
    return fail(ErrorCode::unsupported, "{}: expected 0 or 1, found {}",
                meta.key("interleave_moe_layer_step"), step);
  }
};

struct Layer : NormedAttention<Vector> {
  Vector q_norm, k_norm, mlp_norm;
  SparseBlock mlp;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    attention_parameters(p, c, layer);
    p.optional_vector("attn_q_norm.weight", q_norm, {c.key_dim});
    p.optional_vector("attn_k_norm.weight", k_norm, {c.key_dim});
    p.vector(c.traits.mlp_norm, mlp_norm, {c.size.width});
    mlp.parameters(p, layer, c.size.width, c.mlp_width, c.mixture);
  }
};

class Sparse final : public PredictingDecoder<Config, Layer> {
 public:
  explicit Sparse(const SparseTraits& traits) { c_.traits = traits; }

  Tensor forward(Graph& g) const override {
    return logits(g, through_layers(g, g.embed(embedding_and_head_.embedding)));
  }

 private:
  Tensor through_layer(Graph& g, Place place, const Layer& l, Tensor x) const override {
    blocks::Qkv qkv = project(g, place.layer, norm(g, x, l.attn_norm), l.attn);
    if (l.q_norm.exists()) qkv.q = norm(g, qkv.q, l.q_norm, c_.key_dim);
    if (l.k_norm.exists()) qkv.k = norm(g, qkv.k, l.k_norm, c_.key_dim);
    x = g.add(x, l.attn.attend(g, place.stored, rotate(g, qkv, c_.rope), c_.scores(place.layer)));
    return l.mlp.add_to(g, place.layer, x, norm(g, x, l.mlp_norm), c_.mixture);
  }
};

}  // namespace

Result<std::unique_ptr<Model>> create_sparse(const gguf::Metadata& meta,
                                             const SparseTraits& traits) {
  return create_model<Sparse>(meta, traits);
}

}  // namespace cairn::models
