// Gemma 2 (Gemma Team, 2024): every other layer attends to a window; a norm before and one behind
// each block; scores and logits are bounded by soft caps.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  std::vector<int32_t> windows;  // By layer; 0: attends to all.
  RopeSpec rope;
  float attention_scale = 0, score_cap = 0, logit_cap = 0;
};

struct Layer {
  Vector attn_norm, post_attn_norm, mlp_norm, post_mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

// Files do not say the scale. The model of 27 billion weights, alone with its 46 layers, divides by
// the root of width / heads, which is not its heads' width.
float default_scale(const DecoderConfig& c) {
  const bool is_27b = c.size.layer_count == 46;
  return softmax_scale(is_27b ? c.size.width / c.head_counts[0] : c.key_dim);
}

class Gemma2 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DecoderConfig common, read_decoder_config(meta));
    Config c{std::move(common)};
    CAIRN_TRY(expect_attention(meta, c));
    CAIRN_TRY(c.windows, read_windows(meta, c.size.layer_count, 2, 4096));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    CAIRN_TRY(c.attention_scale, meta.real_or("attention.scale", default_scale(c)));
    CAIRN_TRY(c.score_cap, meta.real_or("attn_logit_softcapping", 50.0f));
    CAIRN_TRY(c.logit_cap, meta.real_or("final_logit_softcapping", 30.0f));
    return c;
  }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state(c_.windows[size_t(layer)])};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding, blocks::root_of(c_.size.width));
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.attn_norm, c_.norm_epsilon);
      const auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      const Tensor a =
          g.attend(layer, g.rope(q, c_.key_dim, c_.rope), g.rope(k, c_.key_dim, c_.rope), v,
                   {.head_count = c_.head_counts[size_t(layer)],
                    .scale = c_.attention_scale,
                    .softcap = c_.score_cap,
                    .window = c_.windows[size_t(layer)]});
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
    p.vector("post_attention_norm.weight", l.post_attn_norm, {c_.size.width});
    p.vector("ffn_norm.weight", l.mlp_norm, {c_.size.width});
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
    p.vector("post_ffw_norm.weight", l.post_mlp_norm, {c_.size.width});
  }
};

}  // namespace

extern const Architecture arch_gemma2;
constinit const Architecture arch_gemma2 = architecture<Gemma2>("gemma2");

}  // namespace cairn::models
