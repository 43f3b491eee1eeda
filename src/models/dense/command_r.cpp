// Command R and R+ (Cohere, 2024): attention and feed-forward read the same norm and are added
// together; in the larger one each head's queries and keys have a norm of their own.
#include "graph/blocks/attention.h"
#include "graph/blocks/layer_norm.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  RopeSpec rope;
  float logit_scale = 1.0f;
};

struct Layer {
  Vector norm, q_norm, k_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class CommandR final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_attending_config(meta));
    CAIRN_TRY(RopeSpec rope, read_rope(meta, common.key_dim, RopeStyle::adjacent));
    CAIRN_TRY(const float logit_scale, meta.real("logit_scale"));
    return Config{std::move(common), std::move(rope), logit_scale};
  }

  Tensor forward(Graph& g) const override {
    const float epsilon = c_.norm_epsilon;
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.layer_norm(x, l.norm, {}, epsilon);
      auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      if (l.q_norm.exists()) q = g.layer_norm(q, l.q_norm, {}, epsilon, c_.key_dim);
      if (l.k_norm.exists()) k = g.layer_norm(k, l.k_norm, {}, epsilon, c_.key_dim);
      const Tensor a = g.attend(
          layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), v,
          {.head_count = c_.head_counts[size_t(layer)], .scale = softmax_scale(c_.key_dim)});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      x = g.add(x, blocks::gated_mlp(g, h, l.mlp, Activation::silu));
    }
    return g.scale(blocks::centred_logits(g, x, ends_, {}, epsilon), c_.logit_scale);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const blocks::AttentionShape shape = c_.attention(layer);
    p.vector("attn_norm.weight", l.norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, shape);
    p.optional_vector("attn_q_norm.weight", l.q_norm, {shape.key_dim, shape.head_count});
    p.optional_vector("attn_k_norm.weight", l.k_norm, {shape.key_dim, shape.kv_head_count});
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
  }
};

}  // namespace

extern const Architecture arch_command_r;
constinit const Architecture arch_command_r = architecture<CommandR>("command-r");

}  // namespace cairn::models
