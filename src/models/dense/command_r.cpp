// Command R and R+ (Cohere, 2024): attention and feed-forward read the same norm and are added
// together; in the larger one each head's queries and keys have a norm of their own.
#include "models/common/decoder.h"

namespace cairn::models {

namespace command_r {

struct Config : RotaryConfig<RopeStyle::adjacent> {
  float logit_scale = 1.0f;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(logit_scale, meta.real("logit_scale"));
    return Ok{};
  }
};

struct Layer {
  Vector norm, q_norm, k_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    const blocks::AttentionShape shape = c.attention(layer);
    p.vector("attn_norm.weight", norm, {c.size.width});
    attn.parameters(p, c.size.width, shape);
    p.optional_vector("attn_q_norm.weight", q_norm, {shape.key_dim, shape.head_count});
    p.optional_vector("attn_k_norm.weight", k_norm, {shape.key_dim, shape.kv_head_count});
    mlp.parameters(p, c.size.width, c.mlp_width);
  }
};

class CommandR final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    const float epsilon = c_.norm_epsilon;
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = g.layer_norm(x, l.norm, {}, epsilon);
      blocks::Qkv qkv = project(g, layer, h, l.attn);
      if (l.q_norm.exists()) qkv.q = g.layer_norm(qkv.q, l.q_norm, {}, epsilon, c_.key_dim);
      if (l.k_norm.exists()) qkv.k = g.layer_norm(qkv.k, l.k_norm, {}, epsilon, c_.key_dim);
      x = g.add(x, attend(g, layer, rotate(g, qkv, c_.rope), l.attn));
      x = g.add(x, blocks::gated_mlp(g, h, l.mlp, Activation::silu));
    }
    return g.scale(blocks::centred_logits(g, x, embedding_and_head_, {}, epsilon), c_.logit_scale);
  }
};

}  // namespace command_r

extern const Architecture arch_command_r;
constinit const Architecture arch_command_r = architecture<command_r::CommandR>("command-r");

}  // namespace cairn::models
