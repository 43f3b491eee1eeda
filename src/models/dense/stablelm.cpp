// StableLM 2 and 3B (Stability AI, 2023): Llama's shape with norms around the mean; a part of each
// head rotates. In the size of 12B attention and feed-forward read one norm and are added together,
// and each head's queries and keys have a norm of their own.
#include "graph/blocks/attention.h"
#include "graph/blocks/layer_norm.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  bool is_parallel = false;
};

struct Layer {
  blocks::LayerNorm attn_norm, mlp_norm;
  Vector q_norm, k_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class StableLm final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_attending_config(meta));
    CAIRN_TRY(RopeSpec rope, read_rope(meta, common.key_dim, RopeStyle::halves));
    CAIRN_TRY(const bool is_parallel, meta.flag_or("use_parallel_residual", false));
    return Config{std::move(common), std::move(rope), is_parallel};
  }

  Tensor forward(Graph& g) const override {
    const float epsilon = c_.norm_epsilon;
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = blocks::layer_norm(g, x, l.attn_norm, epsilon);
      auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      if (l.q_norm.exists()) q = g.layer_norm(q, l.q_norm, {}, epsilon, c_.key_dim);
      if (l.k_norm.exists()) k = g.layer_norm(k, l.k_norm, {}, epsilon, c_.key_dim);
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = c_.is_parallel ? h : blocks::layer_norm(g, x, l.mlp_norm, epsilon);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
    }
    return blocks::centred_logits(g, x, ends_, biases_, epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const blocks::AttentionShape shape = c_.attention(layer);
    l.attn_norm.parameters(p, "attn_norm", c_.size.width);
    l.attn.parameters(p, c_.size.width, shape);
    p.optional_vector("attn_q_norm.weight", l.q_norm, {shape.key_dim, shape.head_count});
    p.optional_vector("attn_k_norm.weight", l.k_norm, {shape.key_dim, shape.kv_head_count});
    if (!c_.is_parallel) l.mlp_norm.parameters(p, "ffn_norm", c_.size.width);
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
  }

  void global_parameters(Parameters& p) override {
    biases_.parameters(p, c_.size.width, c_.size.vocabulary_count);
  }

  blocks::EndBiases biases_;
};

}  // namespace

extern const Architecture arch_stablelm;
constinit const Architecture arch_stablelm = architecture<StableLm>("stablelm");

}  // namespace cairn::models
