// StableLM 2 and 3B (Stability AI, 2023): Llama's shape with norms around the mean; a part of each
// head rotates. In the size of 12B attention and feed-forward read one norm and are added together,
// and each head's queries and keys have a norm of their own.
#include "models/common/decoder.h"

namespace cairn::models {

namespace stablelm {

struct Config : RotaryConfig<RopeStyle::halves> {
  bool is_parallel = false;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(is_parallel, meta.flag_or("use_parallel_residual", false));
    return Ok{};
  }
};

struct Layer : CentredLayer<blocks::GatedMlp> {
  Vector q_norm, k_norm;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    const blocks::AttentionShape shape = c.attention(layer);
    attention_parameters(p, c, layer);
    p.optional_vector("attn_q_norm.weight", q_norm, {shape.key_dim, shape.head_count});
    p.optional_vector("attn_k_norm.weight", k_norm, {shape.key_dim, shape.kv_head_count});
    if (!c.is_parallel) mlp_norm.parameters(p, "ffn_norm", c.size.width);
    mlp.parameters(p, c.size.width, c.mlp_width);
  }
};

class StableLm final : public CentredDecoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    const float epsilon = c_.norm_epsilon;
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.attn_norm);
      blocks::Qkv qkv = project(g, layer, h, l.attn);
      if (l.q_norm.exists()) qkv.q = g.layer_norm(qkv.q, l.q_norm, {}, epsilon, c_.key_dim);
      if (l.k_norm.exists()) qkv.k = g.layer_norm(qkv.k, l.k_norm, {}, epsilon, c_.key_dim);
      x = g.add(x, attend(g, layer, rotate(g, qkv, c_.rope), l.attn));
      const Tensor m = c_.is_parallel ? h : norm(g, x, l.mlp_norm);
      x = g.add(x, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
    }
    return logits(g, x);
  }
};

}  // namespace stablelm

extern const Architecture arch_stablelm;
constinit const Architecture arch_stablelm = architecture<stablelm::StableLm>("stablelm");

}  // namespace cairn::models
