// Qwen 3 (Yang et al., 2025): a dense decoder. Each query and key head is normalised before
// rotation.
#include "models/dense/qwen3.h"

#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
};

struct Layer {
  Vector attn_norm, q_norm, k_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class Qwen3 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
    CAIRN_TRY(RopeSpec rope, read_rope(meta, common.key_dim, RopeStyle::halves));
    return Config{std::move(common), std::move(rope)};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const blocks::Qkv qkv = l.attn.project(g, h, c_.attention(layer));
      const Tensor q = g.rms_norm(qkv.q, l.q_norm, c_.norm_epsilon, c_.key_dim);
      const Tensor k = g.rms_norm(qkv.k, l.k_norm, c_.norm_epsilon, c_.key_dim);
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), qkv.v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
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
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
  }
};

}  // namespace

Result<std::unique_ptr<Model>> create_qwen3(const gguf::Metadata& meta) {
  return architecture<Qwen3>("qwen3").create(meta);
}

extern const Architecture arch_qwen3;
constinit const Architecture arch_qwen3 = {.name = "qwen3", .create = &create_qwen3};

}  // namespace cairn::models
