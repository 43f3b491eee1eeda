// Hunyuan's models (Tencent, 2025): Qwen 3's shape, but queries and keys are normalised behind the
// rotation.
#include "graph/blocks/attention.h"
#include "models/common/decoder.h"
#include "models/common/sparse_block.h"
#include "models/experts/hunyuan.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  MixtureConfig mixture;  // Of no experts where the model is dense.
};

struct Layer {
  Vector attn_norm, q_norm, k_norm, mlp_norm;
  blocks::Projections attn;
  SparseBlock mlp;
};

class Hunyuan final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_attending_config(meta));
    CAIRN_TRY(RopeSpec rope, read_rope(meta, common.key_dim, RopeStyle::halves));
    return Config{std::move(common), std::move(rope), {}};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      q = g.rms_norm(g.rope(q, c_.key_dim, c_.rope), l.q_norm, c_.norm_epsilon, c_.key_dim);
      k = g.rms_norm(g.rope(k, c_.key_dim, c_.rope), l.k_norm, c_.norm_epsilon, c_.key_dim);
      const Tensor a = g.attend(
          layer, q, k, v,
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
    p.vector("attn_q_norm.weight", l.q_norm, {c_.key_dim});
    p.vector("attn_k_norm.weight", l.k_norm, {c_.key_dim});
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.parameters(p, layer, c_.size.width, c_.mlp_width, c_.mixture);
  }
};

}  // namespace

Result<std::unique_ptr<Model>> create_hunyuan_moe(const gguf::Metadata& meta) {
  CAIRN_TRY(Config config, Hunyuan::read(meta));
  CAIRN_TRY(config.mixture, read_mixture(meta, {.normalize = true}));
  CAIRN_TRY(expect_experts(meta, config.mixture));
  // All models have one that every token uses, as wide as a plain block unless the file says more.
  if (config.mixture.shared_width == 0) config.mixture.shared_width = config.mlp_width;
  return std::unique_ptr<Model>(std::make_unique<Hunyuan>(std::move(config)));
}

extern const Architecture arch_hunyuan_dense;
constinit const Architecture arch_hunyuan_dense = architecture<Hunyuan>("hunyuan-dense");

}  // namespace cairn::models
