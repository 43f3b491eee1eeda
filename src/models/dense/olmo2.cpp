// OLMo 2 and OLMo 3 (Team OLMo, 2024 and 2025): norms after attention and feed-forward instead of
// before them, and one norm over all heads' queries and one over all keys. OLMo 3 has windows in
// three of four layers, which rotate by unscaled frequencies.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  std::vector<int32_t> windows;  // By layer.
  RopeSpec rope, window_rope;
};

struct Layer {
  Vector q_norm, k_norm, attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class Olmo2 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_decoder_config(meta));
    CAIRN_TRY(c.windows, read_windows(meta, c.size.layer_count, 4));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    // The file's factor is the whole magnitude here, not one that multiplies YaRN's own.
    CAIRN_TRY(c.rope.magnitude, meta.real_or("rope.scaling.attn_factor", float(c.rope.magnitude)));
    CAIRN_TRY(const float base, meta.real_or("rope.freq_base", 10000.0f));
    CAIRN_TRY(const float window_base, meta.real_or("rope.freq_base_swa", base));
    CAIRN_TRY(c.window_rope, read_unscaled_rope(meta, window_base, c.key_dim, RopeStyle::halves));
    return c;
  }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state(c_.windows[size_t(layer)])};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const int32_t window = c_.windows[size_t(layer)];
      const RopeSpec& rope = window > 0 ? c_.window_rope : c_.rope;
      const blocks::Qkv qkv = l.attn.project(g, x, c_.attention(layer));
      const Tensor q = g.rms_norm(qkv.q, l.q_norm, c_.norm_epsilon);
      const Tensor k = g.rms_norm(qkv.k, l.k_norm, c_.norm_epsilon);
      const Tensor a =
          g.attend(layer, g.rope(q, c_.key_dim, rope), g.rope(k, c_.key_dim, rope), qkv.v,
                   {.head_count = c_.head_counts[size_t(layer)],
                    .scale = softmax_scale(c_.key_dim),
                    .window = window});
      x = g.add(x,
                g.rms_norm(g.matmul(l.attn.out, a, l.attn.out_bias), l.attn_norm, c_.norm_epsilon));
      const Tensor m = blocks::gated_mlp(g, x, l.mlp, Activation::silu);
      x = g.add(x, g.rms_norm(m, l.mlp_norm, c_.norm_epsilon));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    const blocks::AttentionShape shape = c_.attention(layer);
    l.attn.parameters(p, c_.size.width, shape);
    p.vector("attn_q_norm.weight", l.q_norm, {shape.head_count * shape.key_dim});
    p.vector("attn_k_norm.weight", l.k_norm, {shape.kv_head_count * shape.key_dim});
    p.vector("post_attention_norm.weight", l.attn_norm, {c_.size.width});
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
    p.vector("post_ffw_norm.weight", l.mlp_norm, {c_.size.width});
  }
};

}  // namespace

extern const Architecture arch_olmo2;
constinit const Architecture arch_olmo2 = architecture<Olmo2>("olmo2");

}  // namespace cairn::models
