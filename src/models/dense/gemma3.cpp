// Gemma 3 (Gemma Team, 2025): five layers of six attend to a window and rotate by a smaller base
// than the sixth, which attends to all; queries and keys are normalised by head.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  std::vector<int32_t> windows;  // By layer; 0: attends to all.
  RopeSpec rope, window_rope;
  float attention_scale = 0, logit_cap = 0;
};

struct Layer {
  Vector attn_norm, q_norm, k_norm, post_attn_norm, mlp_norm, post_mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

// Files do not say the scale. The model of 27 billion weights, alone with its 62 layers, divides by
// the root of width / heads, which is not its heads' width.
float default_scale(const DecoderConfig& c) {
  const bool is_27b = c.size.layer_count == 62;
  return softmax_scale(is_27b ? c.size.width / c.head_counts[0] : c.key_dim);
}

class Gemma3 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
    Config c{std::move(common)};
    CAIRN_TRY(expect_attention(meta, c));
    CAIRN_TRY(c.windows, read_windows(meta, c.size.layer_count, 6));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    CAIRN_TRY(const float window_base, meta.real_or("rope.freq_base_swa", 10000.0f));
    CAIRN_TRY(c.window_rope, read_unscaled_rope(meta, window_base, c.key_dim, RopeStyle::halves));
    CAIRN_TRY(c.attention_scale, meta.real_or("attention.scale", default_scale(c)));
    CAIRN_TRY(c.logit_cap, meta.real_or("final_logit_softcapping", 0.0f));
    return c;
  }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state(c_.windows[size_t(layer)])};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding, blocks::root_of(c_.size.width));
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const int32_t window = c_.windows[size_t(layer)];
      const RopeSpec& rope = window > 0 ? c_.window_rope : c_.rope;
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const blocks::Qkv qkv = l.attn.project(g, h, c_.attention(layer));
      const Tensor q = g.rms_norm(qkv.q, l.q_norm, c_.norm_epsilon, c_.key_dim);
      const Tensor k = g.rms_norm(qkv.k, l.k_norm, c_.norm_epsilon, c_.key_dim);
      const Tensor a =
          g.attend(layer, g.rope(q, c_.key_dim, rope), g.rope(k, c_.key_dim, rope), qkv.v,
                   {.head_count = c_.head_counts[size_t(layer)],
                    .scale = c_.attention_scale,
                    .window = window});
      const Tensor mixed = g.matmul(l.attn.out, a, l.attn.out_bias);
      x = g.add(x, g.rms_norm(mixed, l.post_attn_norm, c_.norm_epsilon));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      const Tensor fed = blocks::gated_mlp(g, m, l.mlp, Activation::gelu_tanh);
      x = g.add(x, g.rms_norm(fed, l.post_mlp_norm, c_.norm_epsilon));
    }
    return blocks::softcap(g, blocks::logits(g, x, ends_, c_.norm_epsilon), c_.logit_cap);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.attn_norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("attn_q_norm.weight", l.q_norm, {c_.key_dim});
    p.vector("attn_k_norm.weight", l.k_norm, {c_.key_dim});
    p.vector("post_attention_norm.weight", l.post_attn_norm, {c_.size.width});
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
    p.vector("post_ffw_norm.weight", l.post_mlp_norm, {c_.size.width});
  }
};

}  // namespace

extern const Architecture arch_gemma3;
constinit const Architecture arch_gemma3 = architecture<Gemma3>("gemma3");

}  // namespace cairn::models
