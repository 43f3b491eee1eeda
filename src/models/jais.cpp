// Jais (Sengupta et al., 2023): GPT-2's frame with a gated feed-forward block; instead of learned
// positions scores fall with distance, each head's at its own slope, and they are divided by a
// head's width itself, not by its root. Files have the other multipliers in their matrices.
#include "graph/blocks/attention.h"
#include "graph/blocks/layer_norm.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  std::vector<float> slopes;
};

struct Layer {
  blocks::LayerNorm attn_norm, mlp_norm;
  blocks::Projections attn;
  Weight gate, up, down;
  Vector gate_bias, up_bias, down_bias;
};

class Jais final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_attending_config(meta));
    CAIRN_TRY(std::vector<float> slopes, read_slopes(meta, common, 8.0f));
    return Config{std::move(common), std::move(slopes)};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = blocks::layer_norm(g, x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a = g.attend(layer, q, k, v,
                                {.head_count = c_.head_counts[size_t(layer)],
                                 .scale = 1.0f / float(c_.key_dim),
                                 .slopes = c_.slopes});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      const Tensor m = blocks::layer_norm(g, x, l.mlp_norm, c_.norm_epsilon);
      const Tensor gated =
          g.gate(g.matmul(l.gate, m, l.gate_bias), g.matmul(l.up, m, l.up_bias), Activation::silu);
      x = g.add(x, g.matmul(l.down, gated, l.down_bias));
    }
    return blocks::centred_logits(g, x, ends_, biases_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const int32_t width = c_.size.width, inner = c_.mlp_width;
    l.attn_norm.biased_parameters(p, "attn_norm", width);
    const int32_t attn_width = c_.head_counts[size_t(layer)] * c_.value_dim;
    const int32_t kv_width = c_.kv_head_counts[size_t(layer)] * (c_.key_dim + c_.value_dim);
    const int32_t qkv_width = c_.head_counts[size_t(layer)] * c_.key_dim + kv_width;
    p.matrix("attn_qkv.weight", l.attn.qkv, {width, qkv_width});
    p.vector("attn_qkv.bias", l.attn.qkv_bias, {qkv_width});
    p.matrix("attn_output.weight", l.attn.out, {attn_width, width});
    p.vector("attn_output.bias", l.attn.out_bias, {width});
    l.mlp_norm.biased_parameters(p, "ffn_norm", width);
    p.matrix("ffn_gate.weight", l.gate, {width, inner});
    p.matrix("ffn_up.weight", l.up, {width, inner});
    p.matrix("ffn_down.weight", l.down, {inner, width});
    p.vector("ffn_gate.bias", l.gate_bias, {inner});
    p.vector("ffn_up.bias", l.up_bias, {inner});
    p.vector("ffn_down.bias", l.down_bias, {width});
  }

  void global_parameters(Parameters& p) override {
    p.vector("output_norm.bias", biases_.norm, {c_.size.width});
  }

  blocks::EndBiases biases_;
};

}  // namespace

extern const Architecture arch_jais;
constinit const Architecture arch_jais = architecture<Jais>("jais");

}  // namespace cairn::models
