// Jais (Sengupta et al., 2023): GPT-2's frame with a gated feed-forward block; instead of learned
// positions scores fall with distance, each head's at its own slope, and they are divided by a
// head's width itself, not by its root. Files have the other multipliers in their matrices.
#include "models/common/decoder.h"

namespace cairn::models {

namespace jais {

struct Config : SlopedConfig {
  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(SlopedConfig::read(meta));
    attention_scale = 1.0f / float(key_dim);
    return Ok{};
  }
};

struct Layer {
  blocks::LayerNorm attn_norm, mlp_norm;
  blocks::Projections attn;
  Weight gate, up, down;
  Vector gate_bias, up_bias, down_bias;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    const int32_t width = c.size.width, inner = c.mlp_width;
    const blocks::AttentionShape shape = c.attention(layer);
    const int32_t qkv_width = shape.widths().all();
    attn_norm.biased_parameters(p, "attn_norm", width);
    p.matrix("attn_qkv.weight", attn.qkv, {width, qkv_width});
    p.vector("attn_qkv.bias", attn.qkv_bias, {qkv_width});
    p.matrix("attn_output.weight", attn.out, {shape.head_count * shape.value_dim, width});
    p.vector("attn_output.bias", attn.out_bias, {width});
    mlp_norm.biased_parameters(p, "ffn_norm", width);
    p.matrix("ffn_gate.weight", gate, {width, inner});
    p.matrix("ffn_up.weight", up, {width, inner});
    p.matrix("ffn_down.weight", down, {inner, width});
    p.vector("ffn_gate.bias", gate_bias, {inner});
    p.vector("ffn_up.bias", up_bias, {inner});
    p.vector("ffn_down.bias", down_bias, {width});
  }
};

class Jais final : public CentredDecoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      x = g.add(x, attend(g, layer, qkv, l.attn));
      const Tensor m = norm(g, x, l.mlp_norm);
      const Tensor gated =
          g.gate(g.matmul(l.gate, m, l.gate_bias), g.matmul(l.up, m, l.up_bias), Activation::silu);
      x = g.add(x, g.matmul(l.down, gated, l.down_bias));
    }
    return logits(g, x);
  }

 private:
  void global_parameters(Parameters& p) override {
    p.vector("output_norm.bias", biases_.norm, {c_.size.width});
  }
};

}  // namespace jais

extern const Architecture arch_jais;
constinit const Architecture arch_jais = architecture<jais::Jais>("jais");

}  // namespace cairn::models
