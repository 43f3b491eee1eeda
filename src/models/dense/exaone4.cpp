// EXAONE 4 (LG AI Research, 2025): norms after attention and feed-forward instead of before them,
// and norms of each head's query and key. Where layers have windows, only these rotate: the layers
// that see everything know no positions.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  std::vector<int32_t> windows;  // By layer.
  bool rotate_all = true;        // There are no windows.
  RopeSpec rope;
};

struct Layer {
  Vector q_norm, k_norm, attn_norm, mlp_norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class Exaone4 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_decoder_config(meta));
    CAIRN_TRY(c.windows, read_windows(meta, c.size.layer_count, 4));
    CAIRN_TRY(const int32_t window, meta.count_or("attention.sliding_window", 0));
    c.rotate_all = window == 0;
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::halves));
    return c;
  }

  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.attention(layer).state(c_.windows[size_t(layer)])};
  }

  Tensor forward(Graph& g) const override {
    const RopeSpec rope = with_factors(c_.rope, rope_factors_);
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const int32_t window = c_.windows[size_t(layer)];
      const blocks::Qkv qkv = l.attn.project(g, x, c_.attention(layer));
      Tensor q = g.rms_norm(qkv.q, l.q_norm, c_.norm_epsilon, c_.key_dim);
      Tensor k = g.rms_norm(qkv.k, l.k_norm, c_.norm_epsilon, c_.key_dim);
      if (window > 0 || c_.rotate_all) {
        q = g.rope(q, c_.key_dim, rope);
        k = g.rope(k, c_.key_dim, rope);
      }
      const Tensor a = g.attend(layer, q, k, qkv.v,
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
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    p.vector("attn_q_norm.weight", l.q_norm, {c_.key_dim});
    p.vector("attn_k_norm.weight", l.k_norm, {c_.key_dim});
    p.vector("post_attention_norm.weight", l.attn_norm, {c_.size.width});
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
    p.vector("post_ffw_norm.weight", l.mlp_norm, {c_.size.width});
  }

  void global_parameters(Parameters& p) override {
    p.optional_vector("rope_freqs.weight", rope_factors_, {int64_t(c_.rope.frequencies.size())});
  }

  Vector rope_factors_;
};

}  // namespace

extern const Architecture arch_exaone4;
constinit const Architecture arch_exaone4 = architecture<Exaone4>("exaone4");

}  // namespace cairn::models
