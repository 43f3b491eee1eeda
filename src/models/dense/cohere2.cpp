// Command R7B, Command A and their kin (Cohere, 2024): attention and feed-forward read the same
// norm and are added together. Three of four layers have windows and rotate; the fourth sees
// everything and knows no positions.
#include "graph/blocks/attention.h"
#include "graph/blocks/mlp.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace {

struct Config : DecoderConfig {
  std::vector<int32_t> windows;  // By layer.
  RopeSpec rope;
  float logit_scale = 1.0f;
};

struct Layer {
  Vector norm;
  blocks::Projections attn;
  blocks::GatedMlp mlp;
};

class Cohere2 final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    Config c;
    CAIRN_TRY(static_cast<DecoderConfig&>(c), read_decoder_config(meta));
    CAIRN_TRY(c.windows, read_windows(meta, c.size.layer_count, 4));
    CAIRN_TRY(c.rope, read_rope(meta, c.key_dim, RopeStyle::adjacent));
    CAIRN_TRY(c.logit_scale, meta.real("logit_scale"));
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
      const Tensor h = g.layer_norm(x, l.norm, {}, c_.norm_epsilon);
      auto [q, k, v] = l.attn.project(g, h, c_.attention(layer));
      if (window > 0) {
        q = g.rope(q, c_.key_dim, c_.rope);
        k = g.rope(k, c_.key_dim, c_.rope);
      }
      const Tensor a = g.attend(layer, q, k, v,
                                {.head_count = c_.head_counts[size_t(layer)],
                                 .scale = softmax_scale(c_.key_dim),
                                 .window = window});
      x = g.add(x, g.matmul(l.attn.out, a, l.attn.out_bias));
      x = g.add(x, blocks::gated_mlp(g, h, l.mlp, Activation::silu));
    }
    const Tensor last = g.layer_norm(g.outputs(x), ends_.norm, {}, c_.norm_epsilon);
    const Weight& output = ends_.output.exists() ? ends_.output : ends_.embedding;
    return g.scale(g.matmul(output, last), c_.logit_scale);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.norm, {c_.size.width});
    l.attn.parameters(p, c_.size.width, c_.attention(layer));
    l.mlp.parameters(p, c_.size.width, c_.mlp_width);
  }
};

}  // namespace

extern const Architecture arch_cohere2;
constinit const Architecture arch_cohere2 = architecture<Cohere2>("cohere2");

}  // namespace cairn::models
